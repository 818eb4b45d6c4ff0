"""Runs contenders on the clock and notes what became of every epoch."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from trimtab.bench.skew.contenders import Contender
from trimtab.bench.skew.source import stream
from trimtab.ports import SystemClock
from trimtab.spark.shape import shaped
from trimtab.vocab import Measure

WARM_SECONDS = 3.0
LATE = 120.0
"""So many seconds after its time a run whose epochs do not end is given up."""


class Series(msgspec.Struct, frozen=True):
    """One run. Entry i of the first five is about the i-th epoch that had rows; times count from the first arrival.

    `latency` is the mean over the epoch's rows of the time from a row's arrival to the end of its epoch, `worst` that
    of the epoch's first row. Of Trimtab's own runs also: the busiest lane against the mean by epoch, when slots moved
    and how many, and the seconds of every plan.
    """

    end: list[float]
    rows: list[int]
    seconds: list[float]
    latency: list[float]
    worst: list[float]
    peak_load: list[float] = []
    moved_at: list[float] = []
    moved: list[int] = []
    planning: list[float] = []

    def pace(self, since: float = 0.0) -> float:
        """Rows per second over the epochs that began at `since` or later; 0 without any."""
        later = [place for place, end in enumerate(self.end) if place and self.end[place - 1] >= since]
        if not later:
            return 0.0
        return sum(self.rows[place] for place in later) / (self.end[later[-1]] - self.end[later[0] - 1])


def interleaved(
    spark: SparkSession,
    contenders: Sequence[Contender],
    seconds: float,
    repetitions: int,
    progress: Callable[[str], None],
) -> dict[str, list[Series]]:
    """Every contender's runs of so many seconds, in turns, each time with another one first.

    A throw-away run goes before each one: Spark ends Python workers that have nothing to do for a minute.
    """
    result: dict[str, list[Series]] = {contender.name: [] for contender in contenders}
    for repetition in range(repetitions):
        first = repetition % len(contenders)
        for contender in [*contenders[first:], *contenders[:first]]:
            progress(f"{contender.name}, repetition {repetition + 1} of {repetitions}")
            observe(spark, contender, WARM_SECONDS)
            result[contender.name].append(observe(spark, contender, seconds))
    return result


def observe(spark: SparkSession, contender: Contender, seconds: float) -> Series:
    """One run; it ends with the first epoch that is over when `seconds` have gone by since the first arrival."""
    folder = tempfile.mkdtemp(prefix="trimtab-bench-")
    try:
        with shaped(spark, dict(contender.settings)):
            query, stop = contender.start(stream(spark, contender.input), str(Path(folder) / "checkpoint"))
        try:
            epochs = wait(query, seconds)
        finally:
            stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return series_of(epochs, contender)


def wait(query: StreamingQuery, seconds: float) -> list[Any]:
    """Spark's reports of the epochs that had rows, until one ends so late."""
    reports: dict[int, Any] = {}
    clock = SystemClock()
    deadline = clock.monotonic() + seconds + LATE
    while not reports or ended(reports[max(reports)]) < seconds:
        if query.awaitTermination(0.2) or clock.monotonic() > deadline:  # type: ignore[arg-type]  # fractions are fine
            raise RuntimeError(f"the query ended early, or its epochs do not: {query.exception()}")
        for report in query.recentProgress:
            if taken(report)[1] > taken(report)[0]:
                reports[report["batchId"]] = report
    return [reports[batch] for batch in sorted(reports)]


def taken(report: Any) -> tuple[int, int]:
    """The numbers of the first row of an epoch and of the first one behind it."""
    [source] = report["sources"]
    return offset(source["startOffset"])["row"], offset(source["endOffset"])["row"]


def offset(text: str | None) -> Any:
    """An offset of the source; before the first epoch it has none."""
    return json.loads(text or "null") or {"row": 0}


def ended(report: Any) -> float:
    """When an epoch's trigger was over, by Spark's clock, in seconds since the first arrival."""
    began = np.datetime64(report["timestamp"].rstrip("Z"), "ms").astype(np.int64) / 1000
    begin = offset(report["sources"][0]["endOffset"])["begin"]
    return float(began + report["durationMs"]["triggerExecution"] / 1000 - begin)


def series_of(reports: Sequence[Any], contender: Contender) -> Series:
    """The run as a series."""
    rate = contender.input.rate
    end = np.array([ended(report) for report in reports])
    first, last = np.array([taken(report) for report in reports]).T
    worst = end - first / rate
    run = contender.runs[-1] if contender.runs else None
    history = None if run is None else run.history()
    begin = offset(reports[0]["sources"][0]["endOffset"])["begin"]
    applied = [] if history is None else [event for event in history.of_kind("applied") if event.message]
    return Series(
        np.round(end, 3).tolist(),
        (last - first).tolist(),
        [report["durationMs"]["triggerExecution"] / 1000 for report in reports],
        np.round(worst - (last - first) / rate / 2, 3).tolist(),
        np.round(worst, 3).tolist(),
        [] if history is None else [peak_load(measure) for measure in history.measures if measure.rows][: len(end)],
        [round(event.at - begin, 3) for event in applied],
        [len(event.message.moves) for event in applied if event.message],
        [round(each, 6) for each in contender.planners[-1].seconds] if contender.planners else [],
    )


def peak_load(measure: Measure) -> float:
    """The busy time of the busiest lane against the mean."""
    busy = np.array([lane.busy for lane in measure.lanes])
    return round(float(busy.max() / busy.mean()), 4) if busy.any() else 1.0
