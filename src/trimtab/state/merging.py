"""Which runs to fold into the next epoch's segments: a pure function of the manifest.

Two rules, both by slot. *Long chains*: a chain longer than 4 to 7 runs, staggered over slots so that they do not all
come due at once, is folded from its newest run down to the oldest that has at most twice the rows of all newer ones
together, and at least until the chain is within its threshold again. *Pinned segments*: an old segment of which
less than a quarter is still referred to gets its remaining slots folded down to it, oldest segments first.

What this bounds:

- Reading: no chain is longer than 8 runs, so a key is searched for at most 8 times. (Where the budget is short, chains
  wait their turn and grow meanwhile.)
- Space: a segment older than `RECENT` epochs is at least a quarter referred to, so files hold at most four times the
  rows of all chains. Beyond the base of a chain, runs hold at most as many rows as were written since, and once those
  reach half of the base the next fold takes the base too.
- Writing: runs that are left behind at least triple in rows from one to the next older, hence a row is rewritten a
  number of times that grows with the logarithm of the base over an epoch's rows, plus one row in three for pins.
- One epoch: folds at most `max(100,000, 4 x rows that logic wrote in the last epoch)` rows, longest chains first, a
  quarter of it for pins; or a single fold when that alone is more, so that no slot starves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trimtab.state.chains import Chains
from trimtab.state.manifest import Manifest
from trimtab.state.order import Flags, Ints
from trimtab.vocab import OperatorId, SlotId

SHORTEST = 4
STAGGER = 4
GROWTH = 2
LEAST_SHARE = 0.25
RECENT = 8
FLOOR = 100_000
PER_FRESH = 4
CHAINS_SHARE = 0.75


@dataclass(frozen=True)
class Candidates:
    """Folds that would be good: of which slots, how deep, over how many rows, and how urgent (smallest first)."""

    operator: Ints
    slot: Ints
    depth: Ints
    rows: Ints
    urgency: Ints

    def affordable(self, budget: float) -> Candidates:
        """The most urgent ones whose rows fit, or the first of them if it alone does not."""
        order = np.lexsort((self.slot, self.operator, self.urgency))
        fitting = np.cumsum(self.rows[order]) <= budget
        fitting[:1] = True
        return Candidates(*(each[order[fitting]] for each in self._arrays()))

    def total(self) -> int:
        return int(self.rows.sum())

    def _arrays(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        return self.operator, self.slot, self.depth, self.rows, self.urgency


def choose_folds(manifest: Manifest) -> dict[OperatorId, dict[SlotId, int]]:
    """By operator and slot, how many of the newest runs the next epoch should fold in."""
    budget = max(FLOOR, PER_FRESH * manifest.fresh)
    long = _together([_long_chains(operator, each) for operator, each in manifest.chains.items()])
    long = long.affordable(CHAINS_SHARE * budget)
    pinned = _pinned(manifest)
    weak = _together([_unpinning(operator, each, pinned, manifest) for operator, each in manifest.chains.items()])
    weak = weak.affordable(budget - long.total())
    folds: dict[OperatorId, dict[SlotId, int]] = {}
    for chosen in (long, weak):
        for operator, slot, depth in zip(*(each.tolist() for each in chosen._arrays()[:3]), strict=True):
            of_operator = folds.setdefault(operator, {})
            of_operator[slot] = max(depth, of_operator.get(slot, 0))
    return folds


def _long_chains(operator: OperatorId, chains: Chains) -> Candidates:
    slots = chains.slot[chains.heads]
    threshold = SHORTEST + slots % STAGGER
    # To stop at the first run that is too large would leave smaller, older ones behind it, and rewrite it ever again.
    joins = (chains.rows <= GROWTH * (chains.rows_to - chains.rows)) | (chains.rank == 0)
    depth = np.maximum(_last(joins, chains), chains.lengths - threshold + 1)
    due = np.flatnonzero(chains.lengths > threshold)
    return _candidates(operator, chains, slots[due], chains.heads[due], depth[due], -chains.lengths[due])


def _last(flags: Flags, chains: Chains) -> Ints:
    """By slot, how many entries there are up to the last that has its flag."""
    if not len(chains):
        return chains.lengths
    return np.maximum.reduceat(np.where(flags, chains.rank + 1, 0), chains.heads)


def _pinned(manifest: Manifest) -> Flags:
    """Which segments are kept alive by too little, and not about to die of themselves."""
    return (manifest.live_share < LEAST_SHARE) & (manifest.origin[:, 0] <= manifest.epoch - RECENT)


def _unpinning(operator: OperatorId, chains: Chains, pinned: Flags, manifest: Manifest) -> Candidates:
    held = np.flatnonzero(pinned[chains.segment])
    # The last entry of a slot is the oldest: folding down to it frees the newer ones too.
    held = held[np.append(chains.slot[held][1:] != chains.slot[held][:-1], True)[: len(held)]]
    depth = chains.rank[held] + 1
    age = manifest.origin[chains.segment[held], 0]
    return _candidates(operator, chains, chains.slot[held], held - chains.rank[held], depth, age)


def _candidates(
    operator: OperatorId, chains: Chains, slots: Ints, heads: Ints, depth: Ints, urgency: Ints
) -> Candidates:
    rows = chains.rows_to[heads + depth - 1]
    return Candidates(np.full(len(slots), operator), slots, depth, rows, urgency)


def _together(parts: list[Candidates]) -> Candidates:
    if not parts:
        empty: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        return Candidates(empty, empty, empty, empty, empty)
    return Candidates(*(np.concatenate(each) for each in zip(*(part._arrays() for part in parts), strict=True)))
