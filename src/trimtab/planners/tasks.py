"""Single slots and the room on lanes: what topdown and tasklevel share (Top-down 3.2, Algorithm 3).

A run of slots of equal load is placed in one step, with the outcome of placing them one by one; so a million like
slots cost no more than a few. The roomiest lane is the one with most capacity left; ties go to the lower number.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import islice, pairwise

import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.metrics import TOLERANCE
from trimtab.planners.plan import Infeasible, too_small
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints
from trimtab.planners.topdown_groups import refine_granularity

FEW = 32
"""Runs up to this length are placed one by one, which is faster then."""
HALVINGS = 50
"""Of the interval in which the level is looked for."""
NAMED = 10
"""Operators that a refusal names."""
MOST_PARTS = 10_000
"""All capacity in parts of the smallest lane's: with more, dividing operators by it would take too long."""
CLEAR = 1e-9
"""How far above the level, as a share of the greatest room, slots are placed at once: nearer, rounding would decide."""


class Room:
    """The capacity that lanes have left: a heap, roomiest first, of which outdated entries are skipped."""

    def __init__(self, capacity: Floats, lanes: Ints) -> None:
        self.capacity: list[float] = capacity.tolist()
        self.free: list[float] = self.capacity.copy()
        self.lanes = lanes
        # Half of what the metrics forgive, so that rounding in their sums cannot make a lane too full.
        self.slack: list[float] = [TOLERANCE / 2 * each for each in self.capacity]
        self._heap: list[tuple[float, int]] = [(-self.free[lane], lane) for lane in lanes.tolist()]
        heapify(self._heap)

    def roomiest(self) -> int:
        """The lane with most left."""
        heap, free = self._heap, self.free
        while -heap[0][0] != free[heap[0][1]]:
            heappop(heap)
        return heap[0][1]

    def left(self, lane: int) -> float:
        """What fits, a rounding error included."""
        return self.free[lane] + self.slack[lane]

    def used(self, lane: int) -> float:
        return self.capacity[lane] - self.free[lane]

    def take(self, lane: int, amount: float) -> None:
        """Use some of a lane."""
        if amount:
            self._set(lane, self.free[lane] - amount)

    def clear(self, lane: int) -> None:
        """Everything on the lane has left it."""
        self._set(lane, self.capacity[lane])

    def spread(self, count: int, amount: float) -> list[int]:
        """Lanes for so many slots of one load, each to the lane that is roomiest then; shorter if not all fit."""
        chosen = self._spread_most(count, amount) if count > FEW and amount > 0 else []
        while len(chosen) < count and amount <= self.left(lane := self.roomiest()):
            self.take(lane, amount)
            chosen.append(lane)
        return chosen

    def _spread_most(self, count: int, amount: float) -> list[int]:
        """All but the last few of them at once."""
        shares = _levelled(np.array(self.free)[self.lanes], count, amount)
        for lane, share in zip(self.lanes[shares > 0].tolist(), shares[shares > 0].tolist(), strict=True):
            self.take(lane, share * amount)
        return np.repeat(self.lanes, shares).tolist()

    def _set(self, lane: int, free: float) -> None:
        self.free[lane] = free
        heappush(self._heap, (-free, lane))


def check_balance(balance: float | None) -> None:
    """Raise a ProblemError for a balance mode that makes no sense."""
    if balance is not None and not 1 < balance < np.inf:
        raise ProblemError(f"options.balance is {balance}: it has to be a number above 1, or null.")


def balanced(snapshot: ClusterSnapshot, balance: float | None) -> Floats:
    """mu: what lanes can carry or, in balance mode, at most so many times their share of all load."""
    if balance is None:
        return snapshot.capacity
    share: Floats = snapshot.capacity / snapshot.capacity[snapshot.staying].sum()
    return np.asarray(np.minimum(snapshot.capacity, balance * snapshot.total * share))


def no_room(snapshot: ClusterSnapshot, room: Room, slot: int, balance: float | None) -> Infeasible:
    """The answer when a slot fits nowhere, with the granularity that would."""
    said = [too_small(snapshot, np.array(room.free), slot).missing]
    if balance is not None:
        said.append(f"With options.balance no lane takes more than {balance:g} times the mean load.")
    return Infeasible(" ".join([*said, *_finer(snapshot, balance)]))


def _finer(snapshot: ClusterSnapshot, balance: float | None) -> Iterator[str]:
    """A sentence on how to divide the operators so that they fit, if that is all it takes (Top-down 5)."""
    capacity = snapshot.capacity[snapshot.staying]
    if snapshot.total > capacity.sum() or capacity.sum() > MOST_PARTS * capacity.min():
        return
    fine = refine_granularity(snapshot)
    room, lanes = Room(balanced(fine, balance), fine.staying), fine.lane.copy()
    if place_singly(np.arange(len(fine)), fine.load, room, lanes) is None:
        slots = zip(fine.sizes.tolist(), fine.operators, strict=True)
        divided = ", ".join(f"{count} of {name}" for count, name in islice(slots, NAMED))
        more = " and so on" if len(fine.operators) > NAMED else ""
        yield f"In like slots, {divided}{more}, it would fit; a running flow cannot be divided anew."


def place_singly(slots: Ints, load: Floats, room: Room, lanes: Ints) -> int | None:
    """Algorithm 3: heaviest slots first, each to the roomiest lane. Writes into `lanes`.

    Returns the first slot that fits nowhere, or None when all are placed.

    >>> lanes = np.full(4, -1)
    >>> place_singly(np.arange(4), np.array([1.0, 1, 5, 1]), Room(np.array([6.0, 4]), np.arange(2)), lanes)
    >>> lanes.tolist()
    [1, 1, 0, 1]
    """
    slots = slots[np.argsort(-load[slots], kind="stable")]
    loads = load[slots]
    starts = np.flatnonzero(np.diff(loads, prepend=np.inf)).tolist()
    for start, stop in pairwise([*starts, len(slots)]):
        chosen = room.spread(stop - start, float(loads[start]))
        lanes[slots[start : start + len(chosen)]] = chosen
        if len(chosen) < stop - start:
            return int(slots[start + len(chosen)])
    return None


def _levelled(free: Floats, count: int, amount: float) -> Ints:
    """How many slots each lane takes until all have the same left: the lowest level at which they are not too many."""
    low, high = 0.0, max(float(free.max()), 0.0)
    clear = CLEAR * high
    if _above(free, low, amount).sum() <= count:
        high = low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _above(free, middle, amount).sum() <= count:
            high = middle
        else:
            low = middle
    return _above(free, high + clear, amount).astype(np.int64)


def _above(free: Floats, level: float, amount: float) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(np.floor((free - level) / amount).clip(0))
