"""The settings of Spark that decide how a source's rows fall into partitions.

A claim records them and a replay sets them again: (partition, position) is the order of rows, and with other settings
the file source would deal its files out differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

PARALLELISM = "spark.sql.leafNodeDefaultParallelism"
KEYS = (
    PARALLELISM,
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.maxPartitionNum",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    # Where a large partition is cut into chunks.
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.execution.arrow.maxBytesPerBatch",
)


def current_shape(spark: SparkSession) -> dict[str, str]:
    """The settings in force, those that Spark would derive from the machine made explicit."""
    shape = {key: str(value) for key in KEYS if (value := spark.conf.get(key, None)) is not None}
    return {PARALLELISM: str(spark.sparkContext.defaultParallelism), **shape}


def apply_shape(spark: SparkSession, shape: dict[str, str]) -> None:
    """Set the settings on a session, and unset those that the shape does not have."""
    for key in KEYS:
        if key in shape:
            spark.conf.set(key, shape[key])
        else:
            spark.conf.unset(key)


class HeldShape:
    """Settings kept on the session that a flow's source was made with, until they are released.

    A query works in a copy of that session, but Spark plans the source's files by the settings of the original.
    """

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.usual = current_shape(session)
        """The session's own, for every batch that is not claimed yet."""
        self._own: dict[str, str] | None = None

    def hold(self, settings: dict[str, str]) -> None:
        """Have the source dealt out by these settings."""
        self._own = {key: str(value) for key in KEYS if (value := self.session.conf.get(key, None)) is not None}
        apply_shape(self.session, settings)

    def release(self) -> None:
        """Give the session back its own settings, if it is without them."""
        if self._own is not None:
            apply_shape(self.session, self._own)
            self._own = None


@contextmanager
def shaped(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """The session with some settings, as it was before afterwards. A query keeps those in force when it starts."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
