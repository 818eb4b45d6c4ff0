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
from trimtab.cli.app import app


def test_a_session_made_here_is_well_set(spark: SparkSession) -> None:
    assert tt.doctor(spark) == []


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


@pytest.mark.parametrize("command", [["bench", "nothing"], ["bench", "keyed", "--repetitions", "0"], ["nothing"]])
def test_commands_that_make_no_sense_exit_with_2(command: list[str]) -> None:
    assert CliRunner().invoke(app, command).exit_code == 2
