"""Shares of an ordered region's lanes from their blocking rates: a small state machine (Blocking rate 5).

The input of an ordered region leaves in the order in which it came, so its slowest lane holds up all others, and the
throughput of a lane says nothing about it. Blocking does: the share of a sample's time that was spent waiting for the
lane, in [0, 1]. Usually a single lane blocks in a sample, the *draft leader*, even where all are equally slow.

`Splitter.observe` takes the state and the blocking of every lane under the weights in force and returns the next
state, with new weights in thousandths:

1. the blocking is smoothed into the raw data of each lane at its weight;
2. raw data at weights above the present one fades, so that what was learnt long ago gets explored again;
3. each lane's data becomes a function (`splitter_curves`);
4. with many lanes, those with close functions share one, the average (`splitter_clusters`);
5. the weights minimise the largest of the functions (`splitter_allocation`).

The state is plain data that survives a restart. What the paper leaves open and we chose: `smoothing`, `change` and
`cut`. Blocking of 0 is recorded like any other; a weight of 0 teaches nothing and is not recorded.

We deviate in one thing. The paper's data fades by 10 % a step however many lanes there are; but with one draft leader
a sample, each of 64 lanes is heard of once in 64 samples, and by then fading has left a thousandth of it. On the model
of the study `weights`, clusters then hardly ever come apart and the throughput stays at an eighth of what there is. So
beyond `brisk` lanes fading slows down in proportion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.snapshot import Floats, Ints
from trimtab.planners.splitter_allocation import allocate
from trimtab.planners.splitter_clusters import agglomerate, features
from trimtab.planners.splitter_curves import UNITS, curve, knee, regressed


class SplitterState(msgspec.Struct, frozen=True):
    """What the splitter knows after some samples."""

    weights: list[int]
    """By lane, in thousandths of the rows."""
    raw: list[dict[int, float]]
    """By lane, the blocking at each weight it has had."""
    clusters: list[int]
    """By lane, the cluster whose function it shared for these weights."""
    samples: int = 0


@dataclass(frozen=True)
class Splitter:
    """The options, and the transition.

    >>> splitter = Splitter()
    >>> state = splitter.start(2)
    >>> for _ in range(12):
    ...     slow = max(0.0, 1 - 250 / max(state.weights[0], 1))
    ...     state = splitter.observe(state, [slow, 0.0])
    >>> state.weights[0] < 350, sum(state.weights)
    (True, 1000)
    """

    smoothing: float = 0.5
    """The share of a new observation in what is recorded."""
    change: float = 0.1
    """By how much of the whole a weight may rise or fall in one step."""
    tilt: float = 1e-6
    """How much a function rises per unit of weight at least: delta."""
    decay: float = 0.1
    """What raw data above the present weight loses in every step; 0 never explores again."""
    brisk: int = 6
    """Up to so many lanes data fades by all of `decay`; with n times as many it takes n steps to."""
    most_alone: int = 16
    """Up to so many lanes each has a function of its own."""
    cut: float = 0.5
    """Lanes whose functions are further apart than this share no cluster; 0.5 tells capacities of 1 and 1.7 apart."""

    def __post_init__(self) -> None:
        _within("smoothing", self.smoothing, 0 < self.smoothing <= 1, "above 0 and at most 1")
        _within("change", self.change, 1 / UNITS <= self.change <= 1, "between 0.001 and 1")
        _within("tilt", self.tilt, 0 < self.tilt < 1 / UNITS, "above 0 and below 0.001")
        _within("decay", self.decay, 0 <= self.decay < 1, "at least 0 and below 1")
        _within("brisk", self.brisk, self.brisk >= 1, "at least 1")
        _within("most_alone", self.most_alone, self.most_alone >= 1, "at least 1")
        _within("cut", self.cut, self.cut > 0, "above 0")

    def start(self, lanes: int) -> SplitterState:
        """Even shares, nothing known."""
        _within("lanes", lanes, lanes >= 1, "at least 1", root="")
        weights = [UNITS // lanes + (lane < UNITS % lanes) for lane in range(lanes)]
        return SplitterState(weights, [{} for _ in range(lanes)], list(range(lanes)))

    def observe(self, state: SplitterState, blocking: Sequence[float]) -> SplitterState:
        """The next state, after the lanes blocked so much under the weights in force."""
        self._check(state, blocking)
        lanes = zip(state.raw, state.weights, blocking, strict=True)
        kept = (1 - self.decay) ** min(1.0, self.brisk / len(blocking))
        raw = [self._recorded(data, weight, rate, kept) for data, weight, rate in lanes]
        curves, points = self._functions(raw)
        clusters = self._clusters(points)
        members = [np.flatnonzero(clusters == each) for each in range(int(clusters.max()) + 1)]
        shared = np.array([curves[lanes].mean(axis=0) for lanes in members])
        weights = allocate(shared, members, np.array(state.weights), round(self.change * UNITS))
        return SplitterState(weights.tolist(), raw, clusters.tolist(), state.samples + 1)

    def _check(self, state: SplitterState, blocking: Sequence[float]) -> None:
        if len(blocking) != len(state.weights):
            raise ProblemError(f"blocking has {len(blocking)} rates: there are {len(state.weights)} lanes.")
        for lane, rate in enumerate(blocking):
            _within(f"blocking[{lane}]", rate, 0 <= rate <= 1, "between 0 and 1", root="")

    def _recorded(self, data: dict[int, float], weight: int, rate: float, kept: float) -> dict[int, float]:
        """The data of a lane after a sample; beyond its weight, so much of it as is kept."""
        faded = {each: value * kept if each > weight else value for each, value in data.items()}
        if weight:
            faded[weight] = self.smoothing * rate + (1 - self.smoothing) * faded.get(weight, rate)
        return faded

    def _functions(self, raw: list[dict[int, float]]) -> tuple[Floats, Floats]:
        """By lane, its function, and what the distance compares."""
        curves, points = [], []
        for data in raw:
            weights, values = regressed(*_sorted(data))
            curves.append(curve(weights, values, self.tilt))
            points.append(features(curves[-1], knee(weights, values, UNITS * self.tilt), self.tilt))
        return np.array(curves), np.array(points)

    def _clusters(self, points: Floats) -> Ints:
        return agglomerate(points, self.cut) if len(points) > self.most_alone else np.arange(len(points))


def _sorted(data: dict[int, float]) -> tuple[Ints, Floats]:
    weights = np.array(sorted(data), np.int64)
    return weights, np.array([data[each] for each in weights.tolist()], np.float64)


def _within(name: str, value: float, fine: bool, wanted: str, root: str = "options.") -> None:
    if not fine:
        raise ProblemError(f"{root}{name} is {value}: it has to be {wanted}.")
