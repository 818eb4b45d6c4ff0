"""What a planner answers: a plan, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import msgspec
import numpy as np

from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Floats, Ints


class SlotMove(msgspec.Struct, frozen=True):
    """A slot that a plan puts elsewhere, and why. `source` is None for a slot that had no lane yet."""

    slot: int
    source: int | None = msgspec.field(name="from")
    target: int = msgspec.field(name="to")
    why: str


@dataclass(frozen=True, eq=False)
class Plan:
    """A lane for every slot."""

    lanes: Ints
    why: str
    """The reason of every move that has none in `reasons`: a clause to be read behind the move, without a "because"."""
    reasons: Mapping[int, str] = field(default_factory=dict)
    """By slot."""
    detail: Mapping[str, float] = field(default_factory=dict)
    """What else the planner knows of its plan, such as a bound."""

    def moved(self, snapshot: ClusterSnapshot) -> Ints:
        """The slots that change their lane, ones without a lane among them."""
        return np.flatnonzero(self.lanes != snapshot.lane)

    def moves(self, snapshot: ClusterSnapshot) -> Iterator[SlotMove]:
        """Every move with its reason."""
        for slot in self.moved(snapshot).tolist():
            source = int(snapshot.lane[slot])
            why = self.reasons.get(slot, self.why)
            yield SlotMove(slot, None if source == UNPLACED else source, int(self.lanes[slot]), why)


@dataclass(frozen=True)
class Infeasible:
    """There is no such plan; `missing` is a sentence that says what it would take."""

    missing: str


Answer = Plan | Infeasible


@runtime_checkable
class Planner(Protocol):
    """A policy: a pure function of the snapshot. No clock, no input or output; chance comes from a seed it is given.

    It may say two things of itself in attributes: `objective`, what its plans are for (`objective.Aim`, by default
    balance), and `keeps_capacity`, whether it never fills a lane above its capacity (by default not).
    """

    def plan(self, snapshot: ClusterSnapshot) -> Answer:
        """A lane for every slot, or what is missing."""


def stay(snapshot: ClusterSnapshot, why: str = "nothing moves") -> Plan:
    """The plan that changes nothing; for snapshots in which every slot has a lane."""
    return Plan(snapshot.lane.copy(), why)


def no_lane(snapshot: ClusterSnapshot) -> Infeasible | None:
    """The answer for a cluster in which every lane is draining."""
    return None if snapshot.staying.size else Infeasible("Every lane is draining: at least one has to stay.")


def too_small(snapshot: ClusterSnapshot, free: Floats, slot: int) -> Infeasible:
    """The answer of planners that keep capacities, when a slot fits nowhere. `free` is what is left on every lane."""
    best = float(free[snapshot.staying].max(initial=0.0))
    total, room = snapshot.total, float(snapshot.capacity[snapshot.staying].sum())
    return Infeasible(
        f"Slot {slot} with load {snapshot.load[slot]:.6g} fits on no lane: the most that one has left is {best:.6g}. "
        f"All slots together have load {total:.6g}, the lanes that stay have capacity {room:.6g}."
    )
