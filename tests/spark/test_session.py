"""Sessions, the doctor and the command line."""

from __future__ import annotations

import json

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


def test_the_doctor_answers_in_json(spark: SparkSession) -> None:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"advice": []}


@pytest.mark.parametrize("command", [["bench", "nothing"], ["bench", "keyed", "--repetitions", "0"], ["nothing"]])
def test_commands_that_make_no_sense_exit_with_2(command: list[str]) -> None:
    assert CliRunner().invoke(app, command).exit_code == 2
