"""What the MILP of ALBIC III-B1 is about, apart from any solver: units to move, lanes to level, a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trimtab.planners.metrics import TOLERANCE
from trimtab.planners.plan import Infeasible
from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Flags, Floats, Ints

EXCHANGES = 5_000
"""Of a plan; seconds."""

Rank = tuple[float, float, float, float, int]
"""Load distance, load left on draining lanes, upper plus lower deviation, migration cost, moves: less is better."""

IDLE = 0.01
"""Points that a unit on a draining lane counts as left beside its load, so that one without load leaves as well."""


@dataclass
class Allowance:
    """What is left to be spent on a plan, however often it takes to solve for it."""

    seconds: float
    """Of the solver."""
    exchanges: int = EXCHANGES
    """Of units between lanes, in all searches without the solver."""


@dataclass(frozen=True)
class SlotSet:
    """Slots that move as one; pinned to a lane, if one is given."""

    slots: tuple[int, ...]
    lane: int | None = None


@dataclass(frozen=True, eq=False)
class Levelling:
    """Units, each a slot or a set of them, and the lanes among which they are to be level.

    A unit costs nothing on its home, and `cost` and `moves` on any other lane; a unit without a home costs nothing
    anywhere. What it costs to bring sets together on their homes is no longer in the budget; a set that moves on from
    there to a lane where some of its slots were pays for those as well.
    """

    unit: Ints
    """The unit of every slot."""
    load: Floats
    home: Ints
    cost: Floats
    moves: Ints
    pinned: Flags
    capacity: Floats
    draining: Flags
    mean: float
    """In percent of capacity, as all that is called points."""
    max_cost: float
    max_moves: float

    @property
    def lanes(self) -> int:
        return len(self.capacity)

    def points(self, lane: Ints) -> Floats:
        """The load of every lane if units are on these lanes; units without one count nowhere."""
        there = lane >= 0
        return 100 * np.bincount(lane[there], self.load[there], self.lanes) / self.capacity

    def spent(self, lane: Ints) -> tuple[float, int]:
        """Cost and number of the moves."""
        away = (self.home >= 0) & (lane != self.home)
        return float(self.cost[away].sum()), int(self.moves[away].sum())

    def affords(self, lane: Ints) -> bool:
        cost, moves = self.spent(lane)
        return cost <= self.max_cost and moves <= self.max_moves

    def ends(self, lane: Ints) -> tuple[float, float]:
        """How far the fullest staying lane is above the mean and the emptiest below it; the greater is the distance."""
        deviation = self.points(lane)[~self.draining] - self.mean
        return float(deviation.max()), float(-deviation.min())

    def left(self, lane: Ints) -> float:
        """What is left on draining lanes, in points."""
        there = int(np.count_nonzero(self.draining[lane]))
        return float(self.points(lane)[self.draining].sum()) + IDLE * there

    def rank(self, lane: Ints) -> Rank:
        ends = self.ends(lane)
        return max(ends), self.left(lane), sum(ends), *self.spent(lane)


def better(one: Rank, other: Rank) -> bool:
    """Whether the first differing figure is less; figures that only a solver's tolerance tells apart do not differ."""
    for mine, theirs in zip(one, other, strict=True):
        if abs(mine - theirs) > 1e-5 * max(1.0, abs(theirs)):
            return mine < theirs
    return False


def levelling(
    snapshot: ClusterSnapshot, sets: Sequence[SlotSet] = (), paper_mean: bool = False
) -> Levelling | Infeasible:
    """The problem of a snapshot whose sets move as one. Refused if the sets cannot even be brought together.

    >>> two = ClusterSnapshot.of(load=[1, 2, 3], state=[5, 5, 5], lane=[0, 1, 1], capacity=[9, 9], max_migration=7)
    >>> problem = levelling(two, [SlotSet((0, 1))])
    >>> problem.unit.tolist(), problem.load.tolist(), problem.home.tolist(), round(problem.max_cost, 6)
    ([1, 1, 0], [3.0, 3.0], [1, 0], 2.0)
    """
    unit = _units(len(snapshot), sets)
    count = int(unit.max(initial=-1)) + 1
    home, pinned = _homes(snapshot, unit, count, sets)
    costs, moves = snapshot.state * snapshot.placed, snapshot.placed.astype(np.int64)
    stays = snapshot.lane == home[unit]
    max_cost, max_moves = _left(snapshot, costs[~stays].sum(), int(moves[~stays].sum()))
    if max_cost < 0 or max_moves < 0:
        return Infeasible("The limits of migration are too low to bring slots together that have to be on one lane.")
    return Levelling(
        unit=unit,
        load=np.bincount(unit, snapshot.load, count).astype(np.float64),
        home=home,
        cost=np.bincount(unit, costs * stays, count).astype(np.float64),
        moves=np.bincount(unit, moves * stays, count).astype(np.int64),
        pinned=pinned,
        capacity=snapshot.capacity,
        draining=snapshot.draining,
        mean=float(np.ceil(snapshot.mean)) if paper_mean else snapshot.mean,
        max_cost=max_cost,
        max_moves=max_moves,
    )


def _units(slots: int, sets: Sequence[SlotSet]) -> Ints:
    """Slots that stand alone first, then the sets."""
    unit = np.full(slots, -1, np.int64)
    alone = slots - sum(len(each.slots) for each in sets)
    for number, each in enumerate(sets):
        unit[list(each.slots)] = alone + number
    unit[unit < 0] = np.arange(alone)
    return unit


def _homes(snapshot: ClusterSnapshot, unit: Ints, count: int, sets: Sequence[SlotSet]) -> tuple[Ints, Flags]:
    """The lane of every unit; of a set the one it is pinned to, or else the one that keeps the most state in place."""
    home = np.full(count, UNPLACED)
    home[unit] = snapshot.lane
    pinned = np.zeros(count, np.bool_)
    for number, each in enumerate(sets, count - len(sets)):
        home[number] = _gathering(snapshot, np.array(each.slots)) if each.lane is None else each.lane
        pinned[number] = each.lane is not None
    return home, pinned


def _gathering(snapshot: ClusterSnapshot, slots: Ints) -> int:
    there = slots[snapshot.placed[slots]]
    if not there.size:
        return UNPLACED
    lanes = np.unique(snapshot.lane[there])
    kept = [(snapshot.state[there[snapshot.lane[there] == lane]].sum(), -lane) for lane in lanes]
    return -int(max(kept)[1])


def _left(snapshot: ClusterSnapshot, cost: float, moves: int) -> tuple[float, float]:
    """The budget that is left after so much; rounding is forgiven."""
    limits = snapshot.limits
    max_cost = np.inf if limits.max_migration is None else limits.max_migration * (1 + TOLERANCE) - cost
    max_moves = np.inf if limits.max_moves is None else limits.max_moves - moves
    return float(max_cost), float(max_moves)
