"""Top-down allocation: groups of slots are put together whole where they fit, else split (Top-down 4 and 5).

Algorithms 4 and 5, an operator being a group, a slot a task and a lane a node. The work grows with groups and lanes;
slots are only ever counted and handed out in slices. Deviations, of which the second and third decide the quality:

- In Algorithm 4, `V` in line 5 means U, line 23 takes n_j's use, and line 24 moves everything that is on n_j. The gain
  in line 14 is the traffic of the slots on a lane times how many slots fit beside them.
- Slots that find no partner (the paper's R) stay available to later pairs, and are single only when no pair is left.
- Where not one balanced split fits, fewer slots of the larger group share a lane with one of the smaller.
- `sigma` and line 9 go by the loads of the very slots, so that capacities hold even in groups of unlike slots.
- With `second`, the lanes of the placed group are walked through in the order of their gain.
- Both directions of a pair of groups add up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.objective import Objective
from trimtab.planners.plan import Answer, Plan, no_lane
from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Ints
from trimtab.planners.tasks import Room, balanced, check_balance, no_room, place_singly
from trimtab.planners.topdown_groups import Groups, group_traffic, like_slots, refine_granularity

__all__ = ["TopDown", "refine_granularity"]

LEAST_MARGIN = 0.01
SINGLE = "it has no partner with room beside it; the roomiest lane takes it"


@dataclass(frozen=True)
class TopDown:
    """Collocate groups that exchange much traffic for their load, as whole as lanes can take them.

    `priority` orders the pairs of groups: by "significance", traffic per unit of load (eq. 2), or by "traffic" alone.
    `balance`, a number above 1, lets a lane take at most so many times the mean load: for level lanes rather than few.
    `margin` divides operators with unlike slots into subgroups whose slots differ by no more than this share; None
    never does.

    >>> flow = ClusterSnapshot.of(load=[40, 40, 20, 20], operator=[0, 0, 1, 1], capacity=[60, 60], groups=[(0, 1, 8)])
    >>> TopDown().plan(flow).lanes.tolist()
    [0, 1, 0, 1]
    """

    keeps_capacity: ClassVar[bool] = True
    priority: Literal["significance", "traffic"] = "significance"
    balance: float | None = None
    margin: float | None = 0.25

    def __post_init__(self) -> None:
        check_balance(self.balance)
        if self.margin is not None and not LEAST_MARGIN <= self.margin < np.inf:
            raise ProblemError(f"options.margin is {self.margin}: it has to be {LEAST_MARGIN} or more, or null.")

    @property
    def objective(self) -> Objective:
        """Balance where `balance` asks for level lanes, traffic where it does not."""
        return "traffic" if self.balance is None else "balance"

    def plan(self, snapshot: ClusterSnapshot) -> Answer:
        """Algorithm 4."""
        if refusal := no_lane(snapshot):
            return refusal
        room = Room(balanced(snapshot, self.balance), snapshot.staying)
        groups = like_slots(snapshot, self.margin)
        allocation = Allocation(snapshot, groups, room)
        for one, other in self._pairs(snapshot, groups):
            allocation.collocate(one, other)
        lanes = allocation.lanes()
        left = allocation.remaining()
        if (misfit := place_singly(left, snapshot.load, room, lanes)) is not None:
            return no_room(snapshot, room, misfit, self.balance)
        return Plan(lanes, SINGLE, allocation.reasons(), {"groups": float(len(groups)), "single": float(len(left))})

    def _pairs(self, snapshot: ClusterSnapshot, groups: Groups) -> Iterator[tuple[int, int]]:
        """Pairs of groups, the first in priority first; ties by their numbers."""
        traffic = group_traffic(snapshot, groups)
        importance = traffic.weight
        if self.priority == "significance":
            load = groups.load[traffic.source] + groups.load[traffic.target]
            importance = np.divide(importance, load, out=np.full(len(load), np.inf), where=load > 0)
        order = np.argsort(-importance, kind="stable")
        return zip(traffic.source[order].tolist(), traffic.target[order].tolist(), strict=True)


@dataclass(slots=True)
class Split:
    """Slots of a group that share a lane, as a range of the group's slots."""

    start: int
    stop: int
    lane: int
    why: str


@dataclass(slots=True)
class Group:
    """Like slots, placed from the front on."""

    name: str
    slots: Ints
    load_to: list[float]
    """The load of the first slots, by how many; every group's own, so that one group's loads cost no other's digits."""
    next: int = 0
    splits: list[Split] = field(default_factory=list)

    @property
    def left(self) -> int:
        return len(self.slots) - self.next

    def cost(self, count: int) -> float:
        """The load of the next so many slots."""
        return self.load_to[self.next + count] - self.load_to[self.next]

    def fitting(self, room: float) -> int:
        """How many of the next slots fit."""
        reach = self.load_to[self.next] + room
        return max(bisect_right(self.load_to, reach, self.next) - 1 - self.next, 0)

    def hosts(self) -> Counter[int]:
        """How many of its slots each lane has."""
        hosts: Counter[int] = Counter()
        for split in self.splits:
            hosts[split.lane] += split.stop - split.start
        return hosts


