"""Sessions, the doctor and the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import trimtab as tt
from trimtab.bench.figures import figure
from trimtab.bench.floor import FloorResult
from trimtab.bench.growth import GrowthCase, GrowthResult
from trimtab.bench.keyed import KeyedCase
from trimtab.cli.app import app
from trimtab.cli.tables import floor_table, growth_table, keyed_table


def test_a_session_made_here_is_well_set(spark: SparkSession) -> None:
    assert tt.doctor(spark) == []


def test_settings_of_a_session_are_written_with_underscores_or_with_dots(spark: SparkSession) -> None:
    dotted, other = "spark.sql.shuffle.partitions", "spark.trimtab_test.kept_as_it_is"
    before = spark.conf.get(dotted)
    try:
        tt.session(spark_sql_shuffle_partitions="7", **{other: "yes"})
        assert (spark.conf.get(dotted), spark.conf.get(other)) == ("7", "yes")
    finally:
        spark.conf.set(dotted, str(before))
        spark.conf.unset(other)


def test_the_doctor_names_what_to_set(spark: SparkSession) -> None:
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    other = spark.newSession()
    other.conf.set(key, "100")
    (advice,) = tt.doctor(other)
    assert str(advice).startswith(f"{key} is 100: set it to 100000.")


def test_the_doctor_names_the_python_that_tasks_should_run_in(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "python-of-somebody-else")
    (advice,) = tt.doctor(spark)
    assert str(advice).startswith(f"PYSPARK_PYTHON is python-of-somebody-else: set it to {sys.executable}.")


def test_a_session_runs_tasks_in_the_python_of_the_program_whatever_path_says(tmp_path: Path) -> None:
    program = """
        import sys, trimtab as tt
        ran = tt.session(master="local[1]").sparkContext.parallelize([0], 1).map(lambda _: __import__("sys").executable)
        print(ran.collect() == [sys.executable])
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    for name in ("python3", "python"):
        (tmp_path / name).symlink_to("/bin/false")
    environment["PATH"] = f"{tmp_path}{os.pathsep}{environment['PATH']}"
    command = [sys.executable, "-c", textwrap.dedent(program)]
    assert subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout == "True\n"


def test_the_doctor_answers_in_json(spark: SparkSession) -> None:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"advice": []}


def test_tables_of_benchmarks_say_how_often_everything_was_measured() -> None:
    seconds = {"trimtab": figure([[1.0, 2.0]] * 3), "native": figure([[4.0]] * 3)}
    told = "median (middle half) of 3 or 6 epochs in 3 repetitions"
    keyed = KeyedCase(10, 10, seconds, {"trimtab": 6, "native": 3}, {})
    floor = FloorResult(10, 2, seconds, 1.0, {}, {})
    growth = GrowthCase(10, seconds, {"trimtab": 2.0, "native": 4.0}, figure([[9.0]]))
    assert keyed_table([keyed]).caption == told
    assert floor_table(floor).caption == told
    assert str(growth_table(GrowthResult(10, [growth], {}, {})).caption).startswith(f"{told}\ngreatest")


@pytest.mark.parametrize("command", [["bench", "nothing"], ["bench", "keyed", "--repetitions", "0"], ["nothing"]])
def test_commands_that_make_no_sense_exit_with_2(command: list[str]) -> None:
    assert CliRunner().invoke(app, command).exit_code == 2
