"""The live wrapper: what stands between a planner that knows nothing of the present and a stream that runs.

A planner's own placement is (1) relabelled, so that lanes of one capacity swap names for the most overlap with the
routing in force; (2) trimmed to the migration budget, by sending back those slots first whose return does the least
harm for what it saves; (3) rid of moves whose return does no harm at all. It is taken if it then beats the
base placement: the one in force, in which slots without a lane are placed and draining lanes are emptied as far as the
budget allows, and nothing else. Better is meant by the planner's own objective (`objective.py`).

Where this leaves the planner's placement as it was, the plan is the planner's. Where it does not, what the planner
says about its plan no longer holds, and the reasons are the wrapper's own: the loads before, and the traffic after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from trimtab.planners.arrangement import Arrangement
from trimtab.planners.level import evacuate
from trimtab.planners.metrics import TOLERANCE, migrated, over_budget
from trimtab.planners.objective import Aim, aim_of, better, score, stranding, traffic_weight
from trimtab.planners.plan import Answer, Infeasible, Plan, Planner, no_lane
from trimtab.planners.reasons import level_reasons, traffic_reasons
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints

ROUNDS = 100
"""In so many rounds a plan is brought within its budget: what a return does is known anew in each of them."""
CHECKED = 1_000
"""So many times it is tried whether moves bring anything: one by one up to so many, in equal parts beyond."""
FORBIDDEN = 1e6
"""How much worse it is to leave load on a draining lane, or above a lane's capacity, than anywhere else."""
TRIFLE = 1e-12
"""What stands for a limit of 0 where costs are divided by it."""

TRIMMED = "the planner's placement, with lanes renamed, within the limits and without moves that bring nothing"
REFUSED = "the planner's placement is no better than the one in force, so nothing moves but what has to"


@dataclass(frozen=True)
class Live:
    """Makes a planner fit for a running stream. `objective` is by default the planner's own."""

    planner: Planner
    objective: Aim | None = None

    def plan(self, snapshot: ClusterSnapshot) -> Answer:
        """
        >>> from trimtab.planners.even import Even
        >>> level = ClusterSnapshot.of(load=[1, 1], lane=[1, 0], capacity=[9, 9])
        >>> Live(Even()).plan(level).lanes.tolist()
        [1, 0]
        """
        if refused := no_lane(snapshot):
            return refused
        answer = self.planner.plan(snapshot)
        if isinstance(answer, Infeasible):
            return answer
        aim = aim_of(self.planner) if self.objective is None else self.objective
        base = base_placement(snapshot, aim)
        fitted = _fitted(base, answer.lanes, aim)
        chosen = fitted if _beats(fitted, base, aim) else base
        if np.array_equal(chosen.lanes, answer.lanes):
            return answer
        return Plan(chosen.lanes, TRIMMED if _free(chosen).size else REFUSED, _reasons(chosen, aim))


def _beats(fitted: Arrangement, base: Arrangement, aim: Aim) -> bool:
    """Whether a plan is better than the base; as good is good enough where nothing more migrates for it."""
    new, old = (score(each.snapshot, each.lanes, aim) for each in (fitted, base))
    return better(new, old) or (not better(old, new) and fitted.moves <= base.moves and fitted.cost <= base.cost)


def base_placement(snapshot: ClusterSnapshot, aim: Aim) -> Arrangement:
    """What any plan has to beat: the placement in force, in which only those slots move that have to."""
    base = Arrangement(snapshot, snapshot.lane)
    _settle(base, aim)
    return base


def _fitted(base: Arrangement, lanes: Ints, aim: Aim) -> Arrangement:
    """What a planner's placement comes to in a running stream."""
    arrangement = Arrangement(base.snapshot, relabelled(base.snapshot, lanes), base.links)
    keep_budget(arrangement, aim)
    _settle(arrangement, aim)
    drop_idle_moves(arrangement, aim)
    return arrangement


def _settle(arrangement: Arrangement, aim: Aim) -> None:
    """Place slots and empty draining lanes, next to their traffic if that counts and loads tell when a lane is full."""
    evacuate(arrangement, attracted=aim != "balance" and arrangement.snapshot.total > 0)


def relabelled(snapshot: ClusterSnapshot, lanes: Ints) -> Ints:
    """The placement with lanes of one capacity renamed where that leaves more state in place.

    >>> snapshot = ClusterSnapshot.of(load=[1] * 4, lane=[0, 0, 0, 1], capacity=[9, 9])
    >>> relabelled(snapshot, np.array([1, 1, 0, 0])).tolist()
    [0, 0, 1, 1]
    """
    # A slot without state weighs a little as well, so that as few as possible move.
    weight = snapshot.state + (float(snapshot.state.max(initial=0)) or 1.0) * 1e-6
    overlap = np.zeros((snapshot.lanes,) * 2)
    here = snapshot.placed
    np.add.at(overlap, (lanes[here], snapshot.lane[here]), weight[here])
    unlike = snapshot.capacity[:, None] != snapshot.capacity
    unlike |= snapshot.draining[:, None] != snapshot.draining
    overlap[unlike] = -float(weight.sum()) - 1
    old, new = linear_sum_assignment(overlap, maximize=True)
    gain = float(overlap[old, new].sum() - np.trace(overlap))
    return new[lanes].astype(np.int64) if gain > TOLERANCE * float(weight.sum()) else lanes


