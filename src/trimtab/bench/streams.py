"""Contenders: streaming queries over the same generated rows, timed by Spark's own clock for the whole trigger."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming.query import StreamingQuery

from trimtab.bench.figures import Figure, figure
from trimtab.spark.shape import shaped

Start = Callable[[DataFrame, str], tuple[StreamingQuery, Callable[[], object]]]
"""Starts a query on a frame with a checkpoint folder; returns it and what stops it."""


@dataclass(frozen=True)
class Contender:
    """One way to do the job: how it starts, with which settings, and for how many epochs it is measured."""

    name: str
    start: Start
    warmup: int = 4
    epochs: int = 12
    settings: tuple[tuple[str, str], ...] = ()
    rehearsed: bool = True
    """Whether it gets a turn that does not count, so that the first to run does not pay for a cold Java machine."""


def generated(spark: SparkSession, rows: int, partitions: int) -> DataFrame:
    """A stream with so many rows in every micro-batch: `value` counts up from 0, made by the JVM."""
    source = spark.readStream.format("rate-micro-batch")
    return source.option("rowsPerBatch", rows).option("numPartitions", partitions).load()


def bids(spark: SparkSession, keys: int, rows: int, partitions: int) -> DataFrame:
    """Bids whose auctions are spread evenly over so many keys."""
    value = F.col("value")
    auction = F.pmod(F.xxhash64(value), F.lit(keys)).alias("auction")
    return generated(spark, rows, partitions).select(auction, F.pmod(value, F.lit(100)).alias("price"))


def epoch_seconds(spark: SparkSession, frame: DataFrame, contender: Contender) -> list[float]:
    """Seconds per trigger of a fresh run of a contender, warm-up left out."""
    folder = tempfile.mkdtemp(prefix="trimtab-bench-")
    try:
        with shaped(spark, dict(contender.settings)):
            query, stop = contender.start(frame, str(Path(folder) / "checkpoint"))
        try:
            return wait_for_epochs(query, contender.warmup + contender.epochs)[contender.warmup :]
        finally:
            stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_for_epochs(query: StreamingQuery, wanted: int) -> list[float]:
    """Seconds of the first `wanted` triggers that had rows."""
    seconds: dict[int, float] = {}
    while len(seconds) < wanted:
        if query.awaitTermination(0.2):  # type: ignore[arg-type]  # fractions are fine
            raise RuntimeError(f"the query ended early: {query.exception()}")
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                seconds[progress["batchId"]] = progress["durationMs"]["triggerExecution"] / 1000
    return [seconds[batch] for batch in sorted(seconds)][:wanted]


def interleaved(
    spark: SparkSession,
    frame: DataFrame,
    contenders: Sequence[Contender],
    repetitions: int,
    progress: Callable[[str], None],
) -> dict[str, Figure]:
    """Seconds per epoch of every contender, taking turns `repetitions` times, each time with another one first."""
    measured: dict[str, list[list[float]]] = {contender.name: [] for contender in contenders}
    for contender in contenders:
        if contender.rehearsed:
            progress(f"{contender.name}, warming up")
            epoch_seconds(spark, frame, contender)
    for repetition in range(repetitions):
        first = repetition % len(contenders)
        for contender in [*contenders[first:], *contenders[:first]]:
            progress(f"{contender.name}, repetition {repetition + 1} of {repetitions}")
            measured[contender.name].append(epoch_seconds(spark, frame, contender))
    return {name: figure(each) for name, each in measured.items()}
