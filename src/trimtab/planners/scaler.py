"""How many lanes there should be: asked after the plan, which is then made again (ALBIC III-A, Algorithm 1).

A policy sees the snapshot and the plan for it and answers which lanes to add and which to drain. The paper names three
reasons to ask after the plan: balance alone may cure an overload, collocation may lower the load, and lanes must not
go if the rest cannot be kept level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.metrics import TOLERANCE, utilisation
from trimtab.planners.plan import Answer, Infeasible, Plan
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints


@dataclass(frozen=True)
class ScaleDecision:
    """Lanes to add, lanes to drain, and why; nothing of either is a decision too."""

    add: int = 0
    drain: tuple[int, ...] = ()
    why: str = "the number of lanes is right"

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.add or self.drain)


@runtime_checkable
class Scaler(Protocol):
    """A policy: a pure function of the snapshot and of the plan for it."""

    def decide(self, snapshot: ClusterSnapshot, plan: Answer) -> ScaleDecision:
        """Which lanes to add and which to drain. Never both."""


@dataclass(frozen=True)
class NoScaling:
    """The number of lanes is the user's."""

    def decide(self, snapshot: ClusterSnapshot, plan: Answer) -> ScaleDecision:
        return ScaleDecision(why="scaling is off")


@dataclass(frozen=True)
class TargetUtilisation:
    """Keeps the mean load of the lanes that stay between two marks, in percent of their capacity.

    Out: the mean is above `high`, or above `target` and the planner found no plan. As many lanes of the usual size are
    added as bring the mean down to `target`. The mean is of the loads measured; a plan whose collocation lowers them
    shows in the next measure.

    In: the mean is below `low`, no lane is draining yet, and the plan could keep every lane within `high`. Lanes
    drain, those with the least state under the plan first, as long as the others could carry the load at `target` and
    the largest slot within `high`.

    Hysteresis: either step ends at or below `target` < `high`, so no step in is followed by one out; and to go in
    again the fewer lanes would have to be within `target`, which is just what the step out found they were not.
    While lanes drain no others do.

    >>> busy = ClusterSnapshot.of(load=[95, 85], capacity=[100, 100], lane=[0, 1])
    >>> TargetUtilisation().decide(busy, Plan(busy.lane, "as it was"))
    ScaleDecision(add=1, drain=(), why='the mean load is 90 % of capacity, above 85 %; with 3 lanes it is 60 %')
    """

    target: float = 70.0
    low: float = 50.0
    high: float = 85.0
    least: int = 1
    """Never fewer lanes."""
    most: int | None = None
    """Never more."""

    def __post_init__(self) -> None:
        for name in ("target", "low", "high"):
            if not math.isfinite(value := getattr(self, name)):
                raise ProblemError(f"options.{name} is {value}: it has to be a finite number.")
        if not 0 <= self.low < self.target:
            raise ProblemError(f"options.low is {self.low}: it has to be 0 or more and below target, {self.target}.")
        if not self.target < self.high:
            raise ProblemError(f"options.high is {self.high}: it has to be above target, {self.target}.")
        if self.least < 1:
            raise ProblemError(f"options.least is {self.least}: it has to be at least 1.")
        if self.most is not None and self.most < self.least:
            raise ProblemError(f"options.most is {self.most}: it has to be at least options.least, {self.least}.")

    def decide(self, snapshot: ClusterSnapshot, plan: Answer) -> ScaleDecision:
        """At most one of both: lanes to add, lanes to drain."""
        staying = int(snapshot.staying.size)
        if staying < self.least:
            lanes = "lane stays" if staying == 1 else "lanes stay"
            return ScaleDecision(self.least - staying, why=f"{staying} {lanes}, and there have to be {self.least}")
        mark = self.target if isinstance(plan, Infeasible) else self.high
        if snapshot.mean > mark * (1 + TOLERANCE):
            return self._out(snapshot, mark)
        if isinstance(plan, Infeasible):
            return ScaleDecision(why="there is no plan, but the lanes are not too few for the load")
        if snapshot.mean >= self.low or snapshot.draining.any():
            return ScaleDecision()
        return self._in(snapshot, plan)

    def _out(self, snapshot: ClusterSnapshot, mark: float) -> ScaleDecision:
        capacity = snapshot.capacity[snapshot.staying]
        usual, staying = float(np.median(capacity)), len(capacity)
        wanted = math.ceil((100 * snapshot.total / self.target - capacity.sum()) / usual * (1 - TOLERANCE))
        add = wanted if self.most is None else min(wanted, max(self.most - staying, 0))
        mean = 100 * snapshot.total / float(capacity.sum() + add * usual)
        why = f"the mean load is {snapshot.mean:.0f} % of capacity, above {mark:.0f} %"
        if add < wanted:
            return ScaleDecision(add, why=f"{why}; {self.most} lanes are the most allowed, which leaves {mean:.0f} %")
        return ScaleDecision(add, why=f"{why}; with {staying + add} lanes it is {mean:.0f} %")

    def _in(self, snapshot: ClusterSnapshot, plan: Plan) -> ScaleDecision:
        after = utilisation(snapshot, plan.lanes)
        if after.max() > self.high * (1 + TOLERANCE):
            return ScaleDecision(why=f"the plan leaves a lane with {after.max():.0f} %: fewer lanes would be no better")
        drain = self._spare(snapshot, _cheapest(snapshot, plan.lanes, after))
        left = np.setdiff1d(snapshot.staying, drain)
        mean = 100 * snapshot.total / float(snapshot.capacity[left].sum())
        why = f"the mean load is {snapshot.mean:.0f} % of capacity, below {self.low:.0f} %"
        if not drain:
            return ScaleDecision(why=f"{why}, but no lane can go")
        return ScaleDecision(
            drain=drain, why=f"{why}; with {len(left)} lanes it is {mean:.0f} %, and these hold the least state"
        )

    def _spare(self, snapshot: ClusterSnapshot, order: Ints) -> tuple[int, ...]:
        """The first lanes of an order without which the others would do."""
        left = snapshot.capacity[order].sum() - np.cumsum(snapshot.capacity[order])
        largest = np.maximum.accumulate(snapshot.capacity[order][::-1])[::-1]
        largest = np.append(largest[1:], 0.0)
        room = (1 + TOLERANCE) / 100
        fits = (snapshot.total <= self.target * room * left) & (
            snapshot.load.max(initial=0) <= self.high * room * largest
        )
        count = int(np.argmin(np.append(fits[: len(order) - self.least], False)))
        return tuple(order[:count].tolist())


def _cheapest(snapshot: ClusterSnapshot, lanes: Ints, load: Floats) -> Ints:
    """Lanes that stay, those with the least state first, then those with the least load."""
    state = np.bincount(lanes, snapshot.state, snapshot.lanes)
    staying = snapshot.staying
    return staying[np.lexsort((load[staying], state[staying]))]
