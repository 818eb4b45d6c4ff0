"""Task-level allocation: pairs of slots one by one, by the significance of their operators (Top-down 3.2).

Algorithms 1 to 3 with the paper's heap of task pairs, which makes it quadratic in the slots of an operator: it is the
baseline of `topdown`. Corrections: line 7 passes the last node too, and both ends on one node are no case for fusion.
Task pairs of one group pair have no order in the paper, and the outcome depends on it: here it is that of the slots'
numbers, or drawn from a seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop
from typing import ClassVar, Literal

import numpy as np

from trimtab.planners.objective import Objective
from trimtab.planners.options import check_seed
from trimtab.planners.plan import Answer, Plan, no_lane
from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Floats
from trimtab.planners.tasks import Room, balanced, check_balance, no_room, place_singly
from trimtab.ports import chance

SINGLE = "it fits beside none of its partners; the roomiest lane takes it"


@dataclass(frozen=True)
class TaskLevel:
    """Collocate pairs of slots, one pair after the other, as lanes have room.

    `priority` orders the pairs: by "significance", the traffic of their operators per unit of load (eq. 2), or by their
    own "traffic". `seed` draws the order among the pairs of two operators; without one it is that of their numbers.
    `balance`, a number above 1, lets a lane take at most so many times the mean load.

    >>> flow = ClusterSnapshot.of(load=[40, 40, 20, 20], operator=[0, 0, 1, 1], capacity=[60, 60], groups=[(0, 1, 8)])
    >>> TaskLevel().plan(flow).lanes.tolist()
    [0, 1, 0, 1]
    """

    keeps_capacity: ClassVar[bool] = True
    priority: Literal["significance", "traffic"] = "significance"
    seed: int | None = None
    balance: float | None = None

    def __post_init__(self) -> None:
        check_balance(self.balance)
        check_seed(self.seed)

    @property
    def objective(self) -> Objective:
        """Balance where `balance` asks for level lanes, traffic where it does not."""
        return "traffic" if self.balance is None else "balance"

    def plan(self, snapshot: ClusterSnapshot) -> Answer:
        """Algorithm 1."""
        if refusal := no_lane(snapshot):
            return refusal
        room = Room(balanced(snapshot, self.balance), snapshot.staying)
        allocation = Allocation(snapshot, room)
        for one, other, group_pair in self._pairs(snapshot):
            allocation.consider(one, other, group_pair)
        lanes = np.array(allocation.lane, np.int64)
        left = np.flatnonzero(lanes == UNPLACED)
        if (misfit := place_singly(left, snapshot.load, room, lanes)) is not None:
            return no_room(snapshot, room, misfit, self.balance)
        reasons = dict.fromkeys(left.tolist(), SINGLE)
        return Plan(lanes, "it shares the lane with a slot it exchanges traffic with", reasons)

    def _pairs(self, snapshot: ClusterSnapshot) -> Iterator[tuple[int, int, int]]:
        """Slots and group pair of every pair of slots: popped from a heap, the first in priority first."""
        pairs = snapshot.pairs
        host = snapshot.operator[pairs.source] * len(snapshot.operators) + snapshot.operator[pairs.target]
        order = np.arange(len(pairs)) if self.seed is None else chance(self.seed).permutation(len(pairs))
        columns = (-self._importance(snapshot), host, order, pairs.source, pairs.target)
        heap = list(zip(*(column.tolist() for column in columns), strict=True))
        heapify(heap)
        while heap:
            _, group_pair, _, one, other = heappop(heap)
            yield one, other, group_pair

    def _importance(self, snapshot: ClusterSnapshot) -> Floats:
        pairs = snapshot.pairs
        if self.priority == "traffic":
            return pairs.weight
        source, target = snapshot.operator[pairs.source], snapshot.operator[pairs.target]
        traffic = snapshot.operator_traffic + snapshot.operator_traffic.T
        loads = np.bincount(snapshot.operator, snapshot.load, len(snapshot.operators))
        both = loads[source] + loads[target]
        importance = np.full(len(pairs), np.inf)
        np.divide(traffic[source, target], both, out=importance, where=both > 0)
        return importance


class Allocation:
    """What Algorithm 1 keeps: where every slot is, and the lane and group pair that it was last at."""

    def __init__(self, snapshot: ClusterSnapshot, room: Room) -> None:
        self.lane: list[int] = [UNPLACED] * len(snapshot)
        self._load: list[float] = snapshot.load.tolist()
        self._room = room
        self._on_lane: list[list[int]] = [[] for _ in range(snapshot.lanes)]
        self._last_lane = self._last_pair = UNPLACED

    def consider(self, one: int, other: int, group_pair: int) -> None:
        """Lines 5 to 23."""
        if self.lane[one] != UNPLACED and self.lane[other] != UNPLACED:
            self._fuse(self.lane[one], self.lane[other])
            return
        missing = [slot for slot in (one, other) if self.lane[slot] == UNPLACED]
        load = sum(self._load[slot] for slot in missing)
        self._last_lane = self._pick(one, other, group_pair, load)
        self._last_pair = group_pair
        if load <= self._room.left(self._last_lane):
            for slot in missing:
                self._place(slot, self._last_lane)

    def _pick(self, one: int, other: int, group_pair: int, load: float) -> int:
        """Algorithm 2: the lane of the slot that is placed, else the last one while it has room for this group pair."""
        if self.lane[one] != UNPLACED or self.lane[other] != UNPLACED:
            return max(self.lane[one], self.lane[other])
        if group_pair != self._last_pair or load > self._room.left(self._last_lane):
            return self._room.roomiest()
        return self._last_lane

    def _fuse(self, one: int, other: int) -> None:
        """Everything on the smaller lane joins the larger one, if it can hold both (lines 18 to 23)."""
        if one == other:
            return
        source, target = (other, one) if self._room.capacity[one] > self._room.capacity[other] else (one, other)
        used = self._room.used(source)
        if used > self._room.left(target):
            return
        for slot in self._on_lane[source]:
            self.lane[slot] = target
        self._on_lane[target] += self._on_lane[source]
        self._on_lane[source] = []
        self._room.take(target, used)
        self._room.clear(source)

    def _place(self, slot: int, lane: int) -> None:
        self.lane[slot] = lane
        self._on_lane[lane].append(slot)
        self._room.take(lane, self._load[slot])
