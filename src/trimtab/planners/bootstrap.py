"""StroMAX's bootstrap scheduler: a first placement from the shape of the flow alone (StroMAX 3.2, equation 5).

Before the first row nothing is measured, so every slot costs one and so does every edge. Slots come in the order of
the flow, and each goes to the lane that maximises its neighbours there x the idle share of the lane.

The paper has task slots per node from Storm's configuration. A lane has no such number: here the lanes share out all
slots in proportion to their capacities, rounded up, so that lanes of one size take slots / lanes each;
`tasks_per_lane` sets the paper's number instead. The larger it is, the fewer lanes are used and the less crosses
between them. Ties: see `one_pass`. Slots that have a lane are placed afresh; what already runs is not looked at, and
nor are loads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.linearisation import linearise
from trimtab.planners.nearness import Nearness
from trimtab.planners.objective import Aim, Collocate
from trimtab.planners.one_pass import Misfit, Placement, place
from trimtab.planners.options import check_seed
from trimtab.planners.plan import Infeasible, Plan, no_lane
from trimtab.planners.snapshot import ClusterSnapshot, Floats


@dataclass(frozen=True)
class Bootstrap:
    """Equation 5.

    >>> flow = ClusterSnapshot.of(load=[0] * 4, capacity=[1, 1], operator=[0, 0, 1, 1], traffic=[(0, 2, 1), (1, 3, 1)])
    >>> Bootstrap().plan(flow).lanes.tolist()
    [0, 1, 0, 1]
    """

    objective: ClassVar[Aim] = Collocate()
    tasks_per_lane: int | None = None
    """How many slots each lane takes; by default a share of all of them."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.tasks_per_lane is not None and self.tasks_per_lane < 1:
            raise ProblemError(f"options.tasks_per_lane is {self.tasks_per_lane}: it has to be at least 1.")
        check_seed(self.seed)

    def plan(self, snapshot: ClusterSnapshot) -> Plan | Infeasible:
        """A lane for every slot, whatever the loads."""
        if refusal := no_lane(snapshot):
            return refusal
        order = linearise(snapshot, self.seed)
        if isinstance(order, Infeasible):
            return order
        ones = np.ones(len(snapshot))
        near = Nearness.by_neighbours(snapshot, ones)
        placement = place(snapshot, order, near, ones, self._room(snapshot), self.seed)
        return self._missing(snapshot) if isinstance(placement, Misfit) else _explained(placement)

    def _room(self, snapshot: ClusterSnapshot) -> Floats:
        """How many slots every lane takes."""
        if self.tasks_per_lane is not None:
            return np.full(snapshot.lanes, float(self.tasks_per_lane))
        shares = snapshot.capacity / snapshot.capacity[snapshot.staying].sum()
        # A share that is whole but for its last digit is not to be rounded up.
        return np.asarray(np.maximum(1.0, np.ceil(np.round(len(snapshot) * shares, 6))))

    def _missing(self, snapshot: ClusterSnapshot) -> Infeasible:
        lanes = snapshot.staying.size
        return Infeasible(
            f"There are {len(snapshot)} slots, but {lanes} lanes with options.tasks_per_lane {self.tasks_per_lane} "
            f"take {lanes * (self.tasks_per_lane or 0)}."
        )


def _explained(placement: Placement) -> Plan:
    reasons = {
        slot: f"{count:.0f} of its neighbours were placed on lane {lane}, more than on others for the room left"
        for slot, (lane, count) in enumerate(zip(placement.lanes.tolist(), placement.nearness.tolist(), strict=True))
        if count
    }
    return Plan(placement.lanes, "none of its neighbours had a lane with room, and this one was the idlest", reasons)
