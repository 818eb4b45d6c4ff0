"""Mixed-integer programs in neutral form, and HiGHS behind it: the only file that knows highspy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sparse

from trimtab.planners.snapshot import Flags, Floats


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise `cost @ x` where `row_lower <= matrix @ x <= row_upper` and `lower <= x <= upper`."""

    cost: Floats
    lower: Floats
    upper: Floats
    integer: Flags
    matrix: Any
    """A scipy sparse matrix."""
    row_lower: Floats
    row_upper: Floats

    def at_most(self, row: Floats, bound: float) -> Program:
        """The same with one more constraint: `row @ x <= bound`."""
        return replace(
            self,
            matrix=sparse.vstack([self.matrix, sparse.csr_array(row[None, :])]),
            row_lower=np.append(self.row_lower, -np.inf),
            row_upper=np.append(self.row_upper, bound),
        )


@dataclass(frozen=True)
class Effort:
    """When to stop. Nodes and the gap stop alike on every machine; seconds, of the solver, are the safety net."""

    seconds: float
    nodes: int
    gap: float = 1e-6
    """The distance of value and bound, absolute, at which a solution counts as the best."""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Solution:
    """The best `x` that was found, a bound that the cost of no `x` is below, and the seconds that the solver took."""

    x: Floats | None
    """None if there is none, or none was found."""
    bound: float
    seconds: float


def solve(program: Program, effort: Effort, start: Floats | None = None) -> Solution:
    """The best solution within the effort; `start` is one to begin with.

    >>> import scipy.sparse as sparse
    >>> one, free = np.ones(2), np.full(1, -np.inf)
    >>> whole = Program(-one, 0 * one, 3 * one, one > 0, sparse.csr_array([[2.0, 2.0]]), free, np.array([5.0]))
    >>> solve(whole, Effort(1, 10)).bound
    -2.0
    """
    solver = _solver(effort)
    solver.passModel(_model(program))
    if start is not None:
        guess = highspy.HighsSolution()
        guess.col_value = start.tolist()
        solver.setSolution(guess)
    solver.run()
    seconds, info = float(solver.getRunTime()), solver.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Solution(None, -np.inf, seconds)
    bound = info.mip_dual_bound if program.integer.any() else info.objective_function_value
    return Solution(np.array(solver.getSolution().col_value, np.float64), float(bound), seconds)


def _solver(effort: Effort) -> Any:
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]  # it ships half of its types
    options: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "parallel": "off",
        "time_limit": effort.seconds,
        "mip_max_nodes": effort.nodes,
        "mip_abs_gap": effort.gap,
        "mip_rel_gap": 0.0,
        "random_seed": effort.seed % 2**31,
        # More than half of the time went to cuts inside the tree and to heuristics; answers are as good without.
        "mip_allow_cut_separation_at_nodes": False,
        "mip_heuristic_run_rins": False,
        "mip_heuristic_run_rens": False,
        "mip_heuristic_run_root_reduced_cost": False,
        "mip_heuristic_run_feasibility_jump": False,
        "mip_heuristic_effort": 0.0,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return solver


def _model(program: Program) -> Any:
    rows = program.matrix.tocsr()
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(program.cost), len(program.row_lower)
    model.col_cost_, model.col_lower_, model.col_upper_ = program.cost, program.lower, program.upper
    model.row_lower_, model.row_upper_ = program.row_lower, program.row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    kinds = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    model.integrality_ = [kinds[0] if whole else kinds[1] for whole in program.integer.tolist()]
    return model
