"""The MILP of ALBIC III-B1 for some units and some lanes of a problem, all others staying where they are.

Variables: x of every unit and lane it may be on, d, and U = d - d_u and L = d - d_l: the most that a staying lane is
above and below the mean. U, L <= d because d_u, d_l >= 0. Constraints (1) to (4); (5) is dropped, and (3) holds for
lanes that stay, as the load distance does. The objectives in order: d, the load left on draining lanes, U + L, and the
cost of migration, in which the number of moves breaks ties. A lane that drains may keep what it has and get nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sparse

from trimtab.planners.milp_problem import IDLE, Levelling
from trimtab.planners.milp_solver import Program
from trimtab.planners.snapshot import Floats, Ints

MOVE = 1e-4
"""What a move costs beside a slot whose migration costs 1."""


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The units that may move, and the lanes that they are on and may move among; `lane` is where all units are now."""

    problem: Levelling
    lane: Ints
    units: Ints
    lanes: Ints

    @cached_property
    def choices(self) -> tuple[Ints, Ints]:
        """Pairs of a unit, as an index in `units`, and a lane it may be on: one that stays, or its home."""
        unit, lane = np.indices((len(self.units), len(self.lanes))).reshape(2, -1)
        lane = self.lanes[lane]
        allowed = ~self.problem.draining[lane] | (self.problem.home[self.units[unit]] == lane)
        return unit[allowed], lane[allowed]

    @property
    def size(self) -> int:
        """The number of x."""
        return len(self.choices[0])

    def objectives(self) -> list[Floats]:
        """Rows of cost, the most important first; the variables are every x, then d, U, L."""
        unit, lane = self.choices
        migration = (_scaled(self.problem.cost) + MOVE * self.problem.moves)[self.units[unit]] * self._away()
        left = np.where(self.problem.draining[lane], self._points() + IDLE, 0.0)
        nothing, ends = np.zeros(self.size), np.zeros(3)
        return [
            np.concatenate([nothing, [1.0, 0.0, 0.0]]),
            np.concatenate([left, ends]),
            np.concatenate([nothing, [0.0, 1.0, 1.0]]),
            np.concatenate([migration, ends]),
        ]

    def program(self, cost: Floats, floor: float) -> Program:
        """The program with one row of cost; below `floor` d is not to be brought."""
        problem, outside = self.problem, self._outside()
        base, staying = self._base(), self._staying()
        room = problem.mean - base[staying]
        rows, low, high = self._placed_once()
        loads = self._loads()
        up = sparse.hstack([loads, self._ends(len(staying), 1, -1.0)])
        down = sparse.hstack([loads, self._ends(len(staying), 2, 1.0)])
        ordered = sparse.csr_array(np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]))
        order = sparse.hstack([sparse.csr_array((2, self.size)), ordered])
        budget, budget_high = self._budget()
        without = np.full(len(staying), np.inf)
        return Program(
            cost=cost,
            lower=np.concatenate([np.zeros(self.size), [max(floor, 0.0, *outside)], outside]),
            upper=np.concatenate([np.ones(self.size), np.full(3, np.inf)]),
            integer=np.arange(self.size + 3) < self.size,
            matrix=sparse.vstack([rows, up, down, order, budget]),
            row_lower=np.concatenate([low, -without, room, [-np.inf, -np.inf], np.full(2, -np.inf)]),
            row_upper=np.concatenate([high, room, without, [0.0, 0.0], budget_high]),
        )

    def point(self, placement: Ints) -> Floats:
        """The variables for a lane of every unit of the problem."""
        unit, lane = self.choices
        upper, lower = self.problem.ends(placement)
        return np.concatenate([placement[self.units[unit]] == lane, [max(upper, lower), upper, lower]])

    def placement(self, x: Floats) -> Ints:
        """The lane of every unit of the problem, from the variables."""
        unit, lane = self.choices
        chosen = x[: self.size] > 0.5
        result = self.lane.copy()
        result[self.units[unit[chosen]]] = lane[chosen]
        return result

    def _staying(self) -> Ints:
        return self.lanes[~self.problem.draining[self.lanes]]

    def _points(self) -> Floats:
        unit, lane = self.choices
        return np.asarray(100 * self.problem.load[self.units[unit]] / self.problem.capacity[lane])

    def _away(self) -> Floats:
        unit, lane = self.choices
        home = self.problem.home[self.units[unit]]
        return np.asarray((home >= 0) & (home != lane), np.float64)

    def _base(self) -> Floats:
        """The points of every lane without the units that may move."""
        others = self.lane.copy()
        others[self.units] = -1
        return self.problem.points(others)

    def _outside(self) -> tuple[float, float]:
        """The greatest deviations up and down of the lanes that are not in it."""
        outside = ~self.problem.draining
        outside[self.lanes] = False
        deviation = self.problem.points(self.lane)[outside] - self.problem.mean
        return float(deviation.max(initial=-np.inf)), float((-deviation).max(initial=-np.inf))

    def _placed_once(self) -> tuple[Any, Floats, Floats]:
        unit = self.choices[0]
        rows = sparse.csr_array(
            (np.ones(self.size), (unit, np.arange(self.size))), shape=(len(self.units), self.size + 3)
        )
        return rows, np.ones(len(self.units)), np.ones(len(self.units))

    def _loads(self) -> Any:
        staying, lane = self._staying(), self.choices[1]
        there = np.flatnonzero(~self.problem.draining[lane])
        row = np.searchsorted(staying, lane[there])
        return sparse.csr_array((self._points()[there], (row, there)), shape=(len(staying), self.size))

    def _ends(self, rows: int, column: int, sign: float) -> Any:
        ends = np.zeros((rows, 3))
        ends[:, column] = sign
        return sparse.csr_array(ends)

    def _budget(self) -> tuple[Any, Floats]:
        problem, unit = self.problem, self.units[self.choices[0]]
        scale = np.array([problem.cost.max(initial=0.0) or 1.0, 1.0])
        away = np.stack([problem.cost[unit], problem.moves[unit]]) * self._away()
        others = self.lane.copy()
        others[self.units] = problem.home[self.units]
        left = np.array([problem.max_cost, problem.max_moves]) - problem.spent(others)
        return sparse.csr_array(np.hstack([away / scale[:, None], np.zeros((2, 3))])), left / scale


def _scaled(cost: Floats) -> Floats:
    """Costs in whatever unit, with the greatest as 1, which is kind to a solver's tolerances."""
    return cost / (cost.max(initial=0.0) or 1.0)
