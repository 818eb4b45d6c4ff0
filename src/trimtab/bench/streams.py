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


Durations = dict[str, float]
"""Seconds of a trigger's parts, by Spark's names for them."""
WHOLE = "triggerExecution"
Measured = dict[str, list[list[Durations]]]
"""Triggers of every contender, by repetition."""


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
    return [durations[WHOLE] for durations in epoch_durations(spark, frame, contender)]


def epoch_durations(spark: SparkSession, frame: DataFrame, contender: Contender) -> list[Durations]:
    """The same with the parts of each trigger."""
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


def wait_for_epochs(query: StreamingQuery, wanted: int) -> list[Durations]:
    """The first `wanted` triggers that had rows."""
    epochs: dict[int, Durations] = {}
    while len(epochs) < wanted:
        if query.awaitTermination(0.2):  # type: ignore[arg-type]  # fractions are fine
            raise RuntimeError(f"the query ended early: {query.exception()}")
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                epochs[progress["batchId"]] = {part: ms / 1000 for part, ms in progress["durationMs"].items()}
    return [epochs[batch] for batch in sorted(epochs)][:wanted]


def interleaved(
    spark: SparkSession,
    frame: DataFrame,
    contenders: Sequence[Contender],
    repetitions: int,
    progress: Callable[[str], None],
) -> Measured:
    """The epochs of every contender, taking turns `repetitions` times, each time with another one first."""
    measured: Measured = {contender.name: [] for contender in contenders}
    for contender in contenders:
        if contender.rehearsed:
            progress(f"{contender.name}, warming up")
            epoch_durations(spark, frame, contender)
    for repetition in range(repetitions):
        first = repetition % len(contenders)
        for contender in [*contenders[first:], *contenders[:first]]:
            progress(f"{contender.name}, repetition {repetition + 1} of {repetitions}")
            measured[contender.name].append(epoch_durations(spark, frame, contender))
    return measured


def seconds_of(measured: Measured, part: str = WHOLE) -> dict[str, Figure]:
    """What a part of the triggers took each contender."""
    return {
        name: figure([[epoch.get(part, 0.0) for epoch in epochs] for epochs in repetitions])
        for name, repetitions in measured.items()
    }
