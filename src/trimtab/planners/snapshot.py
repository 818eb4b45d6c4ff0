"""What a planner sees: slots with their loads, lanes with their capacities, and the traffic between slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trimtab.errors import ProblemError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

UNPLACED = -1


@dataclass(frozen=True, eq=False)
class Traffic:
    """Entry i says that `weight[i]` flows from `source[i]` to `target[i]`; every pair at most once."""

    source: Ints
    target: Ints
    weight: Floats

    @classmethod
    def of(cls, entries: Sequence[tuple[int, int, float]] = ()) -> Traffic:
        """
        >>> Traffic.of([(0, 1, 2.5)]).weight.tolist()
        [2.5]
        """
        source, target, weight = zip(*entries, strict=True) if entries else ((), (), ())
        return cls(np.array(source, np.int64), np.array(target, np.int64), np.array(weight, np.float64))

    def __len__(self) -> int:
        return len(self.weight)

    def total(self) -> float:
        return float(self.weight.sum())


@dataclass(frozen=True)
class Limits:
    """What a plan may cost and how level it has to be; None is no limit."""

    max_migration: float | None = None
    """The sum of the state of the slots that move."""
    max_moves: int | None = None
    max_load_distance: float = 5.0
    """In percentage points of lane capacity: what planners that trade balance for traffic keep to."""


@dataclass(frozen=True, eq=False)
class ClusterSnapshot:
    """Slots, lanes and traffic at one moment. Arrays are never written to.

    `groups` is traffic between operators, spread evenly over every pair of their slots; `traffic` names single pairs of
    slots; both count. `window` holds the loads of past epochs, oldest first, if they are known one by one.

    >>> snapshot = ClusterSnapshot.of(load=[3, 1], lane=[0, 0], capacity=[10, 10])
    >>> snapshot.total, snapshot.mean
    (4.0, 20.0)
    """

    operators: tuple[str, ...]
    operator: Ints
    """The operator of every slot, as a number."""
    loads: Floats
    """By slot and resource."""
    state: Floats
    """What it costs to move each slot."""
    lane: Ints
    """Where each slot is, or `UNPLACED`."""
    capacity: Floats
    draining: Flags
    hosts: tuple[str, ...]
    traffic: Traffic = field(default_factory=Traffic.of)
    groups: Traffic = field(default_factory=Traffic.of)
    resources: tuple[str, ...] = ("load",)
    window: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of(
        cls,
        load: Any,
        capacity: Any,
        lane: Any = None,
        operator: Any = None,
        state: Any = None,
        draining: Any = None,
        traffic: Sequence[tuple[int, int, float]] = (),
        groups: Sequence[tuple[int, int, float]] = (),
        window: Any = None,
        **limits: Any,
    ) -> ClusterSnapshot:
        """A snapshot of one resource from plain lists. Slots are unplaced and free to move unless it is said."""
        loads = np.array(load, np.float64).reshape(-1, 1)
        slots, lanes = len(loads), len(capacity)
        operators = np.zeros(slots, np.int64) if operator is None else np.array(operator, np.int64)
        named = max([int(operators.max(initial=-1)), *(each for group in groups for each in group[:2])]) + 1
        snapshot = cls(
            operators=tuple(f"operator{number}" for number in range(named)),
            operator=operators,
            loads=loads,
            state=np.zeros(slots) if state is None else np.array(state, np.float64),
            lane=np.full(slots, UNPLACED) if lane is None else np.array(lane, np.int64),
            capacity=np.array(capacity, np.float64),
            draining=np.zeros(lanes, np.bool_) if draining is None else np.array(draining, np.bool_),
            hosts=("",) * lanes,
            traffic=Traffic.of(traffic),
            groups=Traffic.of(groups),
            window=np.zeros((0, slots)) if window is None else np.array(window, np.float64),
            limits=Limits(**limits),
        )
        check(snapshot)
        return snapshot

    def __len__(self) -> int:
        """The number of slots."""
        return len(self.operator)

    @property
    def lanes(self) -> int:
        """The number of lanes, draining ones among them."""
        return len(self.capacity)

    @cached_property
    def bottleneck(self) -> int:
        """The resource with the greatest total use."""
        return int(np.argmax(self.loads.sum(axis=0)))

    @cached_property
    def load(self) -> Floats:
        """The load of every slot, in units of the bottleneck resource."""
        return np.ascontiguousarray(self.loads[:, self.bottleneck])

    @cached_property
    def total(self) -> float:
        return float(self.load.sum())

    @cached_property
    def staying(self) -> Ints:
        """The lanes that slots may be on."""
        return np.flatnonzero(~self.draining)

    @cached_property
    def mean(self) -> float:
        """The load that every staying lane would have in a level cluster, in percent of its capacity."""
        return 100 * self.total / float(self.capacity[self.staying].sum()) if self.staying.size else np.inf

    @cached_property
    def sizes(self) -> Ints:
        """The number of slots of every operator."""
        return np.bincount(self.operator, minlength=len(self.operators))

    @cached_property
    def placed(self) -> Flags:
        return np.asarray(self.lane != UNPLACED)

    @cached_property
    def spread(self) -> Floats:
        """Traffic of `groups` by operators, per pair of their slots, both directions together: symmetric."""
        matrix = np.zeros((len(self.operators),) * 2)
        pairs = self.sizes[self.groups.source] * self.sizes[self.groups.target]
        np.add.at(matrix, (self.groups.source, self.groups.target), self.groups.weight / np.maximum(pairs, 1))
        return matrix + matrix.T

    @cached_property
    def total_traffic(self) -> float:
        """All traffic that some placement could keep inside a lane or not."""
        there = (self.sizes[self.groups.source] > 0) & (self.sizes[self.groups.target] > 0)
        return self.traffic.total() + float(self.groups.weight[there].sum())

    @cached_property
    def operator_traffic(self) -> Floats:
        """Traffic from operator to operator, however it was given."""
        matrix = np.zeros((len(self.operators),) * 2)
        np.add.at(matrix, (self.groups.source, self.groups.target), self.groups.weight)
        ends = self.operator[self.traffic.source], self.operator[self.traffic.target]
        np.add.at(matrix, ends, self.traffic.weight)
        return matrix

    @cached_property
    def pairs(self) -> Traffic:
        """All traffic by pairs of slots, `groups` spread out: as many entries as there are such pairs."""
        source, target, weight = [self.traffic.source], [self.traffic.target], [self.traffic.weight]
        members = [np.flatnonzero(self.operator == each) for each in range(len(self.operators))]
        for start, end, total in zip(self.groups.source, self.groups.target, self.groups.weight, strict=True):
            one, other = members[start], members[end]
            source.append(np.repeat(one, len(other)))
            target.append(np.tile(other, len(one)))
            weight.append(np.full(len(one) * len(other), total / max(len(one) * len(other), 1)))
        return _added(np.concatenate(source), np.concatenate(target), np.concatenate(weight), len(self))

    def at(self, lane: Ints) -> ClusterSnapshot:
        """The same with slots placed elsewhere."""
        return replace(self, lane=lane)

    def within(self, limits: Limits) -> ClusterSnapshot:
        """The same under other limits."""
        return replace(self, limits=limits)


def _added(source: Ints, target: Ints, weight: Floats, slots: int) -> Traffic:
    """Every pair once, its weights added up."""
    codes, places = np.unique(source * max(slots, 1) + target, return_inverse=True)
    sums = np.bincount(places, weight, len(codes)).astype(np.float64)
    return Traffic(codes // max(slots, 1), codes % max(slots, 1), sums)


def check(snapshot: ClusterSnapshot) -> None:
    """Raise a ProblemError that names the first field which makes no sense."""
    slots, lanes = len(snapshot), snapshot.lanes
    if not lanes:
        raise ProblemError("lanes: there has to be at least one.")
    _inside("slots", "op", snapshot.operator, 0, len(snapshot.operators), "operators")
    _inside("slots", "lane", snapshot.lane, UNPLACED, lanes, "lanes")
    for name, column in zip(snapshot.resources, snapshot.loads.T, strict=True):
        _amounts("slots", name, column)
    _amounts("slots", "state", snapshot.state)
    _amounts("lanes", "capacity", snapshot.capacity)
    if (zero := np.flatnonzero(snapshot.capacity == 0)).size:
        raise ProblemError(f"lanes[{zero[0]}].capacity is 0: mark a lane that takes nothing as draining.")
    _check_traffic("groups", snapshot.groups, len(snapshot.operators), "operators")
    _check_traffic("traffic", snapshot.traffic, slots, "slots")
    _check_limits(snapshot.limits)
    if snapshot.window.size and snapshot.window.shape[1] != slots:
        raise ProblemError(f"window: it has loads of {snapshot.window.shape[1]} slots; there are {slots}.")
    if not np.isfinite(snapshot.window).all() or (snapshot.window < 0).any():
        raise ProblemError("window: its loads have to be finite and not below 0.")


def _check_traffic(name: str, traffic: Traffic, count: int, what: str) -> None:
    ends = {"from": traffic.source, "to": traffic.target}
    for end, numbers in ends.items():
        _inside(name, end, numbers, 0, count, what)
    _amounts(name, "traffic", traffic.weight)
    if (own := np.flatnonzero(traffic.source == traffic.target)).size:
        raise ProblemError(f"{name}[{own[0]}]: from and to are the same; what stays in one place is no traffic.")
    codes = traffic.source * max(count, 1) + traffic.target
    _, first = np.unique(codes, return_index=True)
    if len(first) < len(codes):
        twice = int(np.setdiff1d(np.arange(len(codes)), first)[0])
        raise ProblemError(f"{name}[{twice}]: this pair is there twice; add the two up.")


def _check_limits(limits: Limits) -> None:
    for name in ("max_migration", "max_moves", "max_load_distance"):
        value = getattr(limits, name)
        if value is not None and not 0 <= value < np.inf:
            raise ProblemError(f"limits.{name} is {value}: it has to be a finite number, 0 or more.")


def _inside(name: str, column: str, numbers: Ints, low: int, high: int, what: str) -> None:
    bad = np.flatnonzero((numbers < low) | (numbers >= high))
    if bad.size:
        raise ProblemError(f"{name}[{bad[0]}].{column} is {numbers[bad[0]]}: there are {high} {what}, counted from 0.")


def _amounts(name: str, column: str, values: Floats) -> None:
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        raise ProblemError(f"{name}[{bad[0]}].{column} is {values[bad[0]]}: it has to be a finite number, 0 or more.")


def combine(snapshots: Sequence[ClusterSnapshot]) -> ClusterSnapshot:
    """Several flows on the same lanes as one problem, their slots behind one another: StroMAX's global graph."""
    first = snapshots[0]
    for each in snapshots[1:]:
        lanes_alike = np.array_equal(each.capacity, first.capacity) and np.array_equal(each.draining, first.draining)
        if not lanes_alike or each.hosts != first.hosts or each.resources != first.resources:
            raise ProblemError("lanes: flows that are planned together have to share their lanes.")
        if each.limits != first.limits:
            raise ProblemError("limits: flows that are planned together have to share them.")
    slots = np.cumsum([0, *map(len, snapshots)])
    operators = np.cumsum([0, *(len(each.operators) for each in snapshots)])
    epochs = min(len(each.window) for each in snapshots)
    return replace(
        first,
        operators=tuple(name for each in snapshots for name in each.operators),
        operator=np.concatenate([each.operator + start for each, start in zip(snapshots, operators, strict=False)]),
        loads=np.concatenate([each.loads for each in snapshots]),
        state=np.concatenate([each.state for each in snapshots]),
        lane=np.concatenate([each.lane for each in snapshots]),
        traffic=_shifted([each.traffic for each in snapshots], slots),
        groups=_shifted([each.groups for each in snapshots], operators),
        window=np.concatenate([each.window[len(each.window) - epochs :] for each in snapshots], axis=1),
    )


def _shifted(parts: Sequence[Traffic], starts: Ints) -> Traffic:
    shifts = list(zip(parts, starts, strict=False))
    return Traffic(
        np.concatenate([part.source + start for part, start in shifts]),
        np.concatenate([part.target + start for part, start in shifts]),
        np.concatenate([part.weight for part in parts]),
    )
