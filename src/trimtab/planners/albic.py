"""ALBIC: level lanes that collocate a bit more at every call (ALBIC III-B2, with docs/papers.md).

1. Pairs of slots with much traffic for their sender are worth collocating. 2. Those that are on one lane already form
sets, which move as one; what is too large is split by balanced partitioning. 3. The pair with the most traffic that is
still apart is pinned to one lane, with the sets of its ends. 4. The MILP levels the lanes under these constraints; if
that leaves a load distance above maxLD, maxPL is halved and it starts again from step 2.

Readings. The budget by count bounds sets as the one by cost does. A pair that the budget cannot bring together, or that
alone would take a lane further above the mean than maxLD, is dropped for the one with the next most traffic. maxPL is
halved until there are no sets left, and after that the lanes are levelled without a pair; the answer is the first plan
within maxLD, or else the one with the least load distance. Draining lanes are never pinned to, and a slot without a
lane pairs with nothing before it has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.albic_reasons import Pair, explained
from trimtab.planners.collocation import SizeLimit, maintained_sets, qualifying_pairs
from trimtab.planners.metrics import load_distance, utilisation
from trimtab.planners.milp import Milp
from trimtab.planners.milp_problem import Allowance, SlotSet
from trimtab.planners.objective import Collocate
from trimtab.planners.plan import Infeasible, Plan, no_lane
from trimtab.planners.snapshot import ClusterSnapshot, Ints, Traffic
from trimtab.ports import chance

TRIES = 50
"""Pairs that may be dropped in a call."""


@dataclass(frozen=True)
class Albic:
    """Balance first, and at every call one pair more that shares a lane.

    `score_factor` is sF: between 1, where traffic spread evenly qualifies, and the number of downstream slots, where
    nothing does. `max_partition_load` is maxPL, in percent of a lane; `max_load_distance` is maxLD, by default the
    one of the problem's limits. `pairs_per_call` above 1 is not the paper's: it converges faster. `time_limit` is in
    seconds of the solver, for the whole plan however often it is solved again.

    >>> flow = ClusterSnapshot.of(
    ...     load=[3, 3, 3, 3], lane=[0, 0, 1, 1], operator=[0, 0, 1, 1], capacity=[10, 10],
    ...     traffic=[(0, 2, 5.0), (1, 3, 4.0)],
    ... )
    >>> plan = Albic().plan(flow)
    >>> bool(plan.lanes[0] == plan.lanes[2]), load_distance(flow, plan.lanes)
    (True, 0.0)
    """

    score_factor: float = 1.5
    max_partition_load: float = 20.0
    max_load_distance: float | None = None
    pairs_per_call: int = 1
    time_limit: float = 5.0
    gap: float = 0.01
    rounds: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("score_factor", "max_partition_load"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ProblemError(f"options.{name} is {getattr(self, name)}: it has to be a finite number above 0.")
        most = self.max_load_distance
        if most is not None and not (np.isfinite(most) and most >= 0):
            raise ProblemError(f"options.max_load_distance is {most}: it has to be a finite number, 0 or more.")
        if self.pairs_per_call < 0:
            raise ProblemError(f"options.pairs_per_call is {self.pairs_per_call}: it has to be 0 or more.")
        self._milp()

    @property
    def objective(self) -> Collocate:
        """What live plans are judged by: no more than maxLD, then collocation."""
        return Collocate(self.max_load_distance)

    def plan(self, snapshot: ClusterSnapshot) -> Plan | Infeasible:
        """A level plan that keeps together what is together, and collocates the next pair."""
        if refusal := no_lane(snapshot):
            return refusal
        wanted = self.max_load_distance if self.max_load_distance is not None else snapshot.limits.max_load_distance
        best: tuple[float, Plan | Infeasible] = np.inf, Infeasible("No plan keeps the limits of migration.")
        for plan in self._plans(snapshot, wanted):
            distance = load_distance(snapshot, plan.lanes) if isinstance(plan, Plan) else np.inf
            if distance < best[0]:
                best = distance, plan
            if distance <= wanted:
                break
        return best[1]

    def _plans(self, snapshot: ClusterSnapshot, wanted: float) -> Iterator[Plan | Infeasible]:
        """Ever smaller sets with new pairs, and at last neither."""
        pairs = qualifying_pairs(snapshot, self.score_factor)
        apart, allowance = self._apart(snapshot, pairs), Allowance(self.time_limit)
        for sets in self._partitions(snapshot, pairs):
            improved = _Improvement(snapshot, sets, wanted)
            chosen = improved.collocate(apart, self.pairs_per_call)
            yield self._solve(snapshot, improved.sets(), chosen, allowance)
        if len(apart) and self.pairs_per_call:
            yield self._solve(snapshot, [], [], allowance)

    def _partitions(self, snapshot: ClusterSnapshot, pairs: Traffic) -> Iterator[list[Ints]]:
        """The sets of step 2 for maxPL, half of it and so on, each time they differ; the last time there are none."""
        before: list[list[int]] | None = None
        for max_load in self._halves(snapshot):
            sets = maintained_sets(snapshot, pairs, SizeLimit(max_load), self.seed)
            members = [each.tolist() for each in sets]
            if members != before:
                yield sets
            before = members
            if not sets:
                return
        yield []

    def _halves(self, snapshot: ClusterSnapshot) -> Iterator[float]:
        """maxPL and half of it and so on, down to the lightest load there is."""
        points = 100 * snapshot.load[snapshot.load > 0] / float(snapshot.capacity.mean())
        most, lightest = self.max_partition_load, float(points.min(initial=np.inf))
        yield most
        while most > lightest:
            most /= 2
            yield most

    def _solve(
        self, snapshot: ClusterSnapshot, sets: list[SlotSet], chosen: list[Pair], allowance: Allowance
    ) -> Plan | Infeasible:
        plan = self._milp().plan_sets(snapshot, sets, allowance)
        return plan if isinstance(plan, Infeasible) else explained(snapshot, plan, sets, chosen)

    def _apart(self, snapshot: ClusterSnapshot, pairs: Traffic) -> Traffic:
        """Pairs that are on two lanes, the most traffic first, ties by chance."""
        ends = snapshot.lane[pairs.source], snapshot.lane[pairs.target]
        apart = np.flatnonzero((ends[0] != ends[1]) & snapshot.placed[pairs.source] & snapshot.placed[pairs.target])
        shuffled = chance(self.seed).permutation(apart)
        order = shuffled[np.argsort(-pairs.weight[shuffled], kind="stable")]
        return Traffic(pairs.source[order], pairs.target[order], pairs.weight[order])

    def _milp(self) -> Milp:
        return Milp(time_limit=self.time_limit, gap=self.gap, rounds=self.rounds, seed=self.seed)


class _Improvement:
    """Step 3: sets, and the lanes that some of them are pinned to."""

    def __init__(self, snapshot: ClusterSnapshot, sets: list[Ints], max_distance: float) -> None:
        self.snapshot = snapshot
        self.most = snapshot.mean + max_distance
        self.points = utilisation(snapshot, snapshot.lane)
        self.lane_of: dict[int, int] = {}
        self.label = np.arange(len(snapshot))
        for slots in sets:
            self.label[slots] = slots[0]
        self.spent = np.zeros(2)
        limits = snapshot.limits
        bounds = limits.max_migration, limits.max_moves
        self.budget = np.array([np.inf if each is None else float(each) for each in bounds]) * (1 + 1e-9)

    def collocate(self, pairs: Traffic, count: int) -> list[Pair]:
        """Pin up to `count` pairs that can be brought together; they come first."""
        chosen: list[Pair] = []
        columns = (each[: count + TRIES].tolist() for each in (pairs.source, pairs.target, pairs.weight))
        for one, other, weight in zip(*columns, strict=True):
            if len(chosen) == count:
                break
            if self._pin(one, other):
                chosen.append((one, other, weight))
        return chosen

    def sets(self) -> list[SlotSet]:
        order = np.argsort(self.label, kind="stable")
        starts = np.flatnonzero(np.diff(self.label[order], prepend=-1))
        groups = [tuple(part.tolist()) for part in np.split(order, starts[1:])] if len(order) else []
        known = [(slots, self.lane_of.get(int(self.label[slots[0]]))) for slots in groups]
        return [SlotSet(slots, lane) for slots, lane in known if len(slots) > 1 or lane is not None]

    def _pin(self, one: int, other: int) -> bool:
        """Put both, and the sets they are in, on one lane; unless they are pinned, or weigh or cost too much."""
        labels = int(self.label[one]), int(self.label[other])
        if labels[0] in self.lane_of or labels[1] in self.lane_of or (lane := self._place(one, other)) is None:
            return False
        if 100 * float(self.snapshot.load[[one, other]].sum() / self.snapshot.capacity[lane]) > self.most:
            return False
        slots = np.flatnonzero((self.label == labels[0]) | (self.label == labels[1]))
        leaving = slots[self.snapshot.lane[slots] != lane]
        spent = self.spent + np.array([self.snapshot.state[leaving].sum(), len(leaving)])
        if (spent > self.budget).any():
            return False
        self.spent, self.label[slots] = spent, labels[0]
        self.lane_of[labels[0]] = lane
        return True

    def _place(self, one: int, other: int) -> int | None:
        """Case 2: the lane of the end that is in a set. Cases 1 and 3: the less loaded of the two lanes."""
        in_set = [int((self.label == self.label[slot]).sum()) > 1 for slot in (one, other)]
        lanes = [int(self.snapshot.lane[slot]) for slot in (one, other)]
        if in_set[0] != in_set[1]:
            lanes = lanes[:1] if in_set[0] else lanes[1:]
        staying = [lane for lane in lanes if not self.snapshot.draining[lane]]
        return min(staying, key=lambda lane: float(self.points[lane]), default=None)
