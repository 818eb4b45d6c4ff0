"""The chains of an operator as flat arrays: for every slot its runs, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trimtab.state.order import Flags, Ints
from trimtab.state.records import SegmentRecord


@dataclass(frozen=True)
class Chains:
    """Entry i says that rows `start[i]` to `stop[i]` of a segment are a run of `slot[i]`.

    Entries ascend by slot and are newest first within one. `segment` counts in the manifest's list of segments.
    """

    segment: Ints
    slot: Ints
    start: Ints
    stop: Ints

    @classmethod
    def of(cls, segment: Sequence[int], slot: Sequence[int], start: Sequence[int], stop: Sequence[int]) -> Chains:
        return cls(*(np.asarray(each, np.int64) for each in (segment, slot, start, stop)))

    def __len__(self) -> int:
        return len(self.slot)

    @cached_property
    def heads(self) -> Ints:
        """The first entry of every slot that has one."""
        return np.flatnonzero(np.append(True, self.slot[1:] != self.slot[:-1])[: len(self)])

    @cached_property
    def lengths(self) -> Ints:
        """How many runs each of those slots has."""
        return np.diff(np.append(self.heads, len(self)))

    @cached_property
    def rank(self) -> Ints:
        """How many newer runs of its slot stand before each entry."""
        return np.arange(len(self)) - np.repeat(self.heads, self.lengths)

    @cached_property
    def rows(self) -> Ints:
        return self.stop - self.start

    @cached_property
    def rows_to(self) -> Ints:
        """The rows of each entry and all newer ones of its slot."""
        total = np.cumsum(self.rows)
        return total - np.repeat((total - self.rows)[self.heads], self.lengths)

    def select(self, entries: Ints | Flags) -> Chains:
        return Chains(self.segment[entries], self.slot[entries], self.start[entries], self.stop[entries])

    def renumber(self, numbers: Ints) -> Chains:
        """With `numbers[i]` in place of segment i."""
        return Chains(numbers[self.segment], self.slot, self.start, self.stop)

    def push(self, records: Sequence[SegmentRecord], numbers: Sequence[int]) -> Chains:
        """With the runs of one hop's segments on top, in place of those that they folded in."""
        slots, starts, stops, folded = _columns(records)
        new = Chains(np.repeat(np.asarray(numbers), [len(each.slots) for each in records]), slots, starts, stops)
        depth = np.zeros(max(_bound(self.slot), _bound(slots)), np.int64)
        depth[slots] = folded
        new, old = new.select(starts < stops), self.select(self.rank >= depth[self.slot])
        joined = Chains(*(np.concatenate(each) for each in zip(new._arrays(), old._arrays(), strict=True)))
        return joined.select(np.argsort(joined.slot, kind="stable"))

    def lists(self) -> tuple[list[int], list[int], list[int], list[int]]:
        return self.segment.tolist(), self.slot.tolist(), self.start.tolist(), self.stop.tolist()

    def _arrays(self) -> tuple[Ints, Ints, Ints, Ints]:
        return self.segment, self.slot, self.start, self.stop


def _columns(records: Sequence[SegmentRecord]) -> tuple[Ints, Ints, Ints, Ints]:
    """Slot, start, stop and folded depth of every range of some segments."""
    parts = [(each.slots, each.offsets[:-1], each.offsets[1:], each.folded) for each in records]
    slots, starts, stops, folded = (
        np.concatenate([np.asarray(part[place], np.int64) for part in parts]) for place in range(4)
    )
    return slots, starts, stops, folded


def _bound(numbers: Ints) -> int:
    return int(numbers.max()) + 1 if numbers.size else 0
