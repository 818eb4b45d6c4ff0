"""Pairs of slots in the order of their traffic, lane after lane (Top-down 3.1).

The fusion-style heuristic that the paper starts from, with its improvement: of a pair with one slot placed, the other
joins it if it can. A lane is filled until a pair does not fit, then the next one in descending capacity that has room
takes over; a pair that fits on none is broken up. Slots that are left over go the same way one by one, heaviest first.
Which lane comes next after the last is not said: here it is the first again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trimtab.planners.objective import Objective
from trimtab.planners.plan import Answer, Plan, no_lane, too_small
from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Ints
from trimtab.planners.tasks import Room


@dataclass(frozen=True)
class Naive:
    """Collocate the pairs of slots with most traffic first.

    >>> flow = ClusterSnapshot.of(load=[3, 3, 3, 3], capacity=[6, 6], traffic=[(0, 1, 1.0), (1, 2, 5.0)])
    >>> Naive().plan(flow).lanes.tolist()
    [1, 0, 0, 1]
    """

    objective: ClassVar[Objective] = "traffic"
    keeps_capacity: ClassVar[bool] = True

    def plan(self, snapshot: ClusterSnapshot) -> Answer:
        """Pairs, then what is left of them."""
        if refusal := no_lane(snapshot):
            return refusal
        filling = Filling(snapshot)
        pairs = snapshot.pairs
        order = np.argsort(-pairs.weight, kind="stable")
        for one, other in zip(pairs.source[order].tolist(), pairs.target[order].tolist(), strict=True):
            filling.pair(one, other)
        single = [slot for slot in np.argsort(-snapshot.load, kind="stable").tolist() if filling.lane[slot] == UNPLACED]
        for slot in single:
            if not filling.together([slot]):
                return too_small(snapshot, np.array(filling.room.free), slot)
        reasons = dict.fromkeys(single, "it fits beside none of its partners; the next lane with room takes it")
        return Plan(filling.lanes(), "it shares the lane with a slot it exchanges much traffic with", reasons)


class Filling:
    """Lanes in descending capacity, and the one that is being filled."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self.room = Room(snapshot.capacity, snapshot.staying)
        self.lane: list[int] = [UNPLACED] * len(snapshot)
        self._load: list[float] = snapshot.load.tolist()
        staying = snapshot.staying
        self._turn: list[int] = staying[np.argsort(-snapshot.capacity[staying], kind="stable")].tolist()
        self._current = 0

    def pair(self, one: int, other: int) -> None:
        """Place what is not placed of a pair, if it fits together."""
        missing = [slot for slot in (one, other) if self.lane[slot] == UNPLACED]
        if len(missing) == 2:
            self.together(missing)
        elif missing:
            beside = max(self.lane[one], self.lane[other])
            if self._load[missing[0]] <= self.room.left(beside):
                self._place(missing, beside)

    def together(self, slots: list[int]) -> bool:
        """On the current lane, or the next one with room for all of them; says whether there is one."""
        load = sum(self._load[slot] for slot in slots)
        if load > self.room.left(self.room.roomiest()):
            return False
        for step in range(len(self._turn)):
            turn = (self._current + step) % len(self._turn)
            if load <= self.room.left(self._turn[turn]):
                self._current = turn
                self._place(slots, self._turn[turn])
                return True
        return False

    def lanes(self) -> Ints:
        return np.array(self.lane, np.int64)

    def _place(self, slots: list[int], lane: int) -> None:
        for slot in slots:
            self.lane[slot] = lane
            self.room.take(lane, self._load[slot])
