"""A model of an ordered region, not a measurement: closed formulas for throughput and blocking under given weights.

A splitter can send `speed` rows a second; lane j can process `capacity[j]` of them. Rows leave in order, so all lanes
go at the pace of the one that needs longest for its share: the throughput is the least of `speed` and of capacity /
share over the lanes. What the splitter could have sent beyond that, as a share of `speed`, is the time it waits.

It waits for one lane only, the draft leader: the lane that led before as long as it is within `DRAFT` of the slowest,
else the slowest (Blocking rate 4.2). Paces are jittered by one percent for this, so that equal lanes take turns.
That no other lane seems to block is the harshest reading of the paper; a real region tells the balancer more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from trimtab.planners.snapshot import Floats, Ints
from trimtab.planners.splitter import Splitter, SplitterState
from trimtab.planners.splitter_allocation import allocate
from trimtab.planners.splitter_curves import UNITS
from trimtab.ports import chance

DRAFT = 0.02
JITTER = 0.01


@dataclass
class Region:
    """The lanes, and who leads."""

    capacity: Floats
    speed: float
    seed: int = 1
    leader: int = 0

    def __post_init__(self) -> None:
        self._chance = chance(self.seed)

    def throughput(self, weights: Ints) -> float:
        """Rows a second."""
        slowest = float((weights / UNITS / self.capacity).max())
        return min(self.speed, 1 / slowest)

    def blocking(self, weights: Ints) -> Floats:
        """By lane, the share of the next second that is spent waiting for it."""
        paces = weights / self.capacity * (1 + JITTER * self._chance.standard_normal(len(weights)))
        if paces[self.leader] < (1 - DRAFT) * paces.max():
            self.leader = int(paces.argmax())
        rates = np.zeros(len(weights))
        rates[self.leader] = 1 - min(1.0, UNITS / paces[self.leader] / self.speed)
        return rates


@dataclass
class Trace:
    """What happened in every second."""

    weights: list[list[int]] = field(default_factory=list)
    clusters: list[list[int]] = field(default_factory=list)
    throughput: list[float] = field(default_factory=list)
    blocking: list[list[float]] = field(default_factory=list)

    def seconds_for(self, rows: float) -> float:
        """How long it took until so many rows were through; at the last pace if they never were."""
        done = np.cumsum(self.throughput)
        if done[-1] < rows:
            return len(done) + (rows - float(done[-1])) / self.throughput[-1]
        last = int(np.searchsorted(done, rows))
        return last + 1 - float(done[last] - rows) / self.throughput[last]


def even(lanes: int) -> Ints:
    """Round robin."""
    return np.array(Splitter().start(lanes).weights)


def oracle(capacity: Floats) -> Ints:
    """The best weights there are for known capacities."""
    curves = np.arange(UNITS + 1) / capacity[:, None]
    lanes = [np.array([lane]) for lane in range(len(capacity))]
    return allocate(curves, lanes, even(len(capacity)), UNITS)


Change = Callable[[int, float], Floats]
"""The capacities after so many seconds and rows."""


def balanced(region: Region, splitter: Splitter, seconds: int, change: Change | None = None) -> Trace:
    """The region with its weights from the splitter, once a second."""
    trace, state, rows = Trace(), splitter.start(len(region.capacity)), 0.0
    for second in range(seconds):
        if change:
            region.capacity = change(second, rows)
        rows += _second(region, state, trace)
        state = splitter.observe(state, trace.blocking[-1])
    return trace


def _second(region: Region, state: SplitterState, trace: Trace) -> float:
    weights = np.array(state.weights)
    trace.weights.append(state.weights)
    trace.clusters.append(state.clusters)
    trace.throughput.append(region.throughput(weights))
    trace.blocking.append(region.blocking(weights).tolist())
    return trace.throughput[-1]
