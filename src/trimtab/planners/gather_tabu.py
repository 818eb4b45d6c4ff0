"""Gathering among few slots by a tabu search over single moves, swaps and sets that move as one.

The best step is made even if it loses, and may be undone only later, so that the search leaves the first summit it
comes to; the best placement it has seen is the answer. All steps of a kind are looked at at once, as matrices.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse

from trimtab.planners.arrangement import Arrangement
from trimtab.planners.bounds import Scales
from trimtab.planners.gather_sets import heaviest_pairs, sets_inside_lanes
from trimtab.planners.metrics import TOLERANCE
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints
from trimtab.ports import chance

PATIENCE = 60
TENURE = (3, 10)
WORK = 5_000_000
"""Pairs of slots that are looked at in all steps together: less than a second."""

Step = tuple[float, list[tuple[int, int]]]
"""What it gains, and slots with their new lanes."""
NOTHING: Step = (-np.inf, [])


def traffic_matrix(snapshot: ClusterSnapshot) -> Floats:
    """Traffic between any two slots, both directions together."""
    matrix = snapshot.spread[np.ix_(snapshot.operator, snapshot.operator)].copy()
    np.add.at(matrix, (snapshot.traffic.source, snapshot.traffic.target), snapshot.traffic.weight)
    np.add.at(matrix, (snapshot.traffic.target, snapshot.traffic.source), snapshot.traffic.weight)
    return matrix


class Tabu:
    """An arrangement in which every slot has a lane, and what each slot exchanges with each lane."""

    def __init__(self, arrangement: Arrangement, scales: Scales, seed: int) -> None:
        snapshot = arrangement.snapshot
        self.arrangement, self.scales = arrangement, scales
        self.random = chance(seed)
        self.traffic = traffic_matrix(snapshot)
        self.heaviest = heaviest_pairs(sparse.csr_array(self.traffic))
        self.lanes = np.arange(snapshot.lanes)
        self.pull = self.traffic @ (arrangement.lanes[:, None] == self.lanes).astype(np.float64)
        self.until = np.zeros((len(snapshot), snapshot.lanes), np.int64)
        self.limited = snapshot.limits.max_moves is not None or snapshot.limits.max_migration is not None
        self.rows = np.arange(len(snapshot))
        self.steps = 0

    def search(self, patience: int) -> None:
        """Go on until so many steps in a row have found nothing better; leave the arrangement at the best seen."""
        best, gain, top, idle = self.arrangement.lanes.copy(), 0.0, 0.0, 0
        scale = TOLERANCE * self.arrangement.snapshot.total_traffic
        for _ in range(max(patience, WORK // len(best) ** 2)):
            gained, moves = self._best_step(top - gain + scale)
            if not moves or idle == patience:
                break
            for slot, lane in moves:
                self._move(slot, lane)
            gain, idle = gain + gained, idle + 1
            if gain > top + scale:
                best, top, idle = self.arrangement.lanes.copy(), gain, 0
        for slot in np.flatnonzero(best != self.arrangement.lanes).tolist():
            self.arrangement.move(slot, int(best[slot]))

    def _best_step(self, aspired: float) -> Step:
        """The best of all kinds; forbidden ones only if they reach a new summit."""
        gains = self.pull - self.pull[self.rows, self.arrangement.lanes][:, None]
        kinds = [self._best_move(gains, aspired), self._best_swap(gains, aspired), self._best_set(aspired)]
        return max(kinds, key=lambda step: step[0])

    def _best_move(self, gains: Floats, aspired: float) -> Step:
        arrangement = self.arrangement
        fits = self.scales.allow(arrangement.snapshot.load[:, None], arrangement.lanes[:, None], self.lanes)
        fits &= ~arrangement.snapshot.draining & (arrangement.lanes[:, None] != self.lanes)
        fits &= (self.until <= self.steps) | (gains > aspired)
        if self.limited:
            fits &= arrangement.affordable(*self._charges())
        moves = np.where(fits, gains, -np.inf)
        slot, lane = (int(each) for each in np.unravel_index(int(moves.argmax()), moves.shape))
        return (float(moves[slot, lane]), [(slot, lane)]) if fits[slot, lane] else NOTHING

    def _best_swap(self, gains: Floats, aspired: float) -> Step:
        """Entry (i, j) is for slots i and j, which change places."""
        arrangement, load, lanes = self.arrangement, self.arrangement.snapshot.load, self.arrangement.lanes
        there = gains[:, lanes]
        both = there + there.T - 2 * self.traffic
        fits = self.scales.allow(load[:, None] - load, lanes[:, None], lanes[None, :])
        stays = ~arrangement.snapshot.draining[lanes]
        fits &= (lanes[:, None] < lanes) & stays & stays[:, None]
        free = self.until[:, lanes] <= self.steps
        fits &= (free & free.T) | (both > aspired)
        if self.limited:
            moves, cost = self._charges()
            fits &= arrangement.affordable(moves[:, lanes] + moves[:, lanes].T, cost[:, lanes] + cost[:, lanes].T)
        swaps = np.where(fits, both, -np.inf)
        one, other = (int(each) for each in np.unravel_index(int(swaps.argmax()), swaps.shape))
        if not fits[one, other]:
            return NOTHING
        return float(swaps[one, other]), [(one, int(lanes[other])), (other, int(lanes[one]))]

    def _best_set(self, aspired: float) -> Step:
        """Sets of slots that share a lane; what they exchange with each other they keep."""
        arrangement, snapshot = self.arrangement, self.arrangement.snapshot
        label = sets_inside_lanes(self.heaviest, arrangement.lanes)
        several = np.flatnonzero(np.bincount(label) > 1)
        if not several.size:
            return NOTHING
        members = sparse.csr_array((label == several[:, None]).astype(np.int64))
        here = arrangement.lanes[members.indices[members.indptr[:-1]]]
        inside = members @ np.where(label[:, None] == label, self.traffic, 0.0).sum(axis=1)
        pull = members @ self.pull
        gains = pull - (pull[np.arange(len(several)), here] - inside)[:, None]
        fits = self.scales.allow((members @ snapshot.load)[:, None], here[:, None], self.lanes)
        fits &= ~snapshot.draining & (here[:, None] != self.lanes)
        fits &= (members @ (self.until > self.steps).astype(np.int64) == 0) | (gains > aspired)
        if self.limited:
            moves, cost = self._charges()
            fits &= arrangement.affordable(members @ moves, members @ cost)
        steps = np.where(fits, gains, -np.inf)
        which, lane = (int(each) for each in np.unravel_index(int(steps.argmax()), steps.shape))
        if not fits[which, lane]:
            return NOTHING
        return float(steps[which, lane]), [(slot, lane) for slot in np.flatnonzero(label == several[which]).tolist()]

    def _charges(self) -> tuple[Ints, Floats]:
        """By slot and lane, by how much the moves and their cost grow."""
        charges = [self.arrangement.charge(self.rows, int(lane)) for lane in self.lanes]
        moves, cost = (np.stack(each, axis=1) for each in zip(*charges, strict=True))
        return moves, cost

    def _move(self, slot: int, lane: int) -> None:
        here = int(self.arrangement.lanes[slot])
        self.arrangement.move(slot, lane)
        self.pull[:, here] -= self.traffic[slot]
        self.pull[:, lane] += self.traffic[slot]
        self.steps += 1
        self.until[slot, here] = self.steps + int(self.random.integers(*TENURE))
