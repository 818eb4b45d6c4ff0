"""Levelling by local search: slots leave draining lanes, then the lane furthest from the mean gives, takes or swaps.

A step picks the lane with the greatest deviation and a lane at the other end, and looks for the one move or swap
between them that leaves the pair nearest to the mean: for every slot of one lane the best partner on the other is found
by binary search. Steps that do not bring the pair closer are not taken, so the search ends.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from trimtab.planners.arrangement import Arrangement
from trimtab.planners.snapshot import Floats

STEPS_PER_SLOT = 2
PARTNERS = 32
CLOSER = 1e-9
NOTABLE = 0.5
"""A swap costs two moves: it has to leave half of the deviation that the best single move leaves."""


@dataclass(frozen=True)
class Exchange:
    """A slot that leaves the fuller lane, a slot that comes back for it or None, and the deviation this leaves."""

    slot: int
    back: int | None
    deviation: float


def evacuate(arrangement: Arrangement, attracted: bool = False) -> None:
    """Put every slot without a lane, and as many of those on draining lanes as the budget allows, on lanes that stay.

    The heaviest go first, each to the lane that is left least loaded; `attracted`, to the one that it exchanges most
    traffic with, as long as that one has room.
    """
    snapshot = arrangement.snapshot
    homeless = np.flatnonzero((arrangement.lanes < 0) | snapshot.draining[arrangement.lanes])
    if not homeless.size or not snapshot.staying.size:
        return
    heap = [_fullness(arrangement, lane) for lane in snapshot.staying.tolist()]
    heapq.heapify(heap)
    for slot in homeless[np.argsort(-snapshot.load[homeless], kind="stable")].tolist():
        if arrangement.affordable(*arrangement.charge(np.array([slot]), int(snapshot.staying[0])))[0]:
            lane = _attractive(arrangement, slot) if attracted else None
            lane = _least_loaded(heap, arrangement) if lane is None else lane
            arrangement.move(slot, lane)
            heapq.heappush(heap, _fullness(arrangement, lane))


def _attractive(arrangement: Arrangement, slot: int) -> int | None:
    snapshot = arrangement.snapshot
    room = arrangement.loads + snapshot.load[slot] <= snapshot.capacity
    pull = np.where(room & ~snapshot.draining, arrangement.pull(slot), 0.0)
    return int(pull.argmax()) if pull.any() else None


def _fullness(arrangement: Arrangement, lane: int) -> tuple[float, float, int]:
    """By the number of slots where loads tie, so that slots without load do not all end on one lane."""
    utilisation = arrangement.loads[lane] / arrangement.snapshot.capacity[lane]
    return float(utilisation), float(arrangement.counts[:, lane].sum()), lane


def _least_loaded(heap: list[tuple[float, float, int]], arrangement: Arrangement) -> int:
    """The lane at the top of the heap, entries that are out of date left out."""
    while True:
        entry = heapq.heappop(heap)
        if entry == _fullness(arrangement, entry[-1]):
            return entry[-1]


def level(arrangement: Arrangement) -> None:
    """Bring lanes closer to the mean, as far as single moves and swaps within the budget can."""
    for _ in range(STEPS_PER_SLOT * len(arrangement.lanes) + 1):
        if not _step(arrangement):
            return


def _step(arrangement: Arrangement) -> bool:
    deviation, staying = arrangement.deviation, arrangement.snapshot.staying
    ascending = staying[np.argsort(deviation[staying], kind="stable")]
    fullest, emptiest = int(ascending[-1]), int(ascending[0])
    if deviation[fullest] >= -deviation[emptiest]:
        pairs = [(fullest, int(lane)) for lane in ascending[:PARTNERS] if lane != fullest]
    else:
        pairs = [(int(lane), emptiest) for lane in ascending[::-1][:PARTNERS] if lane != emptiest]
    for full, empty in pairs:
        best = best_exchange(arrangement, full, empty, deviation)
        if best is not None:
            arrangement.move(best.slot, empty)
            if best.back is not None:
                arrangement.move(best.back, full)
            return True
    return False


def best_exchange(arrangement: Arrangement, full: int, empty: int, deviation: Floats) -> Exchange | None:
    """The move or swap between two lanes that leaves both nearest to the mean; None if none brings them nearer."""
    worst = max(abs(deviation[full]), abs(deviation[empty])) * (1 - CLOSER)
    pair = _Pair(arrangement, full, empty, deviation)
    single, swap = pair.best_move(), pair.best_swap()
    best = swap if swap.deviation < NOTABLE * min(single.deviation, worst) or single.deviation >= worst else single
    return best if best.deviation < worst else None


NOTHING = Exchange(-1, None, np.inf)


class _Pair:
    """Two lanes and what could go from the full one to the empty one."""

    def __init__(self, arrangement: Arrangement, full: int, empty: int, deviation: Floats) -> None:
        snapshot = arrangement.snapshot
        self.arrangement = arrangement
        self.capacities = snapshot.capacity[full], snapshot.capacity[empty]
        self.deviations = deviation[full], deviation[empty]
        self.load = snapshot.load
        going, coming = arrangement.on(full), arrangement.on(empty)
        self.going = going[self.load[going] > 0]
        self.coming = coming[np.argsort(self.load[coming], kind="stable")]
        self.charges = arrangement.charge(self.going, empty), arrangement.charge(self.coming, full)

    def left(self, shift: Floats) -> Floats:
        """The greater deviation of the two once so much load has gone over."""
        there = np.abs(self.deviations[0] - shift / self.capacities[0])
        here = np.abs(self.deviations[1] + shift / self.capacities[1])
        return np.asarray(np.maximum(there, here))

    def best_move(self) -> Exchange:
        if not self.going.size:
            return NOTHING
        after = np.where(self.arrangement.affordable(*self.charges[0]), self.left(self.load[self.going]), np.inf)
        best = int(after.argmin())
        return Exchange(int(self.going[best]), None, float(after[best]))

    def best_swap(self) -> Exchange:
        """For every slot that could go, the two that are nearest to what should come back are tried."""
        if not self.going.size or not self.coming.size:
            return NOTHING
        wanted = (self.deviations[0] - self.deviations[1]) / sum(1 / each for each in self.capacities)
        place = np.searchsorted(self.load[self.coming], self.load[self.going] - wanted)
        around = np.clip(np.stack([place - 1, place]), 0, len(self.coming) - 1)
        after = self.left(self.load[self.going] - self.load[self.coming][around])
        moves, cost = (there + back[around] for there, back in zip(*self.charges, strict=True))
        after = np.where(self.arrangement.affordable(moves, cost), after, np.inf)
        side, which = np.unravel_index(int(after.argmin()), after.shape)
        return Exchange(int(self.going[which]), int(self.coming[around[side, which]]), float(after[side, which]))
