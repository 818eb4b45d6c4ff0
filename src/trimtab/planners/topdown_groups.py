"""Groups of like slots and the traffic between them: what topdown works on (Top-down 2.1 and 5).

An operator is a group. One whose slots differ in load is divided into subgroups of like slots in one linear scan, by
the ratio of each slot's load to the operator's heaviest (section 5). All slots of a group have the same share in its
traffic (eq. 1), whatever `traffic` says of single pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Floats, Ints, Traffic


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups numbered through: the group of every slot, the operator and load of every group."""

    group: Ints
    operator: Ints
    load: Floats
    size: Ints

    def __len__(self) -> int:
        return len(self.operator)


def like_slots(snapshot: ClusterSnapshot, margin: float | None) -> Groups:
    """Operators as groups, divided where a slot's load is below the heaviest one's by more than the margin.

    >>> snapshot = ClusterSnapshot.of(load=[8, 1, 7.5, 3, 3], operator=[0, 0, 0, 1, 1], capacity=[99])
    >>> like_slots(snapshot, 0.25).group.tolist(), like_slots(snapshot, None).group.tolist()
    ([0, 1, 0, 2, 2], [0, 0, 0, 1, 1])
    """
    operators = len(snapshot.operators)
    if margin is None or not len(snapshot):
        loads = np.bincount(snapshot.operator, snapshot.load, operators).astype(np.float64)
        return Groups(snapshot.operator, np.arange(operators), loads, snapshot.sizes)
    steps = _steps(snapshot, margin)
    width = int(steps.max()) + 1
    codes = snapshot.operator * width + steps
    used = np.bincount(codes, minlength=operators * width)
    places = np.flatnonzero(used)
    group = (np.cumsum(used > 0) - 1)[codes]
    loads = np.bincount(group, snapshot.load, len(places)).astype(np.float64)
    return Groups(group, places // width, loads, used[places])


def group_traffic(snapshot: ClusterSnapshot, groups: Groups) -> Traffic:
    """Traffic between groups, every pair once with both directions added up, the lower number as source."""
    source, target, weight = _spread(snapshot, groups)
    single = snapshot.traffic
    source = np.concatenate([groups.group[single.source], source])
    target = np.concatenate([groups.group[single.target], target])
    weight = np.concatenate([single.weight, weight])
    useful = (source != target) & (weight > 0)
    codes = (np.minimum(source, target) * len(groups) + np.maximum(source, target))[useful]
    pairs, places = np.unique(codes, return_inverse=True)
    sums = np.bincount(places, weight[useful], len(pairs)).astype(np.float64)
    return Traffic(pairs // max(len(groups), 1), pairs % max(len(groups), 1), sums)


def refine_granularity(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """The same flow in tasks that fill lanes exactly, for planning how finely to divide it (section 5).

    The size of a task is the greatest common divisor of the operators' loads and the lanes' capacities, in whole
    hundredths of the smallest lane that stays; a load in between is rounded up to the next and then divided into that
    many equal tasks. Nothing is placed yet, and traffic of single slots counts for their operators; inside of one
    operator it is dropped. Slots of a running flow are fixed: this is for planning only.

    >>> coarse = ClusterSnapshot.of(load=[60, 60, 60], operator=[0, 0, 1], capacity=[100, 100])
    >>> fine = refine_granularity(coarse)
    >>> fine.sizes.tolist(), fine.load[0]
    ([6, 3], np.float64(20.0))
    """
    unit = float(snapshot.capacity[snapshot.staying].min(initial=np.inf)) / 100
    loads = np.bincount(snapshot.operator, snapshot.load, len(snapshot.operators))
    costs = np.ceil(loads / unit - 1e-9).astype(np.int64)
    rooms = np.floor(snapshot.capacity[snapshot.staying] / unit + 1e-9).astype(np.int64)
    divisor = math.gcd(*costs.tolist(), *rooms.tolist()) or 1
    sizes = np.where(snapshot.sizes > 0, np.maximum(costs // divisor, 1), 0)
    return _divided(snapshot, sizes)


def _divided(snapshot: ClusterSnapshot, sizes: Ints) -> ClusterSnapshot:
    """The operators with so many equal slots each."""
    operator = np.repeat(np.arange(len(sizes)), sizes)
    by_operator = [np.bincount(snapshot.operator, column, len(sizes)) for column in (*snapshot.loads.T, snapshot.state)]
    shares = np.array([(total / np.maximum(sizes, 1))[operator] for total in by_operator])
    between = snapshot.operator_traffic * ~np.eye(len(sizes), dtype=np.bool_)
    source, target = np.nonzero(between)
    return replace(
        snapshot,
        operator=operator,
        loads=shares[:-1].T,
        state=shares[-1],
        lane=np.full(len(operator), UNPLACED),
        traffic=Traffic.of(),
        groups=Traffic(source, target, between[source, target]),
        window=np.zeros((0, len(operator))),
    )


def _steps(snapshot: ClusterSnapshot, margin: float) -> Ints:
    """By how many margins each slot is lighter than the heaviest of its operator; slots without load come last."""
    heaviest = np.zeros(len(snapshot.operators))
    np.maximum.at(heaviest, snapshot.operator, snapshot.load)
    some = snapshot.load > 0
    steps = np.zeros(len(snapshot), np.int64)
    lighter = np.log(heaviest[snapshot.operator[some]]) - np.log(snapshot.load[some])
    steps[some] = np.floor(lighter / np.log1p(margin) + 1e-9)
    steps[~some] = steps.max(initial=0) + 1
    return steps


def _spread(snapshot: ClusterSnapshot, groups: Groups) -> tuple[Ints, Ints, Floats]:
    """Traffic between operators by their groups, in proportion to the slots that each group has."""
    share = groups.size / np.maximum(snapshot.sizes[groups.operator], 1)
    first = np.searchsorted(groups.operator, np.arange(len(snapshot.operators) + 1))
    between = snapshot.groups
    sources, targets = np.diff(first)[between.source], np.diff(first)[between.target]
    entry = np.repeat(np.arange(len(between)), sources * targets)
    place = np.arange(len(entry)) - np.repeat(np.cumsum(sources * targets) - sources * targets, sources * targets)
    source = first[between.source[entry]] + place // targets[entry]
    target = first[between.target[entry]] + place % targets[entry]
    return source, target, between.weight[entry] * share[source] * share[target]
