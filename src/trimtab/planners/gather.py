"""Gathering by local search: slots move to where their traffic is, as far as lanes have room and the budget lasts.

Few slots are searched with a tabu list: the best move or swap is made even if it loses, and undone only later, so that
the search leaves the first summit it comes to; the best placement it has seen is the answer. Many slots are gone
through one by one, for as long as a round brings something, and each goes to the lane with most of its traffic.
"""

from __future__ import annotations

import numpy as np

from trimtab.planners.arrangement import Arrangement
from trimtab.planners.metrics import TOLERANCE
from trimtab.planners.snapshot import ClusterSnapshot, Flags, Floats, Ints
from trimtab.ports import chance

FEW = 400
ROUNDS = 10
PATIENCE = 60
TENURE = (3, 10)


def gather(arrangement: Arrangement, room: Floats, seed: int = 0, patience: int = PATIENCE) -> None:
    """Raise the traffic inside lanes; no lane's load goes above its `room`, or further above it than it is already."""
    if not arrangement.snapshot.total_traffic or len(arrangement.snapshot.staying) < 2:
        return
    if len(arrangement.lanes) <= FEW:
        _Tabu(arrangement, room, seed).search(patience)
    else:
        _rounds(arrangement, room, seed)


def _rounds(arrangement: Arrangement, room: Floats, seed: int) -> None:
    snapshot = arrangement.snapshot
    order = chance(seed).permutation(len(snapshot))
    for _ in range(ROUNDS):
        if not sum(_drawn(arrangement, slot, room) for slot in order.tolist()):
            return


def _drawn(arrangement: Arrangement, slot: int, room: Floats) -> bool:
    """Move a slot to the lane that it exchanges most traffic with; whether it moved."""
    snapshot, here = arrangement.snapshot, int(arrangement.lanes[slot])
    pull = arrangement.pull(slot)
    gain = pull - pull[here]
    fits = (arrangement.loads + snapshot.load[slot] <= room) & ~snapshot.draining & (gain > TOLERANCE * pull.sum())
    for lane in np.flatnonzero(fits)[np.argsort(-gain[fits], kind="stable")].tolist():
        if arrangement.affordable(*arrangement.charge(np.array([slot]), lane))[0]:
            arrangement.move(slot, lane)
            return True
    return False


def traffic_matrix(snapshot: ClusterSnapshot) -> Floats:
    """Traffic between any two slots, both directions together."""
    matrix = snapshot.spread[np.ix_(snapshot.operator, snapshot.operator)].copy()
    np.add.at(matrix, (snapshot.traffic.source, snapshot.traffic.target), snapshot.traffic.weight)
    np.add.at(matrix, (snapshot.traffic.target, snapshot.traffic.source), snapshot.traffic.weight)
    return matrix


class _Tabu:
    """Moves and swaps of all slots at once, as matrices: slots by lanes, and slots by slots."""

    def __init__(self, arrangement: Arrangement, room: Floats, seed: int) -> None:
        snapshot = arrangement.snapshot
        self.arrangement = arrangement
        self.room = np.maximum(room, arrangement.loads) * (1 + TOLERANCE)
        self.random = chance(seed)
        self.traffic = traffic_matrix(snapshot)
        lanes = np.arange(snapshot.lanes)
        self.pull = self.traffic @ (arrangement.lanes[:, None] == lanes).astype(np.float64)
        self.until = np.zeros((len(snapshot), snapshot.lanes), np.int64)
        self.limited = snapshot.limits.max_moves is not None or snapshot.limits.max_migration is not None
        self.rows = np.arange(len(snapshot))
        self.steps = 0

    def search(self, patience: int) -> None:
        """Go on until so many steps in a row have found nothing better; leave the arrangement at the best seen."""
        best, gain, top, idle = self.arrangement.lanes.copy(), 0.0, 0.0, 0
        scale = TOLERANCE * self.arrangement.snapshot.total_traffic
        while idle < patience:
            step = self._best_step(top - gain + scale)
            if step is None:
                break
            gain += self._take(*step)
            idle += 1
            if gain > top + scale:
                best, top, idle = self.arrangement.lanes.copy(), gain, 0
        for slot in np.flatnonzero(best != self.arrangement.lanes).tolist():
            self.arrangement.move(slot, int(best[slot]))

    def _best_step(self, aspired: float) -> tuple[int, int, int | None] | None:
        """A slot, its new lane, and the slot that comes back for it; forbidden ones only if they reach a new summit."""
        lanes = self.arrangement.lanes
        gains = self.pull - self.pull[self.rows, lanes][:, None]
        allowed = (self.until <= self.steps) | (gains > aspired)
        moves = np.where(self._fits() & allowed, gains, -np.inf)
        move = np.unravel_index(int(moves.argmax()), moves.shape)
        swaps = self._swaps(gains, aspired)
        swap = np.unravel_index(int(swaps.argmax()), swaps.shape)
        if moves[move] == swaps[swap] == -np.inf:
            return None
        if moves[move] >= swaps[swap]:
            return int(move[0]), int(move[1]), None
        return int(swap[0]), int(lanes[swap[1]]), int(swap[1])

    def _fits(self) -> Flags:
        arrangement, snapshot = self.arrangement, self.arrangement.snapshot
        fits = (arrangement.loads + snapshot.load[:, None] <= self.room) & ~snapshot.draining
        fits[self.rows, arrangement.lanes] = False
        if self.limited:
            for lane in snapshot.staying:
                fits[:, lane] &= arrangement.affordable(*arrangement.charge(self.rows, int(lane)))
        return np.asarray(fits)

    def _swaps(self, gains: Floats, aspired: float) -> Floats:
        """What every pair of slots on different lanes gains by changing places; minus infinity where it must not."""
        arrangement, load = self.arrangement, self.arrangement.snapshot.load
        lanes = arrangement.lanes
        there = gains[:, lanes]
        both = there + there.T - 2 * self.traffic
        after = arrangement.loads[lanes] - load + load[:, None]
        # Entry (i, j) looks at the lane of slot j alone; what holds for (j, i) as well is a swap.
        fits = after <= self.room[lanes]
        fits &= (lanes[:, None] != lanes) & ~arrangement.snapshot.draining[lanes]
        free = self.until[:, lanes] <= self.steps
        fits &= (free & free.T) | (both > aspired)
        if self.limited:
            fits &= self._affordable_swaps(lanes)
        return np.where(np.triu(fits & fits.T), both, -np.inf)

    def _affordable_swaps(self, lanes: Ints) -> Flags:
        charges = [self.arrangement.charge(self.rows, lane) for lane in range(self.arrangement.snapshot.lanes)]
        moves, cost = (np.stack(each, axis=1)[:, lanes] for each in zip(*charges, strict=True))
        return self.arrangement.affordable(moves + moves.T, cost + cost.T)

    def _take(self, slot: int, lane: int, back: int | None) -> float:
        here = int(self.arrangement.lanes[slot])
        gain = self._move(slot, lane)
        return gain if back is None else gain + self._move(back, here)

    def _move(self, slot: int, lane: int) -> float:
        here = int(self.arrangement.lanes[slot])
        gain = float(self.pull[slot, lane] - self.pull[slot, here])
        self.arrangement.move(slot, lane)
        self.pull[:, here] -= self.traffic[slot]
        self.pull[:, lane] += self.traffic[slot]
        self.steps += 1
        self.until[slot, here] = self.steps + int(self.random.integers(*TENURE))
        return gain
