"""Solving a levelling problem: as it is where it is small, by rounds on parts of it where it is large.

Up to `WHOLE` pairs of unit and lane the program is solved for one objective after the other. A larger problem starts
from a greedy placement (milp_start.py), and where there is a budget other ways to spend it are tried. Then each round
solves the same program, with all objectives in one weighted sum, for a few lanes and some of their units: the lane
farthest from the mean, lanes at the other end, and others by chance. What a round finds counts only if it is better in
lexicographic order, so the weights decide what is tried and not what is kept. Deviations that are `gap` from the best
there can be are good enough, in both.

Nodes and rounds limit the work, so that the same problem gives the same answer. The time limit is a safety net: an
answer that it cuts short may differ between machines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trimtab.planners.milp_bound import distance_bound
from trimtab.planners.milp_model import Neighbourhood
from trimtab.planners.milp_problem import IDLE, Levelling, Rank, better
from trimtab.planners.milp_solver import Effort, Program, solve
from trimtab.planners.milp_start import respend, starting_point, tight
from trimtab.planners.snapshot import Ints
from trimtab.ports import chance

WHOLE = 300
"""Pairs of unit and lane up to which a problem is small: a second or two."""
WORK = 10_000
"""Nodes times pairs: enough to prove most answers for a dozen units on three lanes, and no long wait for `WHOLE`."""
ROUND_NODES = 20
TRIES, STALLED_TRIES = 3, 15
"""To spend a tight budget in other ways: so many for each round allowed, and so many without success that end it."""
STALL = 8
"""Rounds without success after which the others are left out."""
LANES = 5
UNITS = 16
"""Of a round: lanes, and units for each of them; about a tenth of a second."""
OPPOSITE = 2
"""Lanes of a round at the end opposite to the worst one."""
ENOUGH = 0.5
"""The share of the load distance to which a round tries to bring it down; the next one goes on from there."""
NEAR = 0.05
"""The share of it that a round may miss its best by."""
WEIGHTS = np.array([1.0, 1e-2, 1e-2, 1e-4])
"""Of the objectives in a round."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Patience:
    """When to stop: seconds of the solver, points above the bound, rounds. Chance comes from the seed."""

    seconds: float
    gap: float
    rounds: int
    seed: int


def search(problem: Levelling, patience: Patience) -> tuple[Ints, float]:
    """A lane for every unit, and a load distance that none is below."""
    found = _Search(problem, patience)
    units = np.flatnonzero(~problem.pinned)
    if units.size * problem.lanes <= WHOLE:
        found.whole(units)
    else:
        found.rounds(units)
    return found.lane, min(found.bound, problem.rank(found.lane)[0])


class _Search:
    """The best placement so far, and the best bound on the load distance."""

    def __init__(self, problem: Levelling, patience: Patience) -> None:
        self.problem, self.patience = problem, patience
        self.bound = distance_bound(problem)
        self.seconds = patience.seconds
        self.random = chance(patience.seed)
        self.lane = starting_point(problem, self._good()[0])

    def whole(self, units: Ints) -> None:
        """One objective after the other, without losing what the ones before have reached."""
        if not units.size:
            return
        part = Neighbourhood(self.problem, self.lane, units, np.arange(self.problem.lanes))
        objectives = part.objectives()
        program = part.program(objectives[0], self.bound)
        for number, objective in enumerate(objectives):
            if float(objective @ part.point(self.lane)) > self._good()[number] + ROUNDING:
                bound = self._solve(part, replace(program, cost=objective), self._effort(number, part.size))
                self.bound = max(self.bound, bound) if number == 0 else self.bound
            reached = float(objective @ part.point(self.lane))
            program = program.at_most(objective, max(reached, self._good()[number]))

    def rounds(self, units: Ints) -> None:
        """The worst lane and some others at a time, until that is good enough or nothing helps any more."""
        if tight(self.problem):
            self._respend()
        success = -1
        for number in range(self.patience.rounds):
            distance = self.problem.rank(self.lane)[0]
            if distance <= self._good()[0] or number > success + STALL:
                return
            lanes = self._some_lanes()
            part = Neighbourhood(self.problem, self.lane, self._some_units(units, lanes), lanes)
            program = part.program(WEIGHTS @ np.array(part.objectives()), max(self.bound, ENOUGH * distance))
            gap = max(self.patience.gap, NEAR * distance)
            self._solve(part, program, Effort(self.seconds, ROUND_NODES, gap, self.patience.seed + number))
            success = number if self.lane is not part.lane else success

    def _respend(self) -> None:
        """Other ways to spend the budget, until that is good enough or none was better for long."""
        success = 0
        for number in range(TRIES * self.patience.rounds):
            if self.problem.rank(self.lane)[0] <= self._good()[0] or number > success + STALLED_TRIES:
                return
            lane = respend(self.problem, self.lane, self._good()[0], self.random)
            if better(self._rank(lane), self._rank(self.lane)):
                self.lane, success = lane, number

    def _effort(self, objective: int, size: int) -> Effort:
        """For one of the objectives, so that no unit is left on a draining lane for the gap's sake."""
        gap = min(self.patience.gap, IDLE / 2) if objective == 1 else self.patience.gap
        return Effort(self.seconds, WORK // size, gap, self.patience.seed)

    def _solve(self, part: Neighbourhood, program: Program, effort: Effort) -> float:
        """Solve, keep what is better, and return a bound on the cost."""
        if not part.size or self.seconds <= 0:
            return -np.inf
        found = solve(program, effort, part.point(self.lane))
        self.seconds -= found.seconds
        if found.x is not None:
            lane = part.placement(found.x)
            if self.problem.affords(lane) and better(self._rank(lane), self._rank(self.lane)):
                self.lane = lane
        return found.bound

    def _good(self) -> tuple[float, float, float, float]:
        """What is good enough of each objective: `gap` above the bound, and as much at either end."""
        gap = self.patience.gap
        return self.bound + gap, 0.0, 2 * gap, 0.0

    def _rank(self, lane: Ints) -> Rank:
        """As the problem ranks it, with all that is good enough alike."""
        distance, left, ends, cost, moves = self.problem.rank(lane)
        return max(distance, self._good()[0]), left, max(ends, self._good()[2]), cost, moves

    def _some_lanes(self) -> Ints:
        """The worst lane, a few at the other end, and others at random, draining ones among them."""
        problem = self.problem
        staying = np.flatnonzero(~problem.draining)
        deviation = problem.points(self.lane)[staying] - problem.mean
        worst = int(np.argmax(np.abs(deviation)))
        order = staying[np.argsort(deviation if deviation[worst] > 0 else -deviation, kind="stable")]
        chosen = np.concatenate([staying[[worst]], order[order != staying[worst]][:OPPOSITE]])
        others = np.setdiff1d(np.arange(problem.lanes), chosen)
        count = min(len(others), max(0, LANES - len(chosen)))
        return np.sort(np.concatenate([chosen, self.random.choice(others, count, replace=False)]))

    def _some_units(self, units: Ints, lanes: Ints) -> Ints:
        there = units[np.isin(self.lane[units], lanes)]
        count = min(len(there), LANES * UNITS)
        return np.sort(self.random.choice(there, count, replace=False))
