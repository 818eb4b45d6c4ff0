"""What better means: balance first, traffic first, a weight between the two, or traffic within a bound on balance.

`"balance"` is the least load distance in steps of a tenth of a point, finer than loads are ever known; of placements on
the same step the least spread of loads (their standard deviation, in the same steps), since a plan may well relieve one
of two hot lanes; then the least traffic between lanes, and of equals there the least distance after all. `"traffic"`
is the least traffic between lanes that capacities allow, and of equals the least load distance. A weight w is the least
`(1 - w) * load distance / 100 + w * share of traffic between lanes`. `Collocate` is balance as long as the load
distance is above a bound, and traffic within it.

Before all of them comes what must be: nothing on draining lanes, and, but for balance, which sees to it by itself, no
lane above its capacity; of placements that exceed capacities the one with the least excess on a lane, then on all.

A planner says in an attribute `objective` what it is for, and is judged by that where it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.metrics import TOLERANCE, imc_gain, lane_loads, load_distance
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints

Objective: TypeAlias = Literal["balance", "traffic"] | float
"""What planners that take an objective as an option can be asked for."""
Score: TypeAlias = tuple[float, ...]
"""Smaller is better, the first number counts most."""

RESOLUTION = 0.1
"""Percentage points of load distance; less is no difference."""
SLIGHT = 1e-6
"""What a slot without load counts for on a draining lane, as a share of all load: that lane has to be empty to go."""


@dataclass(frozen=True)
class Collocate:
    """The least traffic between lanes, with a load distance of at most so many points; None is the problem's limit."""

    max_load_distance: float | None = None

    def bound(self, snapshot: ClusterSnapshot) -> float:
        """In percentage points."""
        own = self.max_load_distance
        return snapshot.limits.max_load_distance if own is None else own


Aim: TypeAlias = Objective | Collocate
"""What a placement can be judged by."""


def aim_of(planner: object) -> Aim:
    """What a planner is for: its attribute `objective`; balance for one that has none.

    >>> aim_of(object())
    'balance'
    """
    return cast(Aim, getattr(planner, "objective", "balance"))


def check_objective(objective: Objective) -> None:
    """Raise a ProblemError for a weight that is none."""
    if isinstance(objective, (int, float)) and not 0 <= objective <= 1:
        raise ProblemError(f"options.objective is {objective}: a weight has to be from 0 (balance) to 1 (traffic).")


def traffic_weight(aim: Aim) -> float:
    """How much traffic counts against balance, from 0 to 1."""
    if isinstance(aim, Collocate):
        return 0.5
    if isinstance(aim, str):
        return 1.0 if aim == "traffic" else 0.0
    return aim


def score(snapshot: ClusterSnapshot, lanes: Ints, aim: Aim) -> Score:
    """How good a placement is.

    >>> snapshot = ClusterSnapshot.of(load=[2, 2], capacity=[4, 4], traffic=[(0, 1, 1.0)])
    >>> score(snapshot, np.array([0, 1]), "balance") < score(snapshot, np.array([0, 0]), "balance")
    True
    >>> score(snapshot, np.array([0, 1]), "traffic") < score(snapshot, np.array([0, 0]), "traffic")
    False
    >>> [score(snapshot, np.array([0, 1]), Collocate(most)) < score(snapshot, np.array([0, 0]), Collocate(most))
    ...  for most in (10, 50)]
    [True, False]
    """
    loads = lane_loads(snapshot, lanes)
    left = float(stranding(snapshot)[snapshot.draining[lanes] & (lanes >= 0)].sum())
    distance = load_distance(snapshot, lanes)
    apart = between(snapshot, lanes)
    if aim == "balance":
        return (left, steps(distance), steps(spread(snapshot, loads)), apart, distance / 100)
    over = excess(snapshot, loads)
    if aim == "traffic":
        return (left, *over, apart, distance / 100)
    if isinstance(aim, Collocate):
        uneven = steps(max(0.0, distance - aim.bound(snapshot)))
        return (left, *over, uneven, steps(spread(snapshot, loads)) if uneven else 0.0, apart, distance / 100)
    weight = traffic_weight(aim)
    return (left, *over, (1 - weight) * distance / 100 + weight * apart)


def stranding(snapshot: ClusterSnapshot) -> Floats:
    """By slot, how bad it is to leave it on a draining lane: its share of all load, and a little for itself."""
    return snapshot.load / (snapshot.total or 1.0) + SLIGHT


def excess(snapshot: ClusterSnapshot, loads: Floats) -> tuple[float, float]:
    """The most that a lane which stays is above its capacity, and the sum over all of them, as shares of capacity."""
    over = np.maximum(loads / snapshot.capacity - 1, 0)[snapshot.staying]
    return float(over.max(initial=0)), float(over.sum())


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
