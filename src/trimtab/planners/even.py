"""Round robin of slots over lanes: what Storm's default scheduler does (Top-down 7, StroMAX 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trimtab.planners.objective import Objective
from trimtab.planners.plan import Answer, Plan, no_lane
from trimtab.planners.snapshot import ClusterSnapshot


@dataclass(frozen=True)
class Even:
    """As many slots on each lane that stays, operator after operator, whatever their loads and traffic.

    >>> flow = ClusterSnapshot.of(load=[9, 1, 1, 1], operator=[0, 1, 0, 1], capacity=[9, 9, 9])
    >>> Even().plan(flow).lanes.tolist()
    [0, 2, 1, 0]
    """

    objective: ClassVar[Objective] = "balance"

    def plan(self, snapshot: ClusterSnapshot) -> Answer:
        """Deal the slots out in the order of their operators."""
        if refusal := no_lane(snapshot):
            return refusal
        staying = snapshot.staying
        lanes = snapshot.lane.copy()
        lanes[snapshot.operator.argsort(kind="stable")] = np.resize(staying, len(snapshot))
        return Plan(lanes, "slots are dealt out to the lanes in turn")
