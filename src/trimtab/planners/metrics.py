"""The figures that planners, control and tests share. Loads are in percentage points of lane capacity."""

from __future__ import annotations

import msgspec
import numpy as np

from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints

TOLERANCE = 1e-9
"""Relative: sums of the same loads in another order differ in their last digits."""


class Metrics(msgspec.Struct, frozen=True):
    """A placement in figures."""

    load_distance: float
    mean_load: float
    max_load: float
    imc_gain: float
    traffic_between_lanes: float
    collocation: float
    migration_cost: float
    moves: int
    feasible: bool


def measure(snapshot: ClusterSnapshot, lanes: Ints) -> Metrics:
    """All figures of a placement that gives every slot a lane."""
    gain = imc_gain(snapshot, lanes)
    return Metrics(
        load_distance=load_distance(snapshot, lanes),
        mean_load=snapshot.mean,
        max_load=float(utilisation(snapshot, lanes).max()),
        imc_gain=gain,
        traffic_between_lanes=max(0.0, snapshot.total_traffic - gain),
        collocation=gain / snapshot.total_traffic if snapshot.total_traffic else 1.0,
        migration_cost=migration_cost(snapshot, lanes),
        moves=len(migrated(snapshot, lanes)),
        feasible=not missing(snapshot, lanes),
    )


def lane_loads(snapshot: ClusterSnapshot, lanes: Ints) -> Floats:
    """The load of every lane; slots without a lane count nowhere."""
    there = lanes >= 0
    return np.bincount(lanes[there], snapshot.load[there], snapshot.lanes).astype(np.float64)


def utilisation(snapshot: ClusterSnapshot, lanes: Ints) -> Floats:
    """The same in percent of each lane's capacity."""
    return 100 * lane_loads(snapshot, lanes) / snapshot.capacity


def load_distance(snapshot: ClusterSnapshot, lanes: Ints) -> float:
    """The largest difference between the load of a lane that stays and the mean (ALBIC III-B1).

    >>> load_distance(ClusterSnapshot.of(load=[30, 10], capacity=[100, 100]), np.array([0, 1]))
    10.0
    """
    staying = snapshot.staying
    if not staying.size:
        return np.inf
    return float(np.abs(utilisation(snapshot, lanes)[staying] - snapshot.mean).max())


def load_index(snapshot: ClusterSnapshot, start: ClusterSnapshot) -> float:
    """The mean load against the one right after the start, in percent (ALBIC IV).

    >>> start, now = (ClusterSnapshot.of(load=[load], capacity=[100]) for load in (40, 30))
    >>> load_index(now, start)
    75.0
    """
    return 100 * snapshot.mean / start.mean if start.mean else 100.0


def imc_gain(snapshot: ClusterSnapshot, lanes: Ints) -> float:
    """Traffic whose two ends are on one lane, every weight once (Top-down 2).

    >>> flow = ClusterSnapshot.of(load=[1, 1, 1], capacity=[9, 9], operator=[0, 1, 1], groups=[(0, 1, 8.0)])
    >>> imc_gain(flow, np.array([0, 0, 1]))
    4.0
    """
    single = snapshot.traffic.weight[lanes[snapshot.traffic.source] == lanes[snapshot.traffic.target]]
    counts = slots_by_operator(snapshot, lanes)
    groups = snapshot.groups
    sizes = np.maximum(snapshot.sizes[groups.source] * snapshot.sizes[groups.target], 1)
    together = np.einsum("gl,gl->g", counts[groups.source], counts[groups.target])
    return float(single.sum() + (groups.weight * together / sizes).sum())


def slots_by_operator(snapshot: ClusterSnapshot, lanes: Ints) -> Floats:
    """How many slots of each operator every lane has."""
    there = lanes >= 0
    codes = snapshot.operator[there] * snapshot.lanes + lanes[there]
    counts = np.bincount(codes, minlength=len(snapshot.operators) * snapshot.lanes)
    return counts.reshape(len(snapshot.operators), snapshot.lanes).astype(np.float64)


def migrated(snapshot: ClusterSnapshot, lanes: Ints) -> Ints:
    """The slots that leave a lane for another; to place one that has no lane yet is no migration."""
    return np.flatnonzero(snapshot.placed & (lanes != snapshot.lane))


def migration_cost(snapshot: ClusterSnapshot, lanes: Ints) -> float:
    return float(snapshot.state[migrated(snapshot, lanes)].sum())


def missing(snapshot: ClusterSnapshot, lanes: Ints) -> str:
    """What a placement lacks to be feasible, in a sentence; empty when it lacks nothing."""
    if not snapshot.staying.size:
        return "Every lane is draining: at least one has to stay."
    if (stray := np.flatnonzero(snapshot.draining[lanes])).size:
        return f"Slot {stray[0]} is left on lane {lanes[stray[0]]}, which is draining."
    over = lane_loads(snapshot, lanes) - snapshot.capacity
    worst = int(over.argmax())
    if over[worst] > TOLERANCE * snapshot.capacity[worst]:
        return (
            f"Lane {worst} would carry {over[worst] + snapshot.capacity[worst]:.6g} with a capacity of "
            f"{snapshot.capacity[worst]:.6g}: {over[worst]:.6g} is missing."
        )
    return over_budget(snapshot, lanes)


def over_budget(snapshot: ClusterSnapshot, lanes: Ints) -> str:
    """Which limit the moves to a placement exceed, in a sentence; empty when they keep both."""
    limits = snapshot.limits
    cost, count = migration_cost(snapshot, lanes), len(migrated(snapshot, lanes))
    if limits.max_migration is not None and cost > limits.max_migration * (1 + TOLERANCE):
        return f"The moves cost {cost:.6g}, but limits.max_migration is {limits.max_migration:.6g}."
    if limits.max_moves is not None and count > limits.max_moves:
        return f"There are {count} moves, but limits.max_moves is {limits.max_moves}."
    return ""
