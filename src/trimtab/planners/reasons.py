"""Why slots move, in words that planners share."""

from __future__ import annotations

import numpy as np

from trimtab.planners.arrangement import Arrangement
from trimtab.planners.metrics import utilisation
from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Ints


def level_reasons(snapshot: ClusterSnapshot, lanes: Ints) -> dict[int, str]:
    """The reason of every slot that moves, from the loads before.

    >>> snapshot = ClusterSnapshot.of(load=[3, 1], lane=[0, -1], capacity=[4, 4])
    >>> level_reasons(snapshot, np.array([1, 0]))
    {0: 'lane 0 carried 75 % and lane 1 0 % with a mean of 50 %', 1: 'it had no lane'}
    """
    points = [f"{each:.3g} %" for each in utilisation(snapshot, snapshot.lane)]
    mean, reasons = f"{snapshot.mean:.3g} %", {}
    for slot in np.flatnonzero(lanes != snapshot.lane).tolist():
        old, new = int(snapshot.lane[slot]), int(lanes[slot])
        if old == UNPLACED:
            reasons[slot] = "it had no lane"
        elif snapshot.draining[old]:
            reasons[slot] = f"lane {old} is draining and lane {new} carried {points[new]} with a mean of {mean}"
        else:
            reasons[slot] = f"lane {old} carried {points[old]} and lane {new} {points[new]} with a mean of {mean}"
    return reasons


def traffic_reasons(arrangement: Arrangement) -> dict[int, str]:
    """The same, with the traffic of a slot that is beside it after all moves, and what would be had it stayed."""
    snapshot, lanes = arrangement.snapshot, arrangement.lanes
    reasons = level_reasons(snapshot, lanes)
    there = arrangement.pull_to(lanes)
    stayed = arrangement.pull_to(np.where(snapshot.placed, snapshot.lane, lanes))
    for slot, why in reasons.items():
        instead = f", where it was {stayed[slot]:.4g} would be" if snapshot.placed[slot] else ""
        reasons[slot] = f"{why}; {there[slot]:.4g} of its traffic is beside it there{instead}"
    return reasons
