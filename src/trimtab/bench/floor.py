"""`trimtab bench floor`: what an epoch costs that has almost nothing to do, and where the time goes."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import msgspec
from pyspark.sql import SparkSession

from trimtab.bench.contenders import empty_stage, trimtab
from trimtab.bench.figures import Figure
from trimtab.bench.streams import Contender, bids, interleaved, seconds_of
from trimtab.spark.run import Run

ROWS = 20
PARTS = ("addBatch", "latestOffset", "getBatch", "queryPlanning", "walCommit", "commitOffsets")


class FloorResult(msgspec.Struct, frozen=True):
    """Seconds per trigger, their ratio, and where they go.

    `parts` are those of Spark's trigger, `addBatch` being the body; `steps` those of Trimtab's body.
    """

    rows: int
    lanes: int
    seconds: dict[str, Figure]
    ratio: float
    parts: dict[str, dict[str, float]]
    steps: dict[str, float]


def floor(spark: SparkSession, repetitions: int, progress: Callable[[str], None]) -> FloorResult:
    """Measure an almost empty epoch against an empty Python stage."""
    lanes = spark.sparkContext.defaultParallelism
    runs: list[Run] = []
    contenders = [
        Contender("trimtab", trimtab(lanes, seen=runs.append), warmup=10, epochs=30),
        Contender("empty_stage", empty_stage, warmup=10, epochs=30),
    ]
    measured = interleaved(spark, bids(spark, 50_000, ROWS, lanes), contenders, repetitions, progress)
    timings = [steps for run in runs[1:] for steps in run.timings[10:]]
    steps = {name: round(median(timing[name] for timing in timings), 6) for name in timings[0]}
    seconds = seconds_of(measured)
    ratio = seconds["trimtab"].median / seconds["empty_stage"].median
    parts = {part: {name: each.median for name, each in seconds_of(measured, part).items()} for part in PARTS}
    return FloorResult(ROWS, lanes, seconds, round(ratio, 3), parts, steps)
