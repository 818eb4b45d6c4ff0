"""`trimtab bench keyed`: a running sum per key against Spark's own ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from pyspark.sql import SparkSession

from trimtab.bench.contenders import trimtab
from trimtab.bench.figures import Figure
from trimtab.bench.peers import HDFS, ROCKSDB, apply_pandas, native, tws_pandas
from trimtab.bench.streams import Contender, bids, interleaved, seconds_of

ROWS = 500_000


class KeyedCase(msgspec.Struct, frozen=True):
    """Rows per second and ratios with so many keys."""

    keys: int
    rows: int
    seconds: dict[str, Figure]
    rows_per_s: dict[str, int]
    ratio: dict[str, float]


def keyed(
    spark: SparkSession, keys: Sequence[int], repetitions: int, quick: bool, progress: Callable[[str], None]
) -> list[KeyedCase]:
    """Measure every contender. Native Spark runs with both of its state stores, and the better one counts."""
    return [_case(spark, count, repetitions, quick, progress) for count in keys]


def contenders(lanes: int, quick: bool) -> list[Contender]:
    """Spark's Python operators take seconds per epoch, so fewer of their epochs are measured."""
    partitions = ("spark.sql.shuffle.partitions", str(lanes))
    few = 2 if quick else 3
    return [
        Contender("trimtab", trimtab(lanes), settings=(partitions,)),
        Contender("native_rocksdb", native, settings=(partitions, *ROCKSDB)),
        Contender("native_hdfs", native, settings=(partitions, *HDFS)),
        Contender("tws_pandas", tws_pandas, 1, few, (partitions, *ROCKSDB), rehearsed=False),
        Contender("apply_pandas", apply_pandas, 1, few, (partitions, *HDFS), rehearsed=False),
    ]


def _case(spark: SparkSession, keys: int, repetitions: int, quick: bool, progress: Callable[[str], None]) -> KeyedCase:
    lanes = spark.sparkContext.defaultParallelism
    frame = bids(spark, keys, ROWS, lanes)
    measured = interleaved(
        spark, frame, contenders(lanes, quick), repetitions, lambda text: progress(f"{keys} keys: {text}")
    )
    seconds = seconds_of(measured)
    stores = {name: seconds[name] for name in ("native_rocksdb", "native_hdfs")}
    seconds["native"] = min(stores.values(), key=lambda store: store.median)
    rates = {name: round(ROWS / each.median) for name, each in seconds.items()}
    ratio = {name: round(rates["trimtab"] / rates[name], 3) for name in ("native", "tws_pandas", "apply_pandas")}
    return KeyedCase(keys, ROWS, seconds, rates, ratio)
