"""StroMAX's rebalance scheduler: the placement of all flows afresh from what was measured (StroMAX 3.3, eq. 10).

Like `bootstrap`, but a slot costs its load, a lane has its capacity, and the nearness of a lane has weight. The paper
plans one global graph of all flows that run: `snapshot.combine` makes one.

Equation 10 as printed weighs a neighbour by its own computation cost |x| (`weigh="load"`), although the objective
(6)-(9) is about the traffic between the two: `weigh="traffic"` does that. The paper's costs are per tuple and without
a rate; loads and traffic here are per period, so rate x cost per row. The capacity test includes the slot itself.
The pass sees slots in the flow's order and not by size, so where capacities are tight it may find no place for a
slot although there is a packing: that is the paper's, and comes back as infeasible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from trimtab.errors import ProblemError
from trimtab.planners.linearisation import linearise
from trimtab.planners.nearness import Nearness
from trimtab.planners.objective import Objective
from trimtab.planners.one_pass import Misfit, Placement, place
from trimtab.planners.options import check_seed
from trimtab.planners.plan import Infeasible, Plan, no_lane, too_small
from trimtab.planners.snapshot import ClusterSnapshot


@dataclass(frozen=True)
class Rebalance:
    """Equation 10.

    >>> flow = ClusterSnapshot.of(
    ...     load=[2, 1, 1], capacity=[4, 4], operator=[0, 0, 1], traffic=[(0, 2, 1.0), (1, 2, 9.0)]
    ... )
    >>> by_load, by_traffic = Rebalance("load").plan(flow), Rebalance("traffic").plan(flow)
    >>> bool(by_load.lanes[2] == by_load.lanes[0]), bool(by_traffic.lanes[2] == by_traffic.lanes[1])
    (True, True)
    """

    objective: ClassVar[Objective] = "traffic"
    keeps_capacity: ClassVar[bool] = True
    weigh: Literal["load", "traffic"] = "load"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.weigh not in ("load", "traffic"):
            raise ProblemError(f"options.weigh is {self.weigh!r}: it has to be 'load' or 'traffic'.")
        check_seed(self.seed)

    def plan(self, snapshot: ClusterSnapshot) -> Plan | Infeasible:
        """A lane for every slot within the capacities."""
        if refusal := no_lane(snapshot):
            return refusal
        order = linearise(snapshot, self.seed)
        if isinstance(order, Infeasible):
            return order
        placement = place(snapshot, order, self._near(snapshot), snapshot.load, snapshot.capacity, self.seed)
        if isinstance(placement, Misfit):
            return too_small(snapshot, placement.free, placement.slot)
        return self._explained(placement)

    def _near(self, snapshot: ClusterSnapshot) -> Nearness:
        if self.weigh == "traffic":
            return Nearness.by_traffic(snapshot)
        return Nearness.by_neighbours(snapshot, snapshot.load)

    def _explained(self, placement: Placement) -> Plan:
        what = "exchanging traffic" if self.weigh == "traffic" else "with load"
        reasons = {
            slot: f"neighbours {what} {near:.6g} were placed on lane {lane}, more than on others for the room left"
            for slot, (lane, near) in enumerate(zip(placement.lanes.tolist(), placement.nearness.tolist(), strict=True))
            if near
        }
        return Plan(
            placement.lanes, "none of its neighbours had a lane with room, and this one was the idlest", reasons
        )
