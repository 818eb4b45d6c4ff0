"""Which runs to fold into the next epoch's segments: a pure function of the manifest.

Three rules, all by slot. *Long chains*: a chain longer than 4 to 7 runs, staggered over slots so that they do not all
come due at once, is folded from its newest run down to the oldest that has at most twice the rows of all newer ones
together, and at least until the chain is within its threshold again. Where the budget is short, the longest chains
come first and the others fold only what is small at their top. *Pinned segments*: an old segment of which less than a
quarter is still referred to gets its remaining slots folded down to it, oldest segments first. *Crowds*: where epochs
of few rows have left more than `MANY` small segments for each lane, the slots of all small ones are folded.

What this bounds:

- Reading: with one hop an epoch no chain is longer than 8 runs, so a key is searched for at most 8 times; about twice
  that while the budget is short. A lane opens few segments, however rarely each slot is touched.
- Space: a segment older than `RECENT` epochs is at least a quarter referred to, so files hold at most four times the
  rows of all chains. Beyond the base of a chain, runs hold at most as many rows as were written since, and once those
  reach half of the base the next fold takes the base too.
- Writing: runs that are left behind at least triple in rows from one to the next older, hence a row is rewritten a
  number of times that grows with the logarithm of the base over an epoch's rows, plus one row in three for pins.
- One epoch: folds at most `max(100,000, 4 x rows that logic wrote in the last epoch)` rows; but so that no slot
  starves, either rule makes at least one fold, even if that slot's chain alone is more than the rule's share.
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
SMALL = 1_000
MANY = 24
FLOOR = 100_000
PER_FRESH = 4
DEEP_SHARE = 0.5
LONG_SHARE = 0.75

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Candidates:
    """Folds that would be good: of which slots, how deep, over how many rows, and how urgent (smallest first)."""

    operator: Ints
    slot: Ints
    depth: Ints
    rows: Ints
    urgency: Floats

    def affordable(self, budget: float, always_one: bool = True) -> Candidates:
        """The most urgent ones whose rows fit, and the first of them even if it alone does not."""
        order = np.lexsort((self.slot, self.operator, self.urgency))
        fitting = np.cumsum(self.rows[order]) <= budget
        fitting[:1] |= always_one
        return self.select(order[fitting])

    def without(self, others: Candidates) -> Candidates:
        """Those whose slots the others do not have."""
        taken = np.isin(self._places(), others._places())
        return self.select(np.flatnonzero(~taken))

    def select(self, entries: Ints) -> Candidates:
        operator, slot, depth, rows, urgency = self.arrays()
        return Candidates(operator[entries], slot[entries], depth[entries], rows[entries], urgency[entries])

    def total(self) -> int:
        return int(self.rows.sum())

    def arrays(self) -> tuple[Ints, Ints, Ints, Ints, Floats]:
        return self.operator, self.slot, self.depth, self.rows, self.urgency

    def _places(self) -> Ints:
        return self.operator << 32 | self.slot


def choose_folds(manifest: Manifest) -> dict[OperatorId, dict[SlotId, int]]:
    """By operator and slot, how many of the newest runs the next epoch should fold in."""
    budget = max(FLOOR, PER_FRESH * manifest.fresh)
    pinned = _pinned(manifest)
    operators = manifest.chains.items()
    deep = _together([_long_chains(operator, each) for operator, each in operators]).affordable(DEEP_SHARE * budget)
    tops = _together([_small_tops(operator, each) for operator, each in operators]).without(deep)
    tops = tops.affordable(_share(LONG_SHARE * budget - deep.total(), budget), always_one=False)
    pins = _together([_unpinning(operator, each, pinned, manifest) for operator, each in operators])
    pins = pins.affordable(_share(budget - deep.total() - tops.total(), budget))
    folds: dict[OperatorId, dict[SlotId, int]] = {}
    for chosen in (deep, tops, pins):
        for operator, slot, depth in zip(*(each.tolist() for each in chosen.arrays()[:3]), strict=True):
            of_operator = folds.setdefault(operator, {})
            of_operator[slot] = max(depth, of_operator.get(slot, 0))
    return folds


def _share(left: float, budget: float) -> float:
    """What is left of the budget, but a quarter of it even after a single fold that went far beyond its share."""
    return max(left, (1 - LONG_SHARE) * budget)


def _long_chains(operator: OperatorId, chains: Chains) -> Candidates:
    """Chains above their threshold, folded as deep as is good."""
    slots, threshold, due = _due(chains)
    # To stop at the first run that is too large would leave smaller, older ones behind it, and rewrite it ever again.
    depth = np.maximum(_last(_joins(chains), chains), chains.lengths - threshold + 1)
    last = chains.heads + depth - 1
    # Of chains of one length those first in which the newer runs weigh most against the oldest to be folded.
    weight = chains.rows[last] / np.maximum(chains.rows_to[last], 1)
    urgency = weight - chains.lengths
    return _candidates(operator, chains, slots[due], chains.heads[due], depth[due], urgency[due])


def _small_tops(operator: OperatorId, chains: Chains) -> Candidates:
    """The same without their base, while each run has at most twice the rows before it; cheapest first."""
    slots, _, due = _due(chains)
    depth = np.minimum(_leading(_joins(chains), chains), chains.lengths - 1)
    due = due[depth[due] > 1]
    rows = chains.rows_to[chains.heads[due] + depth[due] - 1]
    return _candidates(operator, chains, slots[due], chains.heads[due], depth[due], rows)


def _due(chains: Chains) -> tuple[Ints, Ints, Ints]:
    """The slots that have chains, their thresholds, and which of them are above it."""
    slots = chains.slot[chains.heads]
    threshold = SHORTEST + slots % STAGGER
    return slots, threshold, np.flatnonzero(chains.lengths > threshold)


def _joins(chains: Chains) -> Flags:
    """Whether an entry has at most twice the rows of all newer ones of its slot; the newest joins anyway."""
    joins: Flags = chains.rows <= GROWTH * (chains.rows_to - chains.rows)
    joins[chains.heads] = True
    return joins


def _leading(flags: Flags, chains: Chains) -> Ints:
    """By slot, how many entries have their flag before the first that has not."""
    if not len(chains):
        return chains.lengths
    stops = np.where(flags, len(chains), chains.rank)
    return np.minimum(np.minimum.reduceat(stops, chains.heads), chains.lengths)


def _last(flags: Flags, chains: Chains) -> Ints:
    """By slot, how many entries there are up to the last that has its flag."""
    if not len(chains):
        return chains.lengths
    return np.maximum.reduceat(np.where(flags, chains.rank + 1, 0), chains.heads)


def _pinned(manifest: Manifest) -> Flags:
    """Which segments are kept alive by too little, and not about to die of themselves; or are too many small ones."""
    pinned: Flags = (manifest.live_share < LEAST_SHARE) & (manifest.origin[:, 0] <= manifest.epoch - RECENT)
    return pinned | _crowd(manifest)


def _crowd(manifest: Manifest) -> Flags:
    """Small segments, where there are more of them than lanes should have to open; none otherwise."""
    small: Flags = manifest.live_rows <= SMALL
    lanes = manifest.origin[:, 2].tolist()
    writers = len({(segment.operator, lane) for segment, lane in zip(manifest.segments, lanes, strict=True)})
    return small if np.count_nonzero(small) > MANY * writers else np.zeros_like(small)


def _unpinning(operator: OperatorId, chains: Chains, pinned: Flags, manifest: Manifest) -> Candidates:
    held = np.flatnonzero(pinned[chains.segment])
    # The last entry of a slot is the oldest: folding down to it frees the newer ones too.
    held = held[np.append(chains.slot[held][1:] != chains.slot[held][:-1], True)[: len(held)]]
    depth = chains.rank[held] + 1
    age = manifest.origin[chains.segment[held], 0]
    return _candidates(operator, chains, chains.slot[held], held - chains.rank[held], depth, age)


def _candidates(
    operator: OperatorId, chains: Chains, slots: Ints, heads: Ints, depth: Ints, urgency: Ints | Floats
) -> Candidates:
    rows = chains.rows_to[heads + depth - 1]
    return Candidates(np.full(len(slots), operator), slots, depth, rows, urgency.astype(np.float64))


def _together(parts: list[Candidates]) -> Candidates:
    if not parts:
        empty: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        return Candidates(empty, empty, empty, empty, empty.astype(np.float64))
    return Candidates(*(np.concatenate(each) for each in zip(*(part.arrays() for part in parts), strict=True)))
