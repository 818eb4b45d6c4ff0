"""StroMAX's dynamic task reassignment: slots leave the lanes that carry too much (StroMAX 3.3, Algorithm 2).

The printed test compares a lane's load with theta itself, which is nearly always less; what is meant is a lane that
carries more than (1 + threshold) x the mean, and the same bound stops its moves. The slot that exchanges the most with
other lanes goes first, to the lane it exchanges the most with. As printed, what it exchanges inside its present lane
does not count, although that becomes traffic between lanes. Guards that the paper lacks: the target has to stay within
its own bound, else the next best one takes the slot, else the slot stays; the exchange is counted anew after every
move; a slot without load stays, since it would not help; one that exchanges nothing goes to the least loaded lane.

Our additions: lanes of unlike capacity are compared by load / capacity; slots without a lane are placed first, by the
same rule, then lanes that drain give away all their slots, beyond the bound of the others if need be. The order of the
slots plays no part, so a ring of operators is no obstacle, and there is no chance in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.departures import Departures
from trimtab.planners.metrics import TOLERANCE, lane_loads
from trimtab.planners.nearness import Nearness
from trimtab.planners.objective import Objective
from trimtab.planners.one_pass import first_of
from trimtab.planners.plan import Infeasible, Plan, no_lane
from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Floats


@dataclass(frozen=True)
class Reassign:
    """Algorithm 2.

    >>> start = [0, 0, 0, 1, 2]
    >>> flow = ClusterSnapshot.of(load=[4, 4, 4, 1, 1], capacity=[20] * 3, lane=start, traffic=[(1, 4, 5.0)])
    >>> plan = Reassign().plan(flow)
    >>> plan.lanes.tolist(), plan.reasons[1]
    ([1, 2, 0, 1, 2], 'lane 0 carried 257 % of the mean, and the slot exchanged 5 with lane 2')
    """

    objective: ClassVar[Objective] = "balance"
    threshold: float = 0.12
    """How far above the mean a lane may be, as a share of it."""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.threshold) and self.threshold >= 0):
            raise ProblemError(f"options.threshold is {self.threshold}: it has to be a finite number, 0 or more.")

    def plan(self, snapshot: ClusterSnapshot) -> Plan | Infeasible:
        """The placement in force without its overloaded lanes, as far as slots can be moved."""
        if refusal := no_lane(snapshot):
            return refusal
        level = snapshot.mean / 100 * np.where(snapshot.draining, 0.0, snapshot.capacity)
        work = _Reassignment(snapshot, (1 + self.threshold) * level, Nearness.by_traffic(snapshot))
        work.place_new()
        for lane in np.flatnonzero(snapshot.draining).tolist():
            work.empty(lane)
        for lane in snapshot.staying.tolist():
            work.relieve(lane)
        return Plan(work.near.lanes.copy(), "nothing moves", work.reasons)


@dataclass(eq=False)
class _Reassignment:
    """The placement as it changes."""

    snapshot: ClusterSnapshot
    bound: Floats
    near: Nearness
    load: Floats = field(init=False)
    reasons: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.load = lane_loads(self.snapshot, self.snapshot.lane)
        for slot in np.flatnonzero(self.snapshot.placed).tolist():
            self.near.put(slot, int(self.snapshot.lane[slot]))

    def place_new(self) -> None:
        for slot in np.flatnonzero(~self.snapshot.placed).tolist():
            self._move(slot, self._target(slot, must=True), "it had no lane")

    def empty(self, lane: int) -> None:
        """Move everything away."""
        departures = Departures(self.near, np.flatnonzero(self.near.lanes == lane), lane)
        while (slot := departures.next()) is not None:
            self._move(slot, self._target(slot, must=True), f"lane {lane} is draining")
            departures.left(slot)

    def relieve(self, lane: int) -> None:
        """Move slots away until the lane is within its bound, or no slot is left to try."""
        if not self._too_full(lane):
            return
        slots = np.flatnonzero((self.near.lanes == lane) & (self.snapshot.load > 0))
        departures = Departures(self.near, slots, lane)
        why = f"lane {lane} carried {self._percent(lane):.0f} % of the mean"
        while self._too_full(lane) and (slot := departures.next()) is not None:
            if (target := self._target(slot, must=False)) != UNPLACED:
                self._move(slot, target, why)
                departures.left(slot)

    def _too_full(self, lane: int) -> bool:
        return bool(self.load[lane] > self.bound[lane] * (1 + TOLERANCE))

    def _target(self, slot: int, must: bool) -> int:
        """The other lane that exchanges the most with a slot, among those it leaves within their bounds."""
        others = self.snapshot.staying[self.snapshot.staying != self.near.lanes[slot]]
        after = self.load + self.snapshot.load[slot]
        within = others[after[others] <= self.bound[others] * (1 + TOLERANCE)]
        # By the number of slots last, so that slots without load do not all end on one lane.
        idlest = -after / self.snapshot.capacity, -self.near.held.sum(axis=0)
        if within.size:
            return first_of(within, self.near.of(slot), *idlest)
        return first_of(others, *idlest) if must else UNPLACED

    def _move(self, slot: int, target: int, why: str) -> None:
        if exchange := float(self.near.of(slot)[target]):
            reason = f"{why}, and the slot exchanged {exchange:.6g} with lane {target}"
        else:
            reason = f"{why}, and lane {target} was the least loaded with room for the slot"
        source = self.near.lanes[slot]
        if source != UNPLACED:
            self.load[source] -= self.snapshot.load[slot]
        self.load[target] += self.snapshot.load[slot]
        self.near.put(slot, target)
        self.reasons[slot] = reason

    def _percent(self, lane: int) -> float:
        level = self.snapshot.mean / 100 * self.snapshot.capacity[lane]
        return 100 * float(self.load[lane]) / level if level else 0.0