def keep_budget(arrangement: Arrangement, aim: Aim) -> None:
    """Send slots back to where they are until the moves that are left fit the budget."""
    snapshot = arrangement.snapshot
    price = _price(snapshot)
    batch = -(-len(_migrated(arrangement)) // ROUNDS)
    while over_budget(snapshot, arrangement.lanes):
        moved = _migrated(arrangement)
        moved = moved[price[moved] > 0]
        if not moved.size:
            return
        harm = _harm(arrangement, aim)[moved] / price[moved]
        for slot in moved[np.argsort(harm, kind="stable")[:batch]].tolist():
            arrangement.move(slot, int(snapshot.lane[slot]))
            if arrangement.within_budget:
                break


def drop_idle_moves(arrangement: Arrangement, aim: Aim) -> None:
    """Undo every move without which the placement is no worse, the least useful first; many moves by the batch."""
    snapshot = arrangement.snapshot
    moved = _free(arrangement)
    order = moved[np.argsort(_harm(arrangement, aim)[moved], kind="stable")]
    best = score(snapshot, arrangement.lanes, aim)
    for batch in np.array_split(order, max(1, min(len(order), CHECKED))):
        there = arrangement.lanes[batch]
        _put(arrangement, batch, snapshot.lane[batch])
        found = score(snapshot, arrangement.lanes, aim)
        if better(best, found):
            _put(arrangement, batch, there)
        else:
            best = found


def _put(arrangement: Arrangement, slots: Ints, lanes: Ints) -> None:
    for slot, lane in zip(slots.tolist(), lanes.tolist(), strict=True):
        arrangement.move(slot, lane)


def _migrated(arrangement: Arrangement) -> Ints:
    """The slots that have left a lane."""
    return migrated(arrangement.snapshot, arrangement.lanes)


def _free(arrangement: Arrangement) -> Ints:
    """Those of them that need not have."""
    moved = _migrated(arrangement)
    return moved[~arrangement.snapshot.draining[arrangement.snapshot.lane[moved]]]


def _price(snapshot: ClusterSnapshot) -> Floats:
    """By slot, which share of the budget its move takes, over the limits that there are."""
    limits = snapshot.limits
    price = np.zeros(len(snapshot))
    if limits.max_migration is not None:
        price += snapshot.state / max(limits.max_migration, TRIFLE)
    if limits.max_moves is not None:
        price += 1 / max(limits.max_moves, TRIFLE)
    return price


def _harm(arrangement: Arrangement, aim: Aim) -> Floats:
    """By slot, what its return to the lane it comes from would do to balance and traffic, by the objective's weight."""
    snapshot = arrangement.snapshot
    weight = traffic_weight(aim)
    home = np.where(snapshot.placed, snapshot.lane, arrangement.lanes)
    tilt = _tilt(arrangement, home) / ((snapshot.mean / 100) ** 2 * float(snapshot.capacity.sum()) or 1.0)
    apart = arrangement.pull_to(arrangement.lanes) - arrangement.pull_to(home)
    apart = apart / (snapshot.total_traffic or 1.0)
    forbidden = stranding(snapshot) * snapshot.draining[home]
    if aim != "balance":
        over = arrangement.loads[home] + snapshot.load - snapshot.capacity[home]
        forbidden += np.maximum(over, 0) / (snapshot.total or 1.0)
    return np.asarray((1 - weight) * tilt + weight * apart + FORBIDDEN * forbidden)


def _tilt(arrangement: Arrangement, home: Ints) -> Floats:
    """How the sum of squared deviations would grow with each slot back at home."""
    snapshot, deviation, here = arrangement.snapshot, arrangement.deviation, arrangement.lanes
    load, capacity = snapshot.load, snapshot.capacity
    leaving = 2 * deviation[here] * load - load**2 / capacity[here]
    coming = 2 * deviation[home] * load + load**2 / capacity[home]
    return np.asarray(np.where(here == home, 0.0, coming - leaving))


def _reasons(arrangement: Arrangement, aim: Aim) -> dict[int, str]:
    """By slot that moves, the loads before and, where traffic counts, what is beside it now: facts that always hold."""
    if aim == "balance" or not arrangement.snapshot.total_traffic:
        return level_reasons(arrangement.snapshot, arrangement.lanes)
    return traffic_reasons(arrangement)
