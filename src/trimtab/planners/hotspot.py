"""AutoFlow's hotspot diminishing: half the gap between the hottest and the coldest lane (AutoFlow III-D, Alg. 3).

What counts is how many rows each slot processed over the last `window` epochs, or the snapshot's load where it has no
window. When the gap between the most and the least loaded lane is at least `factor` of the former, its slots are tried
in descending order and taken if they fit into what is left of half the gap. The counts of a slot go with it when it
moves, so the next window does not see the gap again that this one has closed.

Guards that the printed code lacks: nothing happens when no lane counted anything, and slots without rows stay (they
would all move, since they fit into any gap). Factor and window are unpublished; ours are 0.2 and what a flow's control
keeps, 5 epochs unless it is told otherwise. One pair of lanes a call, as in the paper; `pairs` allows more.

Our additions: lanes of unlike capacity are compared by count / capacity, and half the gap is what levels the two;
slots without a lane go to the least loaded one, and lanes that drain are emptied, both before any pair is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.objective import Objective
from trimtab.planners.plan import Infeasible, Plan, no_lane
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints


@dataclass(frozen=True)
class Hotspot:
    """Algorithm 3.

    >>> hot = ClusterSnapshot.of(load=[50, 30, 10, 5], capacity=[100, 100], lane=[0, 0, 0, 1])
    >>> plan = Hotspot().plan(hot)
    >>> plan.lanes.tolist(), plan.reasons[1]
    ([0, 1, 1, 1], 'lane 0 had 189 % of the mean and lane 1 11 %')
    """

    objective: ClassVar[Objective] = "balance"
    window: int | None = None
    """How many of the last epochs count; all that the snapshot has if None."""
    factor: float = 0.2
    """The smallest gap to act on, as a share of the most loaded lane."""
    pairs: int = 1
    """How many pairs of lanes are levelled in one call."""

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 1:
            raise ProblemError(f"options.window is {self.window}: it has to be at least 1.")
        if not 0 <= self.factor <= 1:
            raise ProblemError(f"options.factor is {self.factor}: it has to be between 0 and 1.")
        if self.pairs < 1:
            raise ProblemError(f"options.pairs is {self.pairs}: it has to be at least 1.")

    def plan(self, snapshot: ClusterSnapshot) -> Plan | Infeasible:
        """The placement in force with some slots moved off the hottest lane."""
        if refusal := no_lane(snapshot):
            return refusal
        recent = snapshot.window if self.window is None else snapshot.window[-self.window :]
        work = _Levelling(snapshot, recent.sum(axis=0) if len(recent) else snapshot.load)
        work.place(np.flatnonzero(~snapshot.placed), "it had no lane")
        for lane in np.flatnonzero(snapshot.draining).tolist():
            work.place(np.flatnonzero(work.lanes == lane), f"lane {lane} is draining")
        for _ in range(self.pairs):
            if not work.level_a_pair(self.factor):
                break
        return Plan(work.lanes, "nothing moves", work.reasons)


@dataclass(eq=False)
class _Levelling:
    """The placement as it changes."""

    snapshot: ClusterSnapshot
    count: Floats
    lanes: Ints = field(init=False)
    used: Floats = field(init=False)
    """By lane, the counts of its slots."""
    reasons: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lanes = self.snapshot.lane.copy()
        there = self.snapshot.placed
        self.used = np.bincount(self.lanes[there], self.count[there], self.snapshot.lanes).astype(np.float64)

    def place(self, slots: Ints, why: str) -> None:
        """Give slots to the least loaded lanes, largest first."""
        staying, capacity = self.snapshot.staying, self.snapshot.capacity
        number = np.bincount(self.lanes[self.lanes >= 0], minlength=self.snapshot.lanes)
        for slot in self._descending(slots):
            # By number last, so that slots without rows do not all end on one lane.
            target = int(staying[np.lexsort((number[staying], (self.used / capacity)[staying]))[0]])
            number[target] += 1
            self._move(slot, target, f"{why}, and lane {target} was the least loaded")

    def level_a_pair(self, factor: float) -> bool:
        """Move what fits into half the gap between the hottest and the coldest lane; whether anything did."""
        staying, relative = self.snapshot.staying, self.used / self.snapshot.capacity
        hot, cold = int(staying[relative[staying].argmax()]), int(staying[relative[staying].argmin()])
        if hot == cold or relative[hot] - relative[cold] < factor * relative[hot]:
            return False
        mean = self.used[staying].sum() / self.snapshot.capacity[staying].sum()
        most, least = 100 * relative[hot] / mean, 100 * relative[cold] / mean
        why = f"lane {hot} had {most:.0f} % of the mean and lane {cold} {least:.0f} %"
        taken = self._fitting(hot, self._half_gap(hot, cold))
        for slot in taken:
            self._move(slot, cold, why)
        return bool(taken)

    def _half_gap(self, hot: int, cold: int) -> float:
        """What has to move for both to be equally loaded."""
        capacity = self.snapshot.capacity
        gap = self.used[hot] * capacity[cold] - self.used[cold] * capacity[hot]
        return float(gap / (capacity[hot] + capacity[cold]))

    def _fitting(self, hot: int, gap: float) -> list[int]:
        """First fit, the largest first."""
        taken = []
        for slot in self._descending(np.flatnonzero((self.lanes == hot) & (self.count > 0))):
            if self.count[slot] <= gap:
                taken.append(slot)
                gap -= self.count[slot]
        return taken

    def _descending(self, slots: Ints) -> list[int]:
        """By count; those that tie by number."""
        order: list[int] = slots[np.argsort(-self.count[slots], kind="stable")].tolist()
        return order

    def _move(self, slot: int, target: int, why: str) -> None:
        if (source := self.lanes[slot]) >= 0:
            self.used[source] -= self.count[slot]
        self.used[target] += self.count[slot]
        self.lanes[slot] = target
        self.reasons[slot] = why
