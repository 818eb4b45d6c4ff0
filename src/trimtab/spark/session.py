"""A well-set Spark session, and a doctor for one that somebody else made."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

LOCAL = "local"
WORKER_PYTHON = "PYSPARK_PYTHON"
SETTINGS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(master: str = "local[*]", app: str = "trimtab", memory: str = "2g", **settings: str) -> SparkSession:
    """A Spark session set for Trimtab, or the one that already runs in this process.

    `settings` are more of Spark's own, with underscores for dots: `session(spark_sql_shuffle_partitions="4")`. A name
    that has a dot is taken as it is. On this machine, tasks run in the Python that runs this program, unless the
    environment's `PYSPARK_PYTHON` names another.
    """
    if master.startswith(LOCAL):
        # Spark would take whatever PATH calls python3, which knows nothing of a virtual environment that is not active.
        os.environ.setdefault(WORKER_PYTHON, sys.executable)
    builder = SparkSession.builder.master(master).appName(app).config("spark.driver.memory", memory)
    for key, value in {**SETTINGS, **settings}.items():
        builder = builder.config(key if "." in key else key.replace("_", "."), value)
    return builder.getOrCreate()


@dataclass(frozen=True)
class Advice:
    """A setting that costs speed or safety, and what to set."""

    setting: str
    found: str
    wanted: str
    why: str

    def __str__(self) -> str:
        return f"{self.setting} is {self.found}: set it to {self.wanted}. {self.why}"


CHECKS: tuple[tuple[str, str, str, str], ...] = (
    (
        "spark.python.unix.domain.socket.enabled",
        "false",
        "true",
        "Rows then reach Python through a Unix socket; over TCP every task takes some 30 ms longer.",
    ),
    (
        "spark.python.worker.reuse",
        "true",
        "true",
        "Otherwise every task starts a Python process and imports Arrow anew, about a second each.",
    ),
    (
        "spark.sql.execution.arrow.useLargeVarTypes",
        "false",
        "false",
        "Large offsets double the cost of short strings on their way to Python.",
    ),
)


def doctor(spark: SparkSession) -> list[Advice]:
    """Every setting of the session that costs a flow speed or safety; an empty list is a clean bill of health."""
    found = []
    for key, default, wanted, why in CHECKS:
        value = spark.conf.get(key, default) or default
        if value.lower() != wanted:
            found.append(Advice(key, value, wanted, why))
    return found + _batch_size(spark) + _speculation(spark) + _worker_python(spark)


def _batch_size(spark: SparkSession) -> list[Advice]:
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    value = spark.conf.get(key, "10000") or "10000"
    if 0 < int(value) < 50_000:
        return [Advice(key, value, SETTINGS[key], "Small batches cost a round through Arrow each.")]
    return []


def _speculation(spark: SparkSession) -> list[Advice]:
    local = str(spark.sparkContext.master).startswith("local[")
    if local or spark.conf.get("spark.task.maxFailures", "4") != "1":
        return []
    return [Advice("spark.task.maxFailures", "1", "4", "A single lost task would end the query.")]


def _worker_python(spark: SparkSession) -> list[Advice]:
    """On a cluster nobody here can tell which Python the executors have under a name."""
    used = spark.sparkContext.pythonExec
    found = shutil.which(used)
    if not str(spark.sparkContext.master).startswith(LOCAL) or (found and _same_python(found, sys.executable)):
        return []
    why = "Tasks run in another Python than this program, which need not have Trimtab. Set it before Spark starts."
    return [Advice(WORKER_PYTHON, used, sys.executable, why)]


def _same_python(one: str, other: str) -> bool:
    """Virtual environments link to one interpreter and differ by the folder of the link."""
    return Path(one).parent == Path(other).parent and Path(one).resolve() == Path(other).resolve()
