"""Flux, a baseline of ALBIC IV (its reference 5, as docs/papers.md reads it).

The most loaded lane gives the least loaded one its largest slot with which the greater of the two loads falls, and so
on until the budget is used up or nothing improves. A slot moves once. Deviations: a lane without such a slot is passed
over for the next most loaded one; draining lanes give first, and slots without a lane are placed before all, the
heaviest first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trimtab.planners.metrics import TOLERANCE, utilisation
from trimtab.planners.objective import Objective
from trimtab.planners.plan import Infeasible, Plan, no_lane
from trimtab.planners.reasons import level_reasons
from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Floats, Ints


@dataclass(frozen=True)
class Flux:
    """Pairs the most with the least loaded lane. It knows no capacity, only who is more loaded than who.

    >>> heaped = ClusterSnapshot.of(load=[4, 3, 2, 1], lane=[0, 0, 0, 0], capacity=[10, 10], max_moves=1)
    >>> Flux().plan(heaped).lanes.tolist()
    [1, 0, 0, 0]
    """

    objective: ClassVar[Objective] = "balance"

    def plan(self, snapshot: ClusterSnapshot) -> Plan | Infeasible:
        if refusal := no_lane(snapshot):
            return refusal
        state = _State(snapshot)
        state.place()
        state.drain()
        while state.step():
            pass
        return Plan(state.lanes, "it levels the lanes", level_reasons(snapshot, state.lanes))


class _State:
    """Where slots are so far, and the budget that is left."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        limits = snapshot.limits
        self.snapshot = snapshot
        self.lanes = snapshot.lane.copy()
        self.points = utilisation(snapshot, snapshot.lane)
        self.cost = np.inf if limits.max_migration is None else limits.max_migration * (1 + TOLERANCE)
        self.moves = np.inf if limits.max_moves is None else float(limits.max_moves)
        self.free = snapshot.placed.copy()
        self.stuck = snapshot.draining.copy()
        """Lanes that have nothing to give as long as they get nothing: the least loaded lane only becomes fuller."""

    def place(self) -> None:
        homeless = np.flatnonzero(self.lanes == UNPLACED)
        for slot in homeless[np.argsort(-self.snapshot.load[homeless], kind="stable")].tolist():
            self._put(slot, self._least())

    def drain(self) -> None:
        leaving = np.flatnonzero(self.free & self.snapshot.draining[self.lanes])
        for slot in leaving[np.argsort(-self.snapshot.load[leaving], kind="stable")].tolist():
            if self._affordable(np.array([slot])).size:
                self._migrate(slot, self._least())

    def step(self) -> bool:
        """One move, if there is one that improves."""
        least = self._least()
        while not self.stuck.all():
            most = int(np.argmax(np.where(self.stuck, -np.inf, self.points)))
            improving = self._improving(most, least)
            if improving.size:
                self._migrate(int(improving[np.argmax(self.snapshot.load[improving])]), least)
                return True
            self.stuck[most] = True
        return False

    def _improving(self, most: int, least: int) -> Ints:
        slots = self._affordable(np.flatnonzero(self.free & (self.lanes == most)))
        after = self.points[least] + self._share(slots, least)
        larger = after < self.points[most] * (1 - TOLERANCE)
        return np.asarray(slots[larger & (self.snapshot.load[slots] > 0)])

    def _affordable(self, slots: Ints) -> Ints:
        return slots[self.snapshot.state[slots] <= self.cost] if self.moves >= 1 else slots[:0]

    def _share(self, slots: Ints, lane: int) -> Floats:
        return np.asarray(100 * self.snapshot.load[slots] / self.snapshot.capacity[lane])

    def _least(self) -> int:
        return int(np.argmin(np.where(self.snapshot.draining, np.inf, self.points)))

    def _migrate(self, slot: int, lane: int) -> None:
        self.points[self.lanes[slot]] -= self._share(np.array([slot]), int(self.lanes[slot]))[0]
        self.cost -= self.snapshot.state[slot]
        self.moves -= 1
        self.free[slot] = False
        self._put(slot, lane)

    def _put(self, slot: int, lane: int) -> None:
        self.lanes[slot], self.stuck[lane] = lane, False
        self.points[lane] += self._share(np.array([slot]), lane)[0]
