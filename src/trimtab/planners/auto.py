"""`auto`: asks the planners that suit the problem, improves their plans by local search, and takes the best.

The placement in force is one of the starting points, so the answer is never worse than that. Which planners are asked
depends on the shape of the problem and on the objective: for traffic `topdown`, where there is any; for balance `milp`,
where the problem is small and the search alone has not levelled it. What they answer is brought within the budget by
the live wrapper and then improved: lanes are levelled by moves and swaps (`level`), then traffic is gathered (`gather`)
as far as the balance reached allows, or for `"traffic"` as far as capacities do. For a weight between the two,
gathering is tried under several bounds on the load distance, since each has its own best traffic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.planners.arrangement import Arrangement, Links
from trimtab.planners.bounds import Bounds
from trimtab.planners.gather import gather
from trimtab.planners.level import evacuate, level
from trimtab.planners.live import Live
from trimtab.planners.metrics import TOLERANCE, load_distance, measure
from trimtab.planners.milp import Milp
from trimtab.planners.objective import RESOLUTION, Objective, Score, better, check_objective, score, spread, steps
from trimtab.planners.options import check_amount, check_seed
from trimtab.planners.plan import Answer, Infeasible, Plan, Planner, no_lane
from trimtab.planners.reasons import level_reasons, traffic_reasons
from trimtab.planners.snapshot import ClusterSnapshot, Ints
from trimtab.planners.topdown import TopDown

BOUNDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
"""Percentage points by which lanes may differ from the mean while traffic is gathered for a weighted objective."""
SMALL = 20_000
"""Slots times lanes up to which an integer programme is worth its time."""
RESTARTS, FEW = 4, 100
"""So many seeds lead the search on few slots; for more, one has to do, since each costs its square."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A placement, what it is worth and what it comes from."""

    score: Score
    lanes: Ints
    origin: str


@dataclass(frozen=True)
class Auto:
    """Picks, refines and compares.

    >>> snapshot = ClusterSnapshot.of(load=[3, 3, 2, 2, 2], lane=[0, 0, 0, 0, 0], capacity=[10, 10])
    >>> plan = Auto().plan(snapshot)
    >>> measure(snapshot, plan.lanes).load_distance
    0.0
    """

    objective: Objective = "balance"
    seed: int = 0
    time_limit: float = 2.0
    """Seconds for an integer programme."""

    def __post_init__(self) -> None:
        check_objective(self.objective)
        check_seed(self.seed)
        check_amount("time_limit", self.time_limit)

    def plan(self, snapshot: ClusterSnapshot) -> Answer:
        if (refused := no_lane(snapshot)) is not None:
            return refused
        links = Links.of(snapshot)
        best = self._best(snapshot, "the placement in force", snapshot.lane, links)
        for name, planner in self._planners(snapshot, best.lanes):
            answer = Live(planner, self.objective).plan(snapshot)
            if not isinstance(answer, Infeasible):
                found = self._best(snapshot, name, answer.lanes, links)
                best = found if better(found.score, best.score) else best
        return self._explained(snapshot, best, links)

    def _planners(self, snapshot: ClusterSnapshot, lanes: Ints) -> Iterator[tuple[str, Planner]]:
        """Whom to ask, given what the search alone has found."""
        if snapshot.total_traffic and self.objective != "balance":
            yield "topdown", TopDown()
        small = len(snapshot) * snapshot.lanes <= SMALL
        if self.objective != "traffic" and small and load_distance(snapshot, lanes) > RESOLUTION:
            yield "milp", Milp(time_limit=self.time_limit, seed=self.seed)

    def _best(self, snapshot: ClusterSnapshot, origin: str, start: Ints, links: Links) -> Candidate:
        found = [
            Candidate(score(snapshot, lanes, self.objective), lanes, origin)
            for lanes in self._improved(snapshot, start, links)
        ]
        best = found[0]
        for each in found[1:]:
            best = each if better(each.score, best.score) else best
        return best

    def _improved(self, snapshot: ClusterSnapshot, start: Ints, links: Links) -> Iterator[Ints]:
        """What a start leads to, by itself and under every bound worth trying."""
        base = Arrangement(snapshot, start, links)
        evacuate(base, attracted=self.objective != "balance")
        yield base.lanes.copy()
        if self.objective != "traffic":
            level(base)
            yield base.lanes
        for bounds in self._bounds(snapshot, base):
            for restart in range(RESTARTS if len(snapshot) <= FEW else 1):
                arrangement = Arrangement(snapshot, base.lanes, links)
                gather(arrangement, bounds, self.seed + restart)
                yield arrangement.lanes

    def _bounds(self, snapshot: ClusterSnapshot, base: Arrangement) -> Iterator[Bounds]:
        """What lanes may carry while traffic is gathered."""
        reached = load_distance(snapshot, base.lanes)
        if self.objective == "traffic":
            yield Bounds.capacities(snapshot)
        elif self.objective == "balance":
            # As far as the score sees no difference, so that what is gathered is never lost for the balance it costs.
            figures = reached, spread(snapshot, base.loads)
            yield Bounds.around_mean(snapshot, *(RESOLUTION * (steps(each) + TOLERANCE / 2) for each in figures))
        else:
            least = max(reached, RESOLUTION)
            for bound in sorted({least, *(each for each in BOUNDS if each > least)}):
                yield Bounds.around_mean(snapshot, bound).at_most(snapshot.capacity)

    def _explained(self, snapshot: ClusterSnapshot, best: Candidate, links: Links) -> Plan:
        after = measure(snapshot, best.lanes)
        why = f"best found from {best.origin}: load distance {after.load_distance:.2f} points"
        if snapshot.total_traffic:
            why += f", {after.collocation:.0%} of traffic inside lanes"
        if snapshot.placed.all():
            before = measure(snapshot, snapshot.lane)
            why += f"; before, {before.load_distance:.2f} points and {before.collocation:.0%}"
        reasons = _reasons(snapshot, best.lanes, links)
        return Plan(best.lanes, why, reasons, {"load_distance": after.load_distance})


def _reasons(snapshot: ClusterSnapshot, lanes: Ints, links: Links) -> dict[int, str]:
    """By slot that moves, what it does for balance and traffic."""
    if not snapshot.total_traffic:
        return level_reasons(snapshot, lanes)
    return traffic_reasons(Arrangement(snapshot, lanes, links))
