"""Placement by hash, as Spark's shuffle does it: fixed, and blind to load and traffic.

Spark sends a key to partition `pmod(hash, partitions)`. A slot is `pmod(hash, slots)` of one operator, so its number
modulo the lanes is just Spark's partition where the lanes divide the slots, and the nearest thing to it elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trimtab.planners.objective import Objective
from trimtab.planners.plan import Answer, Plan, no_lane
from trimtab.planners.snapshot import ClusterSnapshot, Ints


@dataclass(frozen=True)
class Hash:
    """Every slot on the lane of its number within its operator, modulo the lanes that stay.

    >>> flow = ClusterSnapshot.of(load=[9, 1, 1, 1, 1], operator=[0, 0, 0, 1, 1], capacity=[9, 9])
    >>> Hash().plan(flow).lanes.tolist()
    [0, 1, 0, 0, 1]
    """

    objective: ClassVar[Objective] = "balance"

    def plan(self, snapshot: ClusterSnapshot) -> Answer:
        """The slot's number modulo the lanes."""
        if refusal := no_lane(snapshot):
            return refusal
        lanes = snapshot.staying[numbers(snapshot) % len(snapshot.staying)]
        return Plan(lanes, "its number within its operator, modulo the lanes, is that lane")


def numbers(snapshot: ClusterSnapshot) -> Ints:
    """Every slot's number within its operator."""
    order = snapshot.operator.argsort(kind="stable")
    starts = np.cumsum(snapshot.sizes) - snapshot.sizes
    within = np.empty(len(snapshot), np.int64)
    within[order] = np.arange(len(snapshot)) - starts[snapshot.operator[order]]
    return within
