"""One-pass placement of a stream of slots: what StroMAX's equations 5 and 10 have in common (StroMAX 3.2, 3.3).

Each slot goes, for good, where the product of two factors is greatest: how near the lane is to the slot, and how idle
it still is. Lanes without room for the slot are left out: their 0 would tie with that of lanes without a neighbour. The
paper leaves ties open; here they go to the idlest lane, then to the one with the fewest slots (so that slots without
load do not all end on one), then by chance from a seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trimtab.planners.metrics import TOLERANCE
from trimtab.planners.nearness import Nearness
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints
from trimtab.ports import chance


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the slots went, and how near each one's lane was to it then."""

    lanes: Ints
    nearness: Floats


@dataclass(frozen=True, eq=False)
class Misfit:
    """A slot that fits nowhere, and what is left on every lane."""

    slot: int
    free: Floats


def place(
    snapshot: ClusterSnapshot, order: Ints, near: Nearness, cost: Floats, room: Floats, seed: int
) -> Placement | Misfit:
    """Place all slots in an order. `cost` is what a slot takes of the `room` of its lane; `near` is filled."""
    room = np.where(snapshot.draining, 0.0, room)
    used, slots = np.zeros(snapshot.lanes), np.zeros(snapshot.lanes)
    rank = chance(seed).permutation(snapshot.lanes).astype(np.float64)
    reached = np.zeros(len(snapshot))
    for slot in order.tolist():
        fits = (used + cost[slot] <= room * (1 + TOLERANCE)) & ~snapshot.draining
        if not fits.any():
            return Misfit(slot, room - used)
        nearness, idle = near.of(slot), 1 - used / np.where(room > 0, room, 1.0)
        lane = first_of(np.flatnonzero(fits), nearness * idle, idle, -slots, -rank)
        reached[slot] = nearness[lane]
        near.put(slot, lane)
        used[lane] += cost[slot]
        slots[lane] += 1
    return Placement(near.lanes.copy(), reached)


def first_of(candidates: Ints, *scores: Floats) -> int:
    """The candidate with the greatest first score; those that tie are told apart by the second, and so on.

    Scores that differ in their last digits only do tie, so that sums in another order choose the same.

    >>> first_of(np.array([0, 1, 2]), np.array([1.0, 3.0, 3.0]), np.array([9.0, 1.0, 2.0]))
    2
    """
    for score in scores:
        if len(candidates) == 1:
            break
        here = score[candidates]
        best = here.max()
        candidates = candidates[here >= best - TOLERANCE * abs(best)]
    return int(candidates[0])
