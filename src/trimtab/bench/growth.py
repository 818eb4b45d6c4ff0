"""`trimtab bench growth`: time per epoch as held state grows and rows per epoch stay the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming.query import StreamingQuery

from trimtab.bench.contenders import trimtab
from trimtab.bench.figures import Figure, figure, percentile
from trimtab.bench.peers import HDFS, ROCKSDB, native
from trimtab.bench.streams import Contender, Start, epoch_seconds, generated

ROWS = 50_000
SMALLEST = 50_000


class GrowthCase(msgspec.Struct, frozen=True):
    """Seconds per epoch with so many keys held, and the bytes of state that Trimtab wrote per epoch."""

    keys: int
    seconds: dict[str, Figure]
    p99: dict[str, float]
    bytes_per_epoch: Figure


class GrowthResult(msgspec.Struct, frozen=True):
    """Every size, and the greatest against the smallest."""

    rows_per_epoch: int
    cases: list[GrowthCase]
    median_ratio: dict[str, float]
    p99_ratio: dict[str, float]


def growth(
    spark: SparkSession, factors: Sequence[int], epochs: int, repetitions: int, progress: Callable[[str], None]
) -> GrowthResult:
    """Measure every size."""
    cases = [_case(spark, SMALLEST * factor, epochs, repetitions, progress) for factor in factors]
    small, large = cases[0], cases[-1]
    medians = {name: round(large.seconds[name].median / small.seconds[name].median, 3) for name in small.seconds}
    tails = {name: round(large.p99[name] / small.p99[name], 3) for name in small.p99}
    return GrowthResult(ROWS, cases, medians, tails)


def touches(spark: SparkSession, keys: int, partitions: int) -> DataFrame:
    """First every key once, in order, then keys at random, always so many rows per epoch."""
    value = F.col("value")
    auction = F.when(value < keys, value).otherwise(F.pmod(F.xxhash64(value), F.lit(keys))).alias("auction")
    return generated(spark, ROWS, partitions).select(auction, F.pmod(value, F.lit(100)).alias("price"))


def _case(spark: SparkSession, keys: int, epochs: int, repetitions: int, progress: Callable[[str], None]) -> GrowthCase:
    lanes = spark.sparkContext.defaultParallelism
    frame = touches(spark, keys, lanes)
    filling = -(-keys // ROWS)
    written: list[list[float]] = []
    partitions = ("spark.sql.shuffle.partitions", str(lanes))
    contenders = [
        Contender("trimtab", recorded(trimtab(lanes), written), filling + 4, epochs, (partitions,)),
        Contender("native_rocksdb", native, filling + 4, epochs, (partitions, *ROCKSDB)),
        Contender("native_hdfs", native, filling + 4, epochs, (partitions, *HDFS)),
    ]
    seconds: dict[str, list[list[float]]] = {contender.name: [] for contender in contenders}
    for repetition in range(repetitions):
        for contender in contenders:
            progress(f"{keys} keys: {contender.name}, repetition {repetition + 1} of {repetitions}")
            seconds[contender.name].append(epoch_seconds(spark, frame, contender))
    figures = {name: figure(each) for name, each in seconds.items()}
    tails = {name: percentile(each, 99) for name, each in seconds.items()}
    return GrowthCase(keys, figures, tails, figure(written))


def recorded(start: Start, written: list[list[float]]) -> Start:
    """The contender, which notes when it stops what its epochs wrote, by their commit records."""

    def wrapped(frame: DataFrame, checkpoint: str) -> tuple[StreamingQuery, Callable[[], object]]:
        query, stop = start(frame, checkpoint)

        def stop_and_note() -> None:
            stop()
            written.append(committed_bytes(checkpoint)[-20:])

        return query, stop_and_note

    return wrapped


def committed_bytes(checkpoint: str) -> list[float]:
    """Bytes of segments by epoch, from the commits that the checkpoint still keeps."""
    records = [json.loads(path.read_text().split("\n", 1)[1]) for path in sorted(Path(checkpoint, "commits").iterdir())]
    return [float(record["measure"]["bytes_written"]) for record in records]
