"""A good placement without a solver: what the MILP starts from, and the answer when the solver finds none better.

Four passes within the budget: units without a lane are placed, draining lanes emptied, heavy lanes spill into light
ones, and the lane farthest from the mean exchanges units with lanes at the other end for as long as that helps. A tight
budget may be better kept for exchanges, since spilling levels no lane until it has levelled another: both are tried.
`respend` tries to spend such a budget in still other ways.
"""

from __future__ import annotations

from heapq import heapify, heapreplace

import numpy as np

from trimtab.planners.milp_problem import Allowance, Levelling
from trimtab.planners.snapshot import UNPLACED, Floats, Ints
from trimtab.ports import Chance

PARTNERS = 8
"""Lanes that the worst lane may exchange with."""
CANDIDATES = 64
"""Units of a lane that may take part, evenly from light to heavy; a lane with more has plenty of every size."""
PLENTY = 2_000
"""Units among which spilling is never left out: one exchange after the other would take too long."""

Exchange = tuple[float, list[tuple[int, int]]]
"""How much levelling each move of it brings, and the moves: a unit and its new lane."""
NOTHING: Exchange = (-np.inf, [])


def starting_point(problem: Levelling, good_enough: float = 0.0, allowance: Allowance | None = None) -> Ints:
    """A lane for every unit, within the budget; exchanges end at a load distance that is good enough.

    >>> from trimtab.planners.milp_problem import levelling
    >>> from trimtab.planners.snapshot import ClusterSnapshot
    >>> heaped = ClusterSnapshot.of(load=[4, 3, 2, 1], lane=[0, 0, 0, 1], capacity=[10, 10], max_moves=1)
    >>> starting_point(levelling(heaped)).tolist()
    [1, 0, 0, 1]
    """
    allowance = allowance or Allowance(0.0)
    ways = (True, False) if tight(problem) else (True,)
    tries = [_levelled(problem, good_enough, allowance, spill) for spill in ways]
    return min(tries, key=problem.rank)


def tight(problem: Levelling) -> bool:
    """Whether there is a budget to husband, and few enough units to try several ways of doing so."""
    return problem.load.size <= PLENTY and bool(np.isfinite([problem.max_cost, problem.max_moves]).any())


def _levelled(problem: Levelling, good_enough: float, allowance: Allowance, spill: bool) -> Ints:
    greedy = _Greedy(problem)
    greedy.place()
    greedy.drain()
    if spill:
        greedy.spill()
    greedy.exchange_until(good_enough, allowance)
    return greedy.lane


def respend(problem: Levelling, lane: Ints, good_enough: float, random: Chance, allowance: Allowance) -> Ints:
    """Take some moves of a placement back, by chance, and spend what they cost on exchanges.

    >>> from trimtab.planners.milp_problem import levelling
    >>> from trimtab.planners.snapshot import ClusterSnapshot
    >>> from trimtab.ports import chance
    >>> heaped = ClusterSnapshot.of(load=[4, 3, 2, 1], lane=[0, 0, 0, 1], capacity=[10, 10], max_moves=1)
    >>> respend(levelling(heaped), np.array([0, 0, 1, 1]), 0.0, chance(0), Allowance(1)).tolist()
    [1, 0, 0, 1]
    """
    moved = np.flatnonzero(lane != problem.home)
    free = moved[(problem.home[moved] >= 0) & ~problem.draining[problem.home[moved]]]
    back = random.choice(free, int(random.integers(1, len(free) + 1)), replace=False) if free.size else free
    greedy = _Greedy(problem)
    for unit in np.setdiff1d(moved, back).tolist():
        greedy.move(unit, int(lane[unit]))
    greedy.exchange_until(good_enough, allowance)
    return greedy.lane


