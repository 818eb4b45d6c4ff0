"""The exact optimum of small instances, for comparison (Top-down 7.3; load distance of ALBIC III-B1).

The paper enumerates all allocations. Here slots that nothing tells apart, neither load nor traffic, are counted and
not named, and a dynamic programme goes from lane to lane: for every number of slots of each kind, the best that the
lanes so far can make of them. That is exact, also for lanes of different capacities, and takes some ten thousand steps
where enumeration takes 8^17.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.metrics import TOLERANCE, imc_gain, load_distance
from trimtab.planners.plan import Answer, Infeasible, Plan, no_lane, too_small
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints

MANY = 1 << 18
"""Contents of a lane, and of all lanes so far, that are looked at."""
OVERHEAD = 1000
"""Numbers that are added up in the time it takes to begin."""


@dataclass(frozen=True)
class Optimal:
    """The most traffic inside lanes under their capacities or, for objective "balance", the least load distance.

    Balance knows no capacities: the least load distance is an answer in an overloaded cluster too. An instance that
    would take more than `limit` steps is refused; the default is some seconds.

    >>> flow = ClusterSnapshot.of(load=[5, 5, 4, 4], operator=[0, 1, 0, 1], capacity=[10, 10], groups=[(0, 1, 8.0)])
    >>> Optimal().plan(flow).detail
    {'imc_gain': 4.0}
    """

    objective: Literal["traffic", "balance"] = "traffic"
    limit: int = 1_000_000_000

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ProblemError(f"options.limit is {self.limit}: it has to be 1 or more.")

    @property
    def keeps_capacity(self) -> bool:
        """Balance knows none."""
        return self.objective == "traffic"

    def plan(self, snapshot: ClusterSnapshot) -> Answer:
        """The best placement; none for an instance that is too large."""
        if refusal := no_lane(snapshot):
            return refusal
        if not len(snapshot):
            return Plan(snapshot.lane.copy(), "there is nothing to place")
        contents = self._contents(snapshot)
        if isinstance(contents, Infeasible):
            return contents
        chosen = _from_lane_to_lane(contents)
        if chosen is None:
            return _refuse(snapshot)
        lanes = _named(snapshot, contents.kinds, chosen)
        if self.objective == "balance":
            return Plan(lanes, "no placement is more level", detail={"load_distance": load_distance(snapshot, lanes)})
        return Plan(lanes, "no placement keeps more traffic in lanes", detail={"imc_gain": imc_gain(snapshot, lanes)})

    def _contents(self, snapshot: ClusterSnapshot) -> Contents | Infeasible:
        kinds = _kinds(snapshot, self.objective)
        states = math.prod(len(kind) + 1 for kind in kinds)
        if states > MANY:
            return Infeasible(
                f"The slots can be divided in 2^{states.bit_length() - 1} ways or more between a lane and the rest; an "
                f"exact answer takes {MANY} at most. Ask another planner, or for fewer slots."
            )
        contents = (_Traffic if self.objective == "traffic" else _Balance)(snapshot, kinds)
        if contents.steps > self.limit:
            return Infeasible(f"This instance takes {contents.steps} steps, and options.limit is {self.limit}.")
        return contents


class Contents:
    """What a lane may hold, as numbers of slots of each kind, and what that is worth."""

    combine: np.ufunc
    """How the worth of lanes adds up; more is better."""
    neutral: float

    def __init__(self, snapshot: ClusterSnapshot, kinds: list[Ints]) -> None:
        self.snapshot, self.kinds = snapshot, kinds
        self.shape = tuple(len(kind) + 1 for kind in kinds)
        self.counts: Ints = np.indices(self.shape).reshape(len(kinds), -1).T
        self.load: Floats = self.counts @ snapshot.load[[kind[0] for kind in kinds]]
        capacities = snapshot.capacity[snapshot.staying].tolist()
        known = {capacity: self.worth(capacity) for capacity in set(capacities)}
        self.lanes = [known[capacity] for capacity in capacities]

    def worth(self, capacity: float) -> Floats:
        """By contents, minus infinity where a lane of this capacity may not hold them."""
        raise NotImplementedError

    @cached_property
    def steps(self) -> int:
        """The work that the instance takes."""
        each = (np.array(self.shape) - self.counts).prod(axis=1) + OVERHEAD
        return sum(int(each[np.isfinite(worth)].sum()) for worth in self.lanes)


class _Traffic(Contents):
    combine = np.add
    neutral = 0.0

    def worth(self, capacity: float) -> Floats:
        fits = self.load <= capacity * (1 + TOLERANCE / 2)
        return np.where(fits, self._gain, -np.inf)

    @cached_property
    def _gain(self) -> Floats:
        between = _between(self.snapshot, [int(kind[0]) for kind in self.kinds])
        return np.asarray(np.einsum("xi,ij,xj->x", self.counts, between, self.counts, optimize=True) / 2)


class _Balance(Contents):
    combine = np.minimum
    neutral = np.inf

    def worth(self, capacity: float) -> Floats:
        distance = np.abs(100 * self.load / capacity - self.snapshot.mean)
        # Sums of the same loads in another order differ by a share of the sums, which may be all of a small distance.
        rounding = TOLERANCE * (self._reached + self.snapshot.mean)
        return np.where(distance <= self._reached + rounding, -distance, -np.inf)

    @cached_property
    def _reached(self) -> float:
        """The load distance when the heaviest slot left always goes to the emptiest lane: no lane may be worse."""
        lanes, used = self.snapshot.lane.copy(), np.zeros(self.snapshot.lanes)
        used[self.snapshot.draining] = np.inf
        for slot in np.argsort(-self.snapshot.load, kind="stable").tolist():
            lanes[slot] = np.argmin((used + self.snapshot.load[slot]) / self.snapshot.capacity)
            used[lanes[slot]] += self.snapshot.load[slot]
        return load_distance(self.snapshot, lanes)


def _from_lane_to_lane(contents: Contents) -> Ints | None:
    """The best contents of every staying lane, or None if they cannot hold everything."""
    best = np.full(contents.shape, -np.inf)
    best.flat[0] = contents.neutral
    history: list[Ints] = []
    for worth in contents.lanes:
        best, choice = _with_lane(contents, best, worth)
        history.append(choice)
    if np.isneginf(best.flat[-1]):
        return None
    left, chosen = contents.counts[-1], []
    for choice in reversed(history):
        chosen.append(contents.counts[choice[tuple(left)]])
        left = left - chosen[-1]
    return np.array(chosen[::-1])


def _with_lane(contents: Contents, before: Floats, worth: Floats) -> tuple[Floats, Ints]:
    """The best with one lane more by what all of them hold, and what that lane holds then."""
    best, choice = np.full(contents.shape, -np.inf), np.zeros(contents.shape, np.int64)
    for number in np.flatnonzero(np.isfinite(worth)).tolist():
        held = contents.counts[number].tolist()
        to = tuple(slice(count, None) for count in held)
        rest = tuple(slice(size - count) for size, count in zip(contents.shape, held, strict=True))
        found = contents.combine(before[rest], worth[number])
        better = found > best[to]
        np.copyto(best[to], found, where=better)
        np.copyto(choice[to], number, where=better)
    return best, choice


def _kinds(snapshot: ClusterSnapshot, objective: str) -> list[Ints]:
    """Slots that are alike for the objective, together."""
    if objective == "balance":
        return _equal(snapshot.load.reshape(-1, 1))
    own = np.full(len(snapshot), -1)
    named = np.concatenate([snapshot.traffic.source, snapshot.traffic.target])
    own[named] = named
    return _equal(np.column_stack([snapshot.operator, snapshot.load, own]))


def _equal(rows: Floats) -> list[Ints]:
    _, kind = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(kind, kind="stable")
    return [np.asarray(part) for part in np.split(order, np.cumsum(np.bincount(kind))[:-1])]


def _between(snapshot: ClusterSnapshot, slots: list[int]) -> Floats:
    """Traffic between pairs of some slots, all that `traffic` names among them, both directions added up."""
    operators = snapshot.operator[slots]
    place = np.zeros(len(snapshot), np.int64)
    place[slots] = np.arange(len(slots))
    matrix = np.zeros((len(slots),) * 2)
    np.add.at(matrix, (place[snapshot.traffic.source], place[snapshot.traffic.target]), snapshot.traffic.weight)
    return np.asarray(matrix + matrix.T + snapshot.spread[np.ix_(operators, operators)])


def _named(snapshot: ClusterSnapshot, kinds: list[Ints], chosen: Ints) -> Ints:
    """A lane for every slot, from how many of each kind the staying lanes hold."""
    lanes = np.empty(len(snapshot), np.int64)
    for kind, counts in zip(kinds, chosen.T, strict=True):
        lanes[kind] = np.repeat(snapshot.staying, counts)
    return lanes


def _refuse(snapshot: ClusterSnapshot) -> Infeasible:
    heaviest, room = int(snapshot.load.argmax()), snapshot.capacity[snapshot.staying]
    if snapshot.load[heaviest] > room.max():
        return too_small(snapshot, snapshot.capacity, heaviest)
    return Infeasible(
        f"No placement keeps every lane within its capacity: all slots together have load {snapshot.total:.6g}, "
        f"the lanes that stay have capacity {room.sum():.6g}."
    )
