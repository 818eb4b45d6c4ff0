"""Level lanes as a mixed-integer linear program under a budget of migration (ALBIC III-B1).

In this order as little as possible of: load distance, load left on draining lanes, upper plus lower deviation,
migration cost, moves. Constraints and slips of the paper: docs/papers.md; (3) is kept by the lanes that stay
only, because the load distance is theirs. Lanes of unlike capacity are level when their utilisation is.

Small problems are solved as they are; large ones by a greedy start and rounds on parts of them (milp_search.py). That
gives up two things: the proof, since no round sees all moves at once, so that the answer may be worse than the best one
by what Plan.detail calls gap; and the later aims once the load distance is good enough, where rounds end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trimtab.errors import ProblemError
from trimtab.planners.milp_problem import Allowance, SlotSet, levelling
from trimtab.planners.milp_search import Patience, search
from trimtab.planners.objective import Objective
from trimtab.planners.options import check_amount, check_seed
from trimtab.planners.plan import Infeasible, Plan, no_lane
from trimtab.planners.reasons import level_reasons
from trimtab.planners.snapshot import ClusterSnapshot


@dataclass(frozen=True)
class Milp:
    """The paper's planner of balance. Within the budget it always has a plan, however overloaded the lanes are.

    `time_limit` is in seconds of the solver; with 0 the greedy start is the answer. `gap` is in points: deviations that
    are closer than that to the best there can be are good enough. `rounds` is for large problems. With `paper_mean` the
    mean is rounded up as printed. Plan.detail has the load distance, the `bound` that no plan is below, and the `gap`
    between the two, in points.

    >>> heaped = ClusterSnapshot.of(load=[4, 3, 2, 1], lane=[0, 0, 0, 0], capacity=[10, 10])
    >>> plan = Milp().plan(heaped)
    >>> plan.lanes.tolist(), plan.detail["distance"]
    ([1, 0, 0, 1], 0.0)
    """

    objective: ClassVar[Objective] = "balance"
    time_limit: float = 5.0
    gap: float = 0.01
    rounds: int = 16
    paper_mean: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_amount("time_limit", self.time_limit)
        check_amount("gap", self.gap)
        check_seed(self.seed)
        if self.rounds < 0:
            raise ProblemError(f"options.rounds is {self.rounds}: it has to be 0 or more.")

    def plan(self, snapshot: ClusterSnapshot) -> Plan | Infeasible:
        """The most level plan that the budget allows."""
        return self.plan_sets(snapshot, ())

    def plan_sets(
        self, snapshot: ClusterSnapshot, sets: Sequence[SlotSet], allowance: Allowance | None = None
    ) -> Plan | Infeasible:
        """The same, with sets of slots that move as one; infeasible if the budget cannot bring them together.

        Solving takes from `allowance`, if there is one, instead of from a `time_limit` of its own.
        """
        if refusal := no_lane(snapshot):
            return refusal
        problem = levelling(snapshot, sets, self.paper_mean)
        if isinstance(problem, Infeasible):
            return problem
        patience = Patience(self.gap, self.rounds, self.seed)
        placement, bound = search(problem, patience, allowance or Allowance(self.time_limit))
        lanes, distance = placement[problem.unit], problem.rank(placement)[0]
        detail = {"distance": distance, "bound": bound, "gap": max(0.0, distance - bound)}
        return Plan(lanes, "it levels the lanes", level_reasons(snapshot, lanes), detail)
