"""A placement in the making: what searches change move by move, with loads, traffic and budget kept up to date."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trimtab.planners.metrics import TOLERANCE, lane_loads, slots_by_operator
from trimtab.planners.snapshot import ClusterSnapshot, Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class Links:
    """Traffic of single pairs by slot, both directions together: slot i has entries `starts[i]` to `starts[i + 1]`."""

    starts: Ints
    slots: Ints
    weights: Floats

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> Links:
        traffic = snapshot.traffic
        ends = np.concatenate([traffic.source, traffic.target])
        order = np.argsort(ends, kind="stable")
        starts = np.searchsorted(ends[order], np.arange(len(snapshot) + 1))
        others = np.concatenate([traffic.target, traffic.source])[order]
        return cls(starts.astype(np.int64), others, np.tile(traffic.weight, 2)[order])

    def of_slot(self, slot: int) -> tuple[Ints, Floats]:
        part = slice(self.starts[slot], self.starts[slot + 1])
        return self.slots[part], self.weights[part]


class Arrangement:
    """Slots on lanes. Changes to it are counted against the migration budget of the snapshot."""

    def __init__(self, snapshot: ClusterSnapshot, lanes: Ints, links: Links | None = None) -> None:
        self.snapshot = snapshot
        self.links = links or Links.of(snapshot)
        self.lanes = lanes.copy()
        self.loads = lane_loads(snapshot, lanes)
        self.counts = slots_by_operator(snapshot, lanes)
        away = self._away(np.arange(len(snapshot)), self.lanes)
        self.cost = float(snapshot.state[away].sum())
        self.moves = int(away.sum())

    @property
    def deviation(self) -> Floats:
        """By lane, how far its load is above the mean, as a share of its capacity."""
        return self.loads / self.snapshot.capacity - self.snapshot.mean / 100

    def on(self, lane: int) -> Ints:
        """The slots of a lane, ascending."""
        return np.flatnonzero(self.lanes == lane)

    def pull(self, slot: int) -> Floats:
        """The traffic between a slot and every lane."""
        groups: Floats = self.snapshot.spread[self.snapshot.operator[slot]] @ self.counts
        others, weights = self.links.of_slot(slot)
        there = self.lanes[others] >= 0
        return groups + np.bincount(self.lanes[others][there], weights[there], len(self.loads))

    def pull_to(self, lanes: Ints) -> Floats:
        """The traffic between every slot and one lane each."""
        links = self.links
        groups = (self.snapshot.spread @ self.counts)[self.snapshot.operator, lanes]
        slot = np.repeat(np.arange(len(self.lanes)), np.diff(links.starts))
        there = self.lanes[links.slots] == lanes[slot]
        return np.asarray(groups + np.bincount(slot[there], links.weights[there], len(self.lanes)))

    def charge(self, slots: Ints, lane: int) -> tuple[Ints, Floats]:
        """By how much moves and their cost would grow if each of some slots alone went to a lane."""
        then, now = self._away(slots, np.full(len(slots), lane)), self._away(slots, self.lanes[slots])
        change = then.astype(np.int64) - now
        return change, change * self.snapshot.state[slots]

    def affordable(self, moves: Ints, cost: Floats) -> Flags:
        """Whether the budget has room for so many moves more at such a cost; what gives back always has."""
        limits = self.snapshot.limits
        fits = np.ones(np.shape(moves), np.bool_)
        if limits.max_moves is not None:
            fits &= (self.moves + moves <= limits.max_moves) | (moves <= 0)
        if limits.max_migration is not None:
            fits &= (self.cost + cost <= limits.max_migration * (1 + TOLERANCE)) | (cost <= 0)
        return fits

    @property
    def within_budget(self) -> bool:
        """Whether the moves so far keep the limits."""
        limits = self.snapshot.limits
        few = limits.max_moves is None or self.moves <= limits.max_moves
        return few and (limits.max_migration is None or self.cost <= limits.max_migration * (1 + TOLERANCE))

    def move(self, slot: int, lane: int) -> None:
        """Put a slot on a lane."""
        snapshot, old = self.snapshot, int(self.lanes[slot])
        home, operator = int(snapshot.lane[slot]), snapshot.operator[slot]
        if old >= 0:
            self.loads[old] -= snapshot.load[slot]
            self.counts[operator, old] -= 1
        self.loads[lane] += snapshot.load[slot]
        self.counts[operator, lane] += 1
        self.lanes[slot] = lane
        change = 0 if home < 0 else int(lane != home) - int(old != home)
        self.moves += change
        # What is added and taken away again need not come to nothing in floats; without moves there is no cost.
        self.cost = self.cost + change * float(snapshot.state[slot]) if self.moves else 0.0

    def _away(self, slots: Ints, lanes: Ints) -> Flags:
        """Whether slots would be away from the lane that they have now; ones without a lane never are."""
        home = self.snapshot.lane[slots]
        return np.asarray((home >= 0) & (lanes != home) & (lanes >= 0))
