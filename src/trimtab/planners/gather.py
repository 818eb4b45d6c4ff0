"""Gathering by local search: slots move to where their traffic is, as far as lanes have room and the budget lasts.

Rounds go through what would bring the most: single slots, and sets of slots that share a lane and are joined by the
heaviest pairs of one of them, since none of a set may gain by going alone. What does not fit where it wants to go is
exchanged: slots that have the least to do with that lane come back for it. So traffic is gathered between lanes that
are full, or level, as well. Whatever turns out to be no gain, or beyond bounds or budget, is taken back.

Few slots are searched with a tabu list as well (gather_tabu.py), with an even seed after the rounds and with an odd one
before them: either leads to summits that the other misses.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sparse

from trimtab.planners.arrangement import Arrangement
from trimtab.planners.bounds import Bounds, Scales
from trimtab.planners.gather_sets import by_label, heaviest_pairs, sets_inside_lanes
from trimtab.planners.gather_tabu import PATIENCE, Tabu
from trimtab.planners.metrics import TOLERANCE
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints
from trimtab.ports import chance

FEW = 400
ROUNDS = 10
ATTEMPTS = 50_000
"""Of all rounds, those that promise the most first: some seconds of 100,000 slots, a fraction of one of 10,000."""
FAILURES = 2_000
"""In a row, that end a round: what comes after promises less still."""
RETURNS = 8
"""Slots that may come back for one that goes."""

Moves = list[tuple[int, int]]
"""Slots, each with its new lane."""


def gather(arrangement: Arrangement, bounds: Bounds, seed: int = 0, patience: int = PATIENCE) -> None:
    """Raise the traffic inside lanes; no lane goes beyond its bounds, or further beyond them than it is already."""
    if not arrangement.snapshot.total_traffic or len(arrangement.snapshot.staying) < 2:
        return
    scales = Scales(arrangement, bounds)
    few = len(arrangement.lanes) <= FEW
    if few and seed % 2:
        Tabu(arrangement, scales, seed).search(patience)
    _Rounds(arrangement, scales, seed).run()
    if few and not seed % 2:
        Tabu(arrangement, scales, seed).search(patience)


class _Rounds:
    """Rounds over single slots and over sets, until neither brings anything or enough was attempted."""

    def __init__(self, arrangement: Arrangement, scales: Scales, seed: int) -> None:
        links, slots = arrangement.links, len(arrangement.lanes)
        self.arrangement, self.scales = arrangement, scales
        self.links = sparse.csr_array((links.weights, links.slots, links.starts), shape=(slots, slots))
        self.heaviest = heaviest_pairs(self.links)
        self.least_gain = TOLERANCE * arrangement.snapshot.total_traffic
        self.random = chance(seed)
        self.attempts = ATTEMPTS

    def run(self) -> None:
        singles = np.arange(len(self.arrangement.lanes))
        for _ in range(ROUNDS):
            found = self._round(singles)
            found += self._round(sets_inside_lanes(self.heaviest, self.arrangement.lanes))
            if not found or not self.attempts:
                return

    def _round(self, label: Ints) -> int:
        """Go through all units, the slots of one label each, which share a lane; how many of them went."""
        arrangement, units = self.arrangement, int(label.max()) + 1
        self.attached = arrangement.pull_to(arrangement.lanes)
        self.residents = by_label(arrangement.lanes, arrangement.snapshot.lanes)
        members, wishes = by_label(label, units), self._wishes(label, units)
        found = failed = 0
        for unit, lane in zip(*(each[: self.attempts].tolist() for each in wishes), strict=True):
            self.attempts -= 1
            went = self._attempt(members[unit], lane)
            found, failed = found + went, 0 if went else failed + 1
            if failed == FAILURES:
                break
        return found

    def _wishes(self, label: Ints, units: int) -> tuple[Ints, Ints]:
        """Units that would gain on another lane, and the lane where they would the most; the greatest gain first."""
        arrangement, links = self.arrangement, self.links
        home = np.zeros(units, np.int64)
        home[label] = arrangement.lanes
        source, target = np.repeat(label, np.diff(links.indptr)), label[links.indices]
        inside = source == target
        own = np.bincount(label, self.attached, units) - np.bincount(source[inside], links.data[inside], units)
        unit, lane, pull = self._pulls(label, units)
        gain = pull - own[unit]
        wished = (lane != home[unit]) & ~arrangement.snapshot.draining[lane] & (gain > self.least_gain)
        unit, lane, gain = unit[wished], lane[wished], gain[wished]
        # The last key counts most: of every unit the entry with the greatest gain comes first, and is kept.
        order = np.lexsort((lane, -gain, unit))
        order = self.random.permutation(order[np.diff(unit[order], prepend=-1) > 0])
        order = order[np.argsort(-gain[order], kind="stable")]
        return unit[order], lane[order]

    def _pulls(self, label: Ints, units: int) -> tuple[Ints, Ints, Floats]:
        """The traffic between units and lanes, where there may be most: entries of unit, lane and amount."""
        arrangement, snapshot, slots = self.arrangement, self.arrangement.snapshot, np.arange(len(label))
        ones = np.ones(len(label))
        together = sparse.csr_array((ones, (label, slots)), shape=(units, len(label)))
        there = sparse.csr_array((ones, (slots, arrangement.lanes)), shape=(len(label), snapshot.lanes))
        single = (together @ self.links @ there).tocoo()
        unit, lane = (each.astype(np.int64) for each in single.coords)
        if not snapshot.spread.any():
            return unit, lane, single.data
        groups = np.where(snapshot.draining, -1.0, snapshot.spread @ arrangement.counts)
        first = np.zeros(units, np.int64)
        first[label] = snapshot.operator
        unit, lane = np.append(unit, np.arange(units)), np.append(lane, groups.argmax(axis=1)[first])
        return unit, lane, np.append(single.data, np.zeros(units)) + _of_members(groups, label, unit, lane, snapshot)

    def _attempt(self, slots: Ints, lane: int) -> bool:
        """Have slots of one lane go to another, with others in exchange if need be; whether that was a gain."""
        arrangement = self.arrangement
        here = int(arrangement.lanes[slots[0]])
        if here == lane or (arrangement.lanes[slots] != here).any():
            return False
        moves, cost = (each.sum() for each in arrangement.charge(slots, lane))
        if not arrangement.affordable(moves, cost):
            return False
        spent = arrangement.moves, arrangement.cost
        gain = self._apply([(slot, lane) for slot in slots.tolist()])
        if gain > self.least_gain:
            for back in self._returns(slots, lane, here):
                change = self._apply([(slot, here) for slot in back])
                if gain + change > self.least_gain and self.scales.hold([here, lane]) and self._paid(*spent):
                    return True
                self._apply([(slot, lane) for slot in back])
        self._apply([(slot, here) for slot in slots.tolist()])
        return False

    def _returns(self, gone: Ints, here: int, there: int) -> Iterator[list[int]]:
        """Slots that may come back from where some have gone to, so that both lanes are within their bounds.

        Those with the least traffic to the lane that they are on come first. The first answer that will do is taken.
        """
        least, most = self.scales.lacking(here, there)
        if least <= 0:
            yield []
            return
        arrangement, load = self.arrangement, self.arrangement.snapshot.load
        staying = np.setdiff1d(self.residents[here], gone)
        staying = staying[arrangement.lanes[staying] == here]
        staying = staying[(load[staying] <= most) & (load[staying] > 0)]
        staying = staying[np.argsort(self.attached[staying], kind="stable")]
        alone = staying[load[staying] >= least][:1]
        yield from ([slot] for slot in alone.tolist())
        together = _filled(staying, load[staying], least, most)
        if len(together) > 1:
            yield together

    def _apply(self, moves: Moves) -> float:
        """Make moves one after the other, and return what they gain."""
        gain = 0.0
        for slot, lane in moves:
            pull = self.arrangement.pull(slot)
            gain += float(pull[lane] - pull[self.arrangement.lanes[slot]])
            self.arrangement.move(slot, lane)
        return gain

    def _paid(self, moves: int, cost: float) -> bool:
        """Whether the budget allows what has been done since it was spent so far."""
        limits, now = self.arrangement.snapshot.limits, self.arrangement
        return (limits.max_moves is None or now.moves <= max(limits.max_moves, moves)) and (
            limits.max_migration is None or now.cost <= max(limits.max_migration * (1 + TOLERANCE), cost)
        )


def _of_members(groups: Floats, label: Ints, unit: Ints, lane: Ints, snapshot: ClusterSnapshot) -> Floats:
    """By entry, what the operators of a unit's slots have to do with its lane."""
    order, sizes = np.argsort(label, kind="stable"), np.bincount(label)
    starts, counts = np.cumsum(sizes) - sizes, sizes[unit]
    entry = np.repeat(np.arange(len(unit)), counts)
    place = np.arange(len(entry)) - np.repeat(np.cumsum(counts) - counts, counts)
    operator = snapshot.operator[order[starts[unit[entry]] + place]]
    return np.bincount(entry, groups[operator, lane[entry]], len(unit)).astype(np.float64)


def _filled(slots: Ints, loads: Floats, least: float, most: float) -> list[int]:
    """The first slots that fit, one beside the other, until they carry enough; none if that takes too many.

    >>> _filled(np.array([7, 8, 9]), np.array([2.0, 3.0, 1.5]), 3.0, 4.0)
    [7, 9]
    """
    chosen: list[int] = []
    total = 0.0
    for slot, load in zip(slots.tolist(), loads.tolist(), strict=True):
        if total + load <= most:
            chosen.append(slot)
            total += load
            if total >= least:
                return chosen
            if len(chosen) == RETURNS:
                break
    return []
