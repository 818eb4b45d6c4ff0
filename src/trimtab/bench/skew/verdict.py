"""What runs come to: whether a stream is level, how soon, and how late its rows are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np

from trimtab.bench.figures import Figure, figure, percentile
from trimtab.bench.skew.run import Series

ENOUGH = 0.95
"""Of uniform input's throughput: what a balanced stream has to reach."""
LEVEL = 1.1
"""The most that the busiest lane of a level stream may have over the mean (AutoFlow, Fig. 5)."""
FLAT = 0.05
"""Seconds of latency that a stream may gain per second and still be called level."""
GRACE = 5
"""So many epochs after the first full window a stream has to be level."""
TOGETHER = 3
"""Epochs are judged so many at a time: one takes what came during another, so that single ones go up and down."""


class Outcome(msgspec.Struct, frozen=True):
    """A contender's runs. Throughput, slope and the busiest lane are over what is left of each run `since` it settled.

    `slope` is seconds of latency gained per second. `paced_after` and `level_after` count epochs from the first full
    window, by run; None where it never came.
    """

    throughput: Figure
    epoch_seconds: Figure
    epoch_p95: float
    epoch_p99: float
    latency_peak: Figure
    latency_end: Figure
    slope: Figure
    busiest_lane: Figure | None
    moves: list[int]
    planning_seconds: Figure | None
    paced_after: list[int | None]
    level_after: list[int | None]


def outcome(runs: Sequence[Series], since: Sequence[float], uniform: Sequence[float], window: int) -> Outcome:
    """The outcome of a contender's runs, given when each settled and the pace of uniform input in its repetition."""
    loads = [load for run, when in zip(runs, since, strict=True) if (load := settled_loads(run, when))]
    plans = [run.planning for run in runs if run.planning]
    return Outcome(
        throughput=figure([[run.pace(when)] for run, when in zip(runs, since, strict=True)]),
        epoch_seconds=figure([run.seconds for run in runs]),
        epoch_p95=percentile([run.seconds for run in runs], 95),
        epoch_p99=percentile([run.seconds for run in runs], 99),
        latency_peak=figure([[max(run.worst)] for run in runs]),
        latency_end=figure([run.latency[-TOGETHER:] for run in runs]),
        slope=figure([[slope(run, when)] for run, when in zip(runs, since, strict=True)]),
        busiest_lane=figure(loads) if loads else None,
        moves=[sum(run.moved) for run in runs],
        planning_seconds=figure(plans) if plans else None,
        paced_after=[paced_after(run, window, pace) for run, pace in zip(runs, uniform, strict=True)],
        level_after=[level_after(run, window) for run in runs],
    )


def settles(run: Series, window: int, seconds: float) -> float:
    """When a balanced run ought to be level: `GRACE` epochs after the first full window.

    A run too short for that is judged by its last third.
    """
    place = window - 1 + GRACE
    return min(run.end[place], seconds * 2 / 3) if place < len(run.end) else seconds * 2 / 3


def settled_loads(run: Series, since: float) -> list[float]:
    """The busiest lane against the mean, by epoch that ended after `since`."""
    return [load for load, end in zip(run.peak_load, run.end, strict=False) if end > since]


def slope(run: Series, since: float) -> float:
    """Seconds of latency gained per second; 0 where there is too little to tell."""
    later = [place for place, end in enumerate(run.end) if end > since]
    if len(later) < 2:
        return 0.0
    return float(np.polyfit([run.end[place] for place in later], [run.latency[place] for place in later], 1)[0])


def rises(run: Series) -> bool:
    """Whether latency rises throughout: from every third of the run to the next."""
    thirds = np.array_split(np.array(run.latency), 3)
    means = [float(third.mean()) for third in thirds if third.size]
    return all(later > earlier for earlier, later in pairwise(means))


def paced_after(run: Series, window: int, uniform: float) -> int | None:
    """How many epochs after the first full window rows are taken nearly as fast as those of uniform input."""
    for first in range(window, len(run.end) - TOGETHER + 1):
        last = first + TOGETHER - 1
        if sum(run.rows[first : last + 1]) >= ENOUGH * uniform * (run.end[last] - run.end[first - 1]):
            return first - window + 1
    return None


def level_after(run: Series, window: int) -> int | None:
    """How many epochs after the first full window no lane is much busier than the mean, some epochs in a row."""
    for first in range(window, len(run.peak_load) - TOGETHER + 1):
        if max(run.peak_load[first : first + TOGETHER]) <= LEVEL:
            return first - window + 1
    return None