class _Greedy:
    """A placement that improves move by move."""

    def __init__(self, problem: Levelling) -> None:
        self.problem = problem
        self.lane = problem.home.copy()
        self.points = problem.points(self.lane)
        self.spent = np.zeros(2)
        self.budget = np.array([problem.max_cost, problem.max_moves])
        self.price = np.stack([problem.cost, problem.moves], axis=1)
        self.staying = np.flatnonzero(~problem.draining)
        self.members: list[list[int]] = [[] for _ in range(problem.lanes)]
        for unit in np.flatnonzero((self.lane >= 0) & ~problem.pinned).tolist():
            self.members[self.lane[unit]].append(unit)

    @property
    def distance(self) -> float:
        return float(np.abs(self.points[self.staying] - self.problem.mean).max())

    def move(self, unit: int, lane: int) -> None:
        problem, old = self.problem, int(self.lane[unit])
        if old != UNPLACED:
            self.points[old] -= 100 * problem.load[unit] / problem.capacity[old]
            self.members[old].remove(unit)
        self.points[lane] += 100 * problem.load[unit] / problem.capacity[lane]
        self.members[lane].append(unit)
        self.spent = self.spent + self.extra(np.array([unit]), lane)[0]
        self.lane[unit] = lane

    def extra(self, units: Ints, lane: int) -> Floats:
        """What it adds to cost and moves to put each unit on a lane; nothing for the unit -1, which is none."""
        home = self.problem.home[units]
        change = (home != lane).astype(np.int64) - (home != self.lane[units])
        return self.price[units] * np.where((home == UNPLACED) | (units < 0), 0, change)[:, None]

    def affordable(self, extra: Floats) -> bool:
        return bool((self.spent + extra <= self.budget).all())

    def place(self) -> None:
        """Every unit without a lane, the heaviest first, to the lane that is then the least loaded."""
        homeless = np.flatnonzero(self.lane == UNPLACED)
        for unit in homeless[np.argsort(-self.problem.load[homeless], kind="stable")].tolist():
            self.move(unit, self._lightest(unit))

    def drain(self) -> None:
        """The units of draining lanes likewise, those first that bring the most load for their price."""
        leaving = [unit for lane in np.flatnonzero(self.problem.draining).tolist() for unit in self.members[lane]]
        units = np.array(leaving, np.int64)
        worth = self.problem.load[units] / np.maximum(self._share(self.price[units]), 1e-12)
        for unit in units[np.lexsort((units, -worth))].tolist():
            lane = self._lightest(unit)
            if self.affordable(self.extra(np.array([unit]), lane)[0]):
                self.move(unit, lane)

    def spill(self) -> None:
        """The heaviest lane gives its largest unit that neither overfills the lightest nor leaves itself too light."""
        problem = self.problem
        heap = [(-float(self.points[lane] - problem.mean), int(lane)) for lane in self.staying]
        heapify(heap)
        while heap and heap[0][0] < 0:
            heavy = heap[0][1]
            light = int(self.staying[np.argmin(self.points[self.staying])])
            unit = self._fitting(heavy, light)
            if unit is None:
                heapreplace(heap, (0.0, heavy))
                continue
            self.move(unit, light)
            heapreplace(heap, (problem.mean - float(self.points[heavy]), heavy))

    def exchange_until(self, good_enough: float, allowance: Allowance) -> None:
        while allowance.exchanges and self.distance > good_enough and self.exchange():
            allowance.exchanges -= 1

    def exchange(self) -> bool:
        """One move or swap between the lane farthest from the mean and a lane at the other end, if any helps."""
        deviation = self.points[self.staying] - self.problem.mean
        worst = int(np.argmax(np.abs(deviation)))
        heavy, limit = deviation[worst] > 0, abs(float(deviation[worst]))
        order = np.argsort(deviation if heavy else -deviation, kind="stable")
        others = self.staying[order[order != worst][:PARTNERS]].tolist()
        lane = int(self.staying[worst])
        pairs = [(lane, other) if heavy else (other, lane) for other in others]
        found = [self._best(giver, taker, limit) for giver, taker in pairs]
        _, moves = max(found, key=lambda each: each[0], default=NOTHING)
        for unit, to in moves:
            self.move(unit, to)
        return bool(moves)

    def _best(self, giver: int, taker: int, limit: float) -> Exchange:
        """The exchange that brings both lanes nearer to the mean than `limit`, and the most per move."""
        given, taken = self._offers(giver), self._offers(taker)
        shift = self._load(given)[:, None] - self._load(taken)[None, :]
        before = self.points[[giver, taker]] - self.problem.mean
        after_giver = before[0] - 100 * shift / self.problem.capacity[giver]
        after_taker = before[1] + 100 * shift / self.problem.capacity[taker]
        extra = self.extra(given, taker)[:, None] + self.extra(taken, giver)[None, :]
        allowed = (self.spent + extra <= self.budget).all(axis=2)
        allowed &= np.maximum(np.abs(after_giver), np.abs(after_taker)) < limit * (1 - 1e-9) - 1e-9
        gain = (before**2).sum() - after_giver**2 - after_taker**2
        score = np.where(allowed, gain / np.maximum(extra[:, :, 1], 0.5), -np.inf)
        row, column = np.unravel_index(int(np.argmax(score)), score.shape)
        if not allowed[row, column]:
            return NOTHING
        moves = [(int(given[row]), taker), (int(taken[column]), giver)]
        return float(score[row, column]), [each for each in moves if each[0] >= 0]

    def _offers(self, lane: int) -> Ints:
        """-1 for nothing, and units of the lane."""
        units = np.array(sorted(self.members[lane]), np.int64)
        if len(units) > CANDIDATES:
            units = units[np.argsort(self.problem.load[units], kind="stable")]
            units = units[np.linspace(0, len(units) - 1, CANDIDATES).astype(np.int64)]
        return np.concatenate([np.array([-1]), units])

    def _load(self, units: Ints) -> Floats:
        return np.where(units < 0, 0.0, self.problem.load[units])

    def _lightest(self, unit: int) -> int:
        after = self.points + 100 * self.problem.load[unit] / self.problem.capacity
        return int(self.staying[np.argmin(after[self.staying])])

    def _fitting(self, heavy: int, light: int) -> int | None:
        problem, units = self.problem, np.array(self.members[heavy], np.int64)
        excess = (self.points[heavy] - problem.mean) * problem.capacity[heavy]
        lack = (problem.mean - self.points[light]) * problem.capacity[light]
        fits = units[(100 * problem.load[units] <= min(excess, lack)) & (problem.load[units] > 0)]
        fits = fits[(self.spent + self.extra(fits, light) <= self.budget).all(axis=1)]
        if not fits.size:
            return None
        return int(fits[np.lexsort((fits, -problem.load[fits]))[0]])

    def _share(self, price: Floats) -> Floats:
        """The greater share that a price has of its budget."""
        finite = np.where(np.isfinite(self.budget) & (self.budget > 0), self.budget, np.inf)
        return np.asarray((price / finite).max(axis=1))
