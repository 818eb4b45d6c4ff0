"""A load distance that no plan can go below, without a solver."""

from __future__ import annotations

import numpy as np

from trimtab.planners.milp_problem import Levelling
from trimtab.planners.snapshot import Floats, Ints

STEPS = 40


def distance_bound(problem: Levelling) -> float:
    """The greater of two bounds: some lane has to carry the largest unit, and a budget buys only so much levelling.

    The second lets units move in parts, which costs no more than to move them whole: a lane that is above the mean by
    more than d sheds the dearest load per price first, and what light lanes lack comes from the same bargains.

    >>> from trimtab.planners.milp_problem import levelling
    >>> from trimtab.planners.snapshot import ClusterSnapshot
    >>> distance_bound(levelling(ClusterSnapshot.of(load=[8, 1, 1], lane=[0, 1, 1], capacity=[10, 10])))
    30.0
    >>> still = ClusterSnapshot.of(load=[3, 3, 1, 1], lane=[0, 0, 1, 1], capacity=[10, 10], max_moves=0)
    >>> round(distance_bound(levelling(still)), 6)
    20.0
    """
    return max(_largest(problem), _budgeted(problem))


def _largest(problem: Levelling) -> float:
    """Nothing where units may stay on draining lanes: the largest one might, and those lanes need not be level."""
    staying = problem.home[problem.home >= 0]
    if not problem.load.size or problem.draining[staying].any():
        return 0.0
    capacity = problem.capacity[~problem.draining]
    return max(0.0, 100 * float(problem.load.max()) / float(capacity.max()) - problem.mean)


def _budgeted(problem: Levelling) -> float:
    if (problem.home < 0).any() or problem.draining.any():
        return 0.0
    curves = [_Bargains(problem, price, budget) for price, budget in _budgets(problem)]
    if not curves:
        return 0.0
    excess = (problem.points(problem.home) - problem.mean) * problem.capacity / 100
    low, high = 0.0, float(np.abs(excess / problem.capacity).max()) * 100
    for _ in range(STEPS):
        middle = (low + high) / 2
        if all(curve.affords(excess, middle * problem.capacity / 100) for curve in curves):
            high = middle
        else:
            low = middle
    return low


def _budgets(problem: Levelling) -> list[tuple[Floats, float]]:
    pairs = [(problem.cost, problem.max_cost), (problem.moves.astype(np.float64), problem.max_moves)]
    return [(price, max(0.0, budget)) for price, budget in pairs if np.isfinite(budget)]


class _Bargains:
    """By lane, the least price at which so much load leaves it."""

    def __init__(self, problem: Levelling, price: Floats, budget: float) -> None:
        free = np.flatnonzero(~problem.pinned & (problem.load > 0))
        order = free[np.argsort(price[free] / problem.load[free], kind="stable")]
        self.budget = budget
        self.all = self._curve(problem, price, order)
        self.by_lane = [
            self._curve(problem, price, order[problem.home[order] == lane]) for lane in range(problem.lanes)
        ]

    @staticmethod
    def _curve(problem: Levelling, price: Floats, units: Ints) -> tuple[Floats, Floats]:
        start = np.zeros(1)
        loads = np.concatenate([start, np.cumsum(problem.load[units])])
        return loads, np.concatenate([start, np.cumsum(price[units])])

    def affords(self, excess: Floats, slack: Floats) -> bool:
        """Whether the budget can pay what every lane has to give, and what light lanes have to get."""
        given, got = np.maximum(excess - slack, 0), np.maximum(-excess - slack, 0)
        needs = zip(given, self.by_lane, strict=True)
        if sum(_price(curve, need) for need, curve in needs) > self.budget:
            return False
        return _price(self.all, float(got.sum())) <= self.budget


def _price(curve: tuple[Floats, Floats], need: float) -> float:
    loads, prices = curve
    if need > loads[-1] * (1 + 1e-9):
        return np.inf
    return float(np.interp(need, loads, prices))
