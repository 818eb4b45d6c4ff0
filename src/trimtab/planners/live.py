"""The live wrapper: what stands between a planner that knows nothing of the present and a stream that runs.

A planner's own placement is (1) relabelled, so that lanes of one capacity swap names for the most overlap with the
routing in force; (2) trimmed to the migration budget, by sending back those slots first whose return does the least
harm for what it saves; (3) rid of moves whose return does no harm at all; and (4) refused as a whole when it is no
better than the placement in force. Slots without a lane, and those on draining lanes, move in any case as far as the
budget allows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from scipy.optimize import linear_sum_assignment

from trimtab.planners.arrangement import Arrangement
from trimtab.planners.metrics import migration_cost
from trimtab.planners.objective import Objective, better, score, traffic_weight
from trimtab.planners.plan import Answer, Infeasible, Plan, Planner, stay
from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Flags, Floats, Ints

ROUNDS = 200
"""In so many rounds at most a plan is brought within its budget, so that no plan takes long."""
CHECKED = 1_000
"""Up to so many moves are tried one by one for whether they bring anything."""
STRANDED = 1e6
"""How much worse it is to leave load on a draining lane than anywhere else."""


@dataclass(frozen=True)
class Live:
    """Makes a planner fit for a running stream. `objective` is by default the planner's own, or balance."""

    planner: Planner
    objective: Objective | None = None

    def plan(self, snapshot: ClusterSnapshot) -> Answer:
        """
        >>> from trimtab.planners.even import Even
        >>> level = ClusterSnapshot.of(load=[1, 1], lane=[1, 0], capacity=[9, 9])
        >>> Live(Even()).plan(level).lanes.tolist()
        [1, 0]
        """
        answer = self.planner.plan(snapshot)
        if isinstance(answer, Infeasible):
            return answer
        objective = self.objective
        if objective is None:
            objective = cast(Objective, getattr(self.planner, "objective", "balance"))
        plan = relabelled(snapshot, answer)
        return replace(plan, lanes=_kept(snapshot, plan, objective))


def _kept(snapshot: ClusterSnapshot, plan: Plan, objective: Objective) -> Ints:
    arrangement = Arrangement(snapshot, plan.lanes)
    keep_budget(arrangement, objective)
    drop_idle_moves(arrangement, objective)
    lanes = arrangement.lanes
    must = (~snapshot.placed).any() or snapshot.draining[snapshot.lane].any()
    if not must and not better(score(snapshot, lanes, objective), score(snapshot, snapshot.lane, objective)):
        return stay(snapshot).lanes
    return lanes


def relabelled(snapshot: ClusterSnapshot, plan: Plan) -> Plan:
    """The plan with lanes of one capacity renamed where that leaves more state in place."""
    lanes = snapshot.lanes
    overlap = np.zeros((lanes, lanes))
    # A slot without state weighs a little as well, so that as few as possible move.
    weight = snapshot.state + max(float(snapshot.state.max(initial=0)), 1.0) * 1e-6
    here = snapshot.placed
    np.add.at(overlap, (plan.lanes[here], snapshot.lane[here]), weight[here])
    alike = snapshot.capacity[:, None] == snapshot.capacity
    alike &= snapshot.draining[:, None] == snapshot.draining
    overlap[~alike] = -float(weight.sum()) - 1
    _, names = linear_sum_assignment(overlap, maximize=True)
    renamed = names[plan.lanes].astype(np.int64)
    if migration_cost(snapshot, renamed) >= migration_cost(snapshot, plan.lanes):
        return plan
    # Reasons that name lanes would name the wrong ones.
    return replace(plan, lanes=renamed, reasons={})


def keep_budget(arrangement: Arrangement, objective: Objective) -> None:
    """Send slots back to where they are until the moves that are left fit the budget."""
    while not _within(arrangement):
        moved = _movable(arrangement)
        harm = _harm(arrangement, objective)[moved] / np.maximum(arrangement.snapshot.state[moved], 1e-12)
        count = max(1, len(moved) // ROUNDS)
        for slot in moved[np.argsort(harm, kind="stable")[:count]].tolist():
            arrangement.move(slot, int(arrangement.snapshot.lane[slot]))


def drop_idle_moves(arrangement: Arrangement, objective: Objective) -> None:
    """Undo every move without which the placement is no worse, the least useful first."""
    snapshot = arrangement.snapshot
    moved = _movable(arrangement)
    moved = moved[~snapshot.draining[snapshot.lane[moved]]]
    if len(moved) > CHECKED:
        return
    best = score(snapshot, arrangement.lanes, objective)
    for slot in moved[np.argsort(_harm(arrangement, objective)[moved], kind="stable")].tolist():
        there = int(arrangement.lanes[slot])
        arrangement.move(slot, int(snapshot.lane[slot]))
        found = score(snapshot, arrangement.lanes, objective)
        if better(best, found):
            arrangement.move(slot, there)
        else:
            best = found


def _within(arrangement: Arrangement) -> bool:
    limits = arrangement.snapshot.limits
    return (limits.max_moves is None or arrangement.moves <= limits.max_moves) and (
        limits.max_migration is None or arrangement.cost <= limits.max_migration
    )


def _movable(arrangement: Arrangement) -> Ints:
    home = arrangement.snapshot.lane
    return np.flatnonzero((home != UNPLACED) & (home != arrangement.lanes))


def _harm(arrangement: Arrangement, objective: Objective) -> Floats:
    """By slot, what its return to the lane it comes from would do to balance and traffic, by the objective's weight."""
    snapshot = arrangement.snapshot
    weight = traffic_weight(objective)
    home = np.where(snapshot.placed, snapshot.lane, arrangement.lanes)
    tilt = _tilt(arrangement, home) / ((snapshot.mean / 100) ** 2 * float(snapshot.capacity.sum()) or 1.0)
    apart = arrangement.pull_to(arrangement.lanes) - arrangement.pull_to(home)
    apart = apart / (snapshot.total_traffic or 1.0)
    stranded: Flags = snapshot.draining[home]
    return np.asarray((1 - weight) * tilt + weight * apart + STRANDED * stranded)


def _tilt(arrangement: Arrangement, home: Ints) -> Floats:
    """How the sum of squared deviations would grow with each slot back at home."""
    snapshot, deviation, here = arrangement.snapshot, arrangement.deviation, arrangement.lanes
    load, capacity = snapshot.load, snapshot.capacity
    leaving = 2 * deviation[here] * load - load**2 / capacity[here]
    coming = 2 * deviation[home] * load + load**2 / capacity[home]
    return np.asarray(np.where(here == home, 0.0, coming - leaving))
