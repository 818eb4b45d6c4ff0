"""Moves that need no planner: off draining lanes, and onto lanes that have nothing yet, by number of slots.

What a flow without a planner does when lanes come and go by hand, and what helps when a planner finds no plan.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trimtab.planners.snapshot import Ints
from trimtab.vocab import LaneId, Move, OperatorId, Routing


def evacuation(routing: Routing) -> tuple[Move, ...]:
    """The fewest moves after which no draining lane has a slot, fullest lanes last.

    >>> routing = Routing(3, ((0, 1, 2, 2),), draining=(2,))
    >>> [(move.slot, move.target) for move in evacuation(routing)]
    [(2, 0), (3, 1)]
    """
    return tuple(move for operator in range(len(routing.slots)) for move in _evacuated(routing, operator))


def levelling(routing: Routing) -> tuple[Move, ...]:
    """The fewest moves after which, of each operator, no lane that stays has two slots more than another.

    >>> [(move.slot, move.target) for move in levelling(Routing(2, ((0, 0, 0, 0),)))]
    [(0, 1), (1, 1)]
    """
    return tuple(move for operator in range(len(routing.slots)) for move in _levelled(routing, operator))


def _evacuated(routing: Routing, operator: OperatorId) -> Iterator[Move]:
    lanes = np.array(routing.slots[operator], np.int64)
    counts = _counts(routing, lanes)
    for slot in np.flatnonzero(np.isin(lanes, np.array(routing.draining, np.int64))).tolist():
        target = min(counts, key=lambda lane: (counts[lane], lane))
        counts[target] += 1
        source = int(lanes[slot])
        yield Move(operator, slot, source, target, f"lane {source} is draining, and lane {target} had the fewest slots")


def _levelled(routing: Routing, operator: OperatorId) -> Iterator[Move]:
    lanes = np.array(routing.slots[operator], np.int64)
    counts = _counts(routing, lanes)
    held = {lane: np.flatnonzero(lanes == lane).tolist() for lane in counts}
    while True:
        full = max(counts, key=lambda lane: (counts[lane], -lane))
        free = min(counts, key=lambda lane: (counts[lane], lane))
        if counts[full] - counts[free] < 2:
            return
        slot = held[full].pop(0)
        counts[full] -= 1
        counts[free] += 1
        yield Move(operator, slot, full, free, f"lane {free} had the fewest slots")


def _counts(routing: Routing, lanes: Ints) -> dict[LaneId, int]:
    """How many of an operator's slots each lane that stays has."""
    return {lane: int((lanes == lane).sum()) for lane in routing.staying}
