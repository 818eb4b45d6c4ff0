"""Runs: the parts of a slot's chain as a lane sees them. Segments are opened only when a search comes to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from trimtab.ports import ObjectStore
from trimtab.state.order import Flags, Ints, Orders, same, slots_in
from trimtab.state.records import RunRef
from trimtab.state.rows import Rows, take_array
from trimtab.state.segment import open_segment


@dataclass(frozen=True)
class Matches:
    """Which probes a run holds, ascending, and in which of its rows."""

    probe: Ints
    row: Ints


class Run:
    """Sorted rows of which only some slots' ranges count; without ranges all of them do."""

    def __init__(self, load: Callable[[], Rows], ranges: Ranges | None = None) -> None:
        self._load = load
        self.ranges = ranges

    @cached_property
    def rows(self) -> Rows:
        return self._load()

    def covers(self, slots: Flags) -> bool:
        """Whether any of the flagged slots has a range here. Opens nothing."""
        return self.ranges is None or bool(slots[self.ranges.slots].any())

    def referenced(self) -> Rows:
        """The rows that count."""
        return self.rows if self.ranges is None else self.rows.ranges(*self.ranges.bounds)

    def find(self, keys: Sequence[pa.Array], orders: Orders, slots: Ints, wanted: Ints) -> Matches:
        """Search for the wanted ones of some probes, which ascend."""
        if self.ranges is not None:
            wanted = wanted[self.ranges.flags[slots[wanted]]]
        if not wanted.size:
            return Matches(wanted, wanted)
        return _search(self.rows, keys, orders, wanted)


@dataclass(frozen=True)
class Ranges:
    """The row range of some slots, which ascend, out of `total`."""

    slots: Ints
    starts: Ints
    stops: Ints
    total: int
    flags: Flags = field(init=False)

    def __post_init__(self) -> None:
        flags = np.zeros(self.total, np.bool_)
        flags[self.slots] = True
        object.__setattr__(self, "flags", flags)

    @property
    def bounds(self) -> tuple[Ints, Ints]:
        return self.starts, self.stops

    def of(self, wanted: Flags) -> Ranges:
        chosen = wanted[self.slots]
        return Ranges(self.slots[chosen], self.starts[chosen], self.stops[chosen], self.total)


def whole(rows: Rows, slots: int) -> Ranges:
    """The ranges of rows that all count, with so many slots."""
    found, starts = np.unique(slots_in(rows.orders, slots), return_index=True)
    return Ranges(found, starts, np.append(starts[1:], len(rows)), slots)


def open_runs(
    store: ObjectStore, references: Sequence[RunRef], slots: int, owned: Collection[int] | None = None
) -> list[Run]:
    """Runs over stored segments in the order given, of the owned slots out of so many, or of all."""
    flags = owned_flags(slots, owned)
    runs = []
    for reference in references:
        ranges = _ranges(reference, slots).of(flags)
        if ranges.slots.size:
            runs.append(Run(_loader(store, reference.name), ranges))
    return runs


def owned_flags(slots: int, owned: Collection[int] | None) -> Flags:
    """A flag per slot; all are set when nobody says which."""
    flags = np.full(slots, owned is None)
    if owned is not None:
        flags[np.fromiter(owned, np.int64, len(owned))] = True
    return flags


def _ranges(reference: RunRef, slots: int) -> Ranges:
    starts, stops = np.asarray(reference.starts, np.int64), np.asarray(reference.stops, np.int64)
    return Ranges(np.asarray(reference.slots, np.int64), starts, stops, slots)


def _loader(store: ObjectStore, name: str) -> Callable[[], Rows]:
    return lambda: open_segment(store, name)


def _search(rows: Rows, keys: Sequence[pa.Array], orders: Orders, wanted: Ints) -> Matches:
    found: list[Matches] = []
    row = np.searchsorted(rows.orders, orders[wanted])
    # One round, but for keys that share their order with others: those try the next row.
    while wanted.size:
        hit = rows.orders[np.minimum(row, len(rows) - 1)] == orders[wanted] if len(rows) else np.zeros(len(row), bool)
        hit &= row < len(rows)
        wanted, row = _only(wanted, hit), _only(row, hit)
        equal = _equal(rows.keys, row, keys, wanted)
        found.append(Matches(_only(wanted, equal), _only(row, equal)))
        wanted, row = wanted[~equal], row[~equal] + 1
    return _joined(found)


def _equal(stored: Sequence[pa.Array], row: Ints, keys: Sequence[pa.Array], wanted: Ints) -> Flags:
    pairs = [same(take_array(left, row), take_array(right, wanted)) for left, right in zip(stored, keys, strict=True)]
    return pairs[0] if len(pairs) == 1 else np.logical_and.reduce(pairs)


def _only(numbers: Ints, flags: Flags) -> Ints:
    return numbers if flags.all() else numbers[flags]


def _joined(found: list[Matches]) -> Matches:
    filled = [each for each in found if each.probe.size]
    if len(filled) == 1:
        return filled[0]
    probe = np.concatenate([each.probe for each in found])
    ascending = np.argsort(probe)
    return Matches(probe[ascending], np.concatenate([each.row for each in found])[ascending])
