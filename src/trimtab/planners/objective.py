"""What better means: balance first, traffic first, or a weight between the two.

`"balance"` is the least load distance in steps of a tenth of a point, finer than loads are ever known; of placements on
the same step the least spread of loads (their standard deviation, in the same steps), since a plan may well relieve one
of two hot lanes; then the least traffic between lanes, and of equals there the least distance after all. `"traffic"`
is the least traffic between lanes that capacities allow, and of equals the least load distance. A weight w is the least
`(1 - w) * load distance / 100 + w * share of traffic between lanes`. Before all of them comes what must be: no load on
draining lanes, and for `"traffic"` and weights no lane above its capacity.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.metrics import TOLERANCE, imc_gain, lane_loads, load_distance
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints

Objective: TypeAlias = Literal["balance", "traffic"] | float
Score: TypeAlias = tuple[float, ...]
"""Smaller is better, the first number counts most."""

RESOLUTION = 0.1
"""Percentage points of load distance; less is no difference."""


def check_objective(objective: Objective) -> None:
    """Raise a ProblemError for a weight that is none."""
    if isinstance(objective, (int, float)) and not 0 <= objective <= 1:
        raise ProblemError(f"options.objective is {objective}: a weight has to be from 0 (balance) to 1 (traffic).")


def traffic_weight(objective: Objective) -> float:
    """How much traffic counts against balance, from 0 to 1."""
    if isinstance(objective, str):
        return 1.0 if objective == "traffic" else 0.0
    return objective


def score(snapshot: ClusterSnapshot, lanes: Ints, objective: Objective) -> Score:
    """How good a placement is.

    >>> snapshot = ClusterSnapshot.of(load=[2, 2], capacity=[4, 4], traffic=[(0, 1, 1.0)])
    >>> score(snapshot, np.array([0, 1]), "balance") < score(snapshot, np.array([0, 0]), "balance")
    True
    >>> score(snapshot, np.array([0, 1]), "traffic") < score(snapshot, np.array([0, 0]), "traffic")
    False
    """
    loads = lane_loads(snapshot, lanes)
    stranded = float(loads[snapshot.draining].sum()) / (snapshot.total or 1.0)
    over = float(np.maximum(loads / snapshot.capacity - 1, 0)[snapshot.staying].max(initial=0))
    distance = load_distance(snapshot, lanes) / 100
    apart = between(snapshot, lanes)
    if objective == "balance":
        return (stranded, steps(100 * distance), steps(spread(snapshot, loads)), apart, distance)
    if objective == "traffic":
        return (stranded, over, apart, distance)
    weight = traffic_weight(objective)
    return (stranded, over, (1 - weight) * distance + weight * apart)


def steps(points: float) -> float:
    """Percentage points in steps of the resolution."""
    return float(np.ceil(points / RESOLUTION - TOLERANCE))


def spread(snapshot: ClusterSnapshot, loads: Floats) -> float:
    """The standard deviation of the loads of lanes that stay, in percentage points of their capacity."""
    here = snapshot.staying
    apart = 100 * loads[here] / snapshot.capacity[here] - snapshot.mean
    return float(np.sqrt((apart**2).mean())) if here.size else 0.0


def between(snapshot: ClusterSnapshot, lanes: Ints) -> float:
    """The share of traffic between lanes."""
    total = snapshot.total_traffic
    return max(0.0, 1 - imc_gain(snapshot, lanes) / total) if total else 0.0


def better(new: Score, old: Score) -> bool:
    """Whether a score beats another one by more than rounding."""
    for one, other in zip(new, old, strict=True):
        if abs(one - other) > TOLERANCE:
            return one < other
    return False