class Allocation:
    """The groups, what is placed of each, and the room that lanes have left."""

    def __init__(self, snapshot: ClusterSnapshot, groups: Groups, room: Room) -> None:
        self._room = room
        self._slots = len(snapshot)
        self._on_lane: list[list[Split]] = [[] for _ in range(snapshot.lanes)]
        order: Ints = np.argsort(groups.group, kind="stable")
        parts = np.split(order, np.cumsum(groups.size))
        self._groups = [
            Group(snapshot.operators[operator], slots, [0.0, *np.cumsum(snapshot.load[slots]).tolist()])
            for operator, slots in zip(groups.operator.tolist(), parts, strict=False)
        ]

    def collocate(self, one: int, other: int) -> None:
        """Bring two groups together as far as they are not placed yet, or the lanes they are on (Algorithm 4, 6-24)."""
        first, second = self._groups[one], self._groups[other]
        if first.left and second.left:
            self._place_both(first, second)
        elif second.left:
            self._place_beside(first, second)
        elif first.left:
            self._place_beside(second, first)
        else:
            self._fuse(first, second)

    def remaining(self) -> Ints:
        """Slots without a lane: the paper's R."""
        return np.concatenate([np.zeros(0, np.int64), *(group.slots[group.next :] for group in self._groups)])

    def lanes(self) -> Ints:
        """By slot, UNPLACED where none is found yet."""
        lanes = np.full(self._slots, UNPLACED)
        for slots, split in self._splits():
            lanes[slots] = split.lane
        return lanes

    def reasons(self) -> Mapping[int, str]:
        """Why each slot is where it is."""
        texts, which = [SINGLE], np.zeros(self._slots, np.int64)
        for number, (slots, split) in enumerate(self._splits(), 1):
            which[slots] = number
            texts.append(split.why)
        return Reasons(texts, which)

    def _splits(self) -> Iterator[tuple[Ints, Split]]:
        for group in self._groups:
            for split in group.splits:
                yield group.slots[split.start : split.stop], split

    def _place_both(self, first: Group, second: Group) -> None:
        """Algorithm 5 with mode `both`."""
        while first.left and second.left:
            lane = self._room.roomiest()
            small, large = (first, second) if first.left <= second.left else (second, first)
            few, many = self._balanced_split(small, large, self._room.left(lane))
            if not few:
                return
            self._place(small, few, lane, f"{few} slots of {small.name} meet {many} of {large.name} here")
            self._place(large, many, lane, f"{many} slots of {large.name} meet {few} of {small.name} here")

    def _balanced_split(self, small: Group, large: Group, room: float) -> tuple[int, int]:
        """How many slots of either group to put in so much room; none if no pair of slots fits."""
        if small.cost(small.left) + large.cost(large.left) <= room:
            return small.left, large.left
        ratio = large.left // small.left
        if splits := _most(small.fitting(room), room, lambda splits: small.cost(splits) + large.cost(splits * ratio)):
            return splits, splits * ratio
        beside = min(large.fitting(room - small.cost(1)), ratio)
        return (1, beside) if beside else (0, 0)

    def _place_beside(self, placed: Group, other: Group) -> None:
        """Algorithm 5 with mode `second`: as many slots as fit on the lanes of the placed group, best gain first."""
        hosts = placed.hosts()
        gain = {lane: count * other.fitting(self._room.left(lane)) for lane, count in hosts.items()}
        for lane in sorted(hosts, key=lambda lane: (-gain[lane], lane)):
            if count := other.fitting(self._room.left(lane)):
                why = f"{hosts[lane]} slots of {placed.name} are here, with which {other.name} exchanges traffic"
                self._place(other, count, lane, why)

    def _fuse(self, first: Group, second: Group) -> None:
        """Everything on one lane joins the other, if two groups fill one lane each and the larger can hold both."""
        lanes = [*first.hosts(), *second.hosts()]
        if len(lanes) != 2 or lanes[0] == lanes[1]:
            return
        source, target = sorted(lanes, key=lambda lane: (self._room.capacity[lane], -lane))
        used = self._room.used(source)
        if used > self._room.left(target):
            return
        self._room.take(target, used)
        self._room.clear(source)
        for split in self._on_lane[source]:
            split.lane = target
        self._on_lane[target] += self._on_lane[source]
        self._on_lane[source] = []

    def _place(self, group: Group, count: int, lane: int, why: str) -> None:
        self._room.take(lane, group.cost(count))
        split = Split(group.next, group.next + count, lane, why)
        group.splits.append(split)
        self._on_lane[lane].append(split)
        group.next += count


def _most(upto: int, room: float, cost: Callable[[int], float]) -> int:
    """The largest number up to a bound of which the cost, that grows with it, fits the room."""
    return bisect_right(range(1, upto + 1), room, key=cost)


@dataclass(frozen=True, eq=False)
class Reasons(Mapping[int, str]):
    """A text for every slot, many slots sharing one."""

    texts: list[str]
    which: Ints

    def __getitem__(self, slot: int) -> str:
        if not 0 <= slot < len(self.which):
            raise KeyError(slot)
        return self.texts[int(self.which[slot])]

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.which)))

    def __len__(self) -> int:
        return len(self.which)
