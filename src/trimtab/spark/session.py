"""A well-set Spark session, and a doctor for one that somebody else made."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(master: str = "local[*]", app: str = "trimtab", memory: str = "2g", **settings: str) -> SparkSession:
    """A Spark session set for Trimtab, or the one that already runs in this process.

    `settings` are more of Spark's own, with underscores for dots where that is handier:
    `session(**{"spark.sql.shuffle.partitions": "4"})`.
    """
    builder = SparkSession.builder.master(master).appName(app).config("spark.driver.memory", memory)
    for key, value in {**SETTINGS, **settings}.items():
        builder = builder.config(key, value)
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
    return found + _batch_size(spark) + _speculation(spark)


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
