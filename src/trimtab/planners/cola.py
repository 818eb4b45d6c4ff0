"""COLA, a baseline of ALBIC IV (its reference 15, as docs/papers.md reads it).

All slots are fused into one, which is cut by recursive balanced min-cuts until there is a part for every lane that
stays. It plans from scratch: blind to where slots are and to what it costs to move them. Parts are as large as the
capacities of their lanes say, and may exceed them: METIS balances within `tolerance` only where slots are fine enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.objective import Aim, Collocate
from trimtab.planners.options import check_seed
from trimtab.planners.partition import known_pairs, partition
from trimtab.planners.plan import Infeasible, Plan, no_lane
from trimtab.planners.snapshot import ClusterSnapshot


@dataclass(frozen=True)
class Cola:
    """As little traffic between lanes as balance allows; `tolerance` is by how much a part may exceed its share.

    Cuts that recur end well above the tolerance where slots are large. Without `recursive` all parts are cut at once,
    which is better balanced, and not what COLA does.

    >>> pairs = [(0, 1, 5.0), (2, 3, 5.0), (1, 2, 1.0)]
    >>> lanes = Cola().plan(ClusterSnapshot.of(load=[1, 1, 1, 1], capacity=[9, 9], traffic=pairs)).lanes.tolist()
    >>> lanes[0] == lanes[1] != lanes[2] == lanes[3]
    True
    """

    objective: ClassVar[Aim] = Collocate()
    tolerance: float = 0.01
    recursive: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.tolerance) and self.tolerance > 0):
            raise ProblemError(f"options.tolerance is {self.tolerance}: it has to be a finite number above 0.")
        check_seed(self.seed)

    def plan(self, snapshot: ClusterSnapshot) -> Plan | Infeasible:
        if refusal := no_lane(snapshot):
            return refusal
        staying = snapshot.staying
        edges, shares = known_pairs(snapshot), snapshot.capacity[staying]
        part = partition(len(staying), snapshot.load, edges, self.seed, shares, self.tolerance, self.recursive)
        return Plan(staying[part], "it keeps the slot with those it has the most traffic with")
