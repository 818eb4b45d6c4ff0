"""The keyed table: one operator's state on one lane, for one activation.

Reading goes through the runs of the slots' chains, newest first; writing collects a run in memory, which `flush` turns
into what a segment holds. The cost is that of the rows touched: no run is loaded, and a run is only opened when a key
asked for could be in it and no newer run has it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trimtab.errors import StateError
from trimtab.state.keyhash import hash_keys, slot_of
from trimtab.state.order import Flags, Ints, Orders, arrange, orders_of, slot_starts, slots_in
from trimtab.state.rows import Rows, merge, take_array
from trimtab.state.runs import Matches, Run, owned_flags, whole
from trimtab.state.schema import StateSchema, as_table, empty_columns

__all__ = ["Flushed", "KeyedTable", "Keys", "StateSchema"]

Hasher = Callable[[Sequence[pa.Array]], Ints]


@dataclass(frozen=True)
class Keys:
    """Rows of keys in the order of state: equal keys are neighbours, in the order in which they were handed in."""

    table: pa.Table
    orders: Orders
    slots: Ints
    permutation: Ints
    """Which row of the table handed in each row was."""
    starts: Flags
    """Whether a row is the first of its key."""

    def __len__(self) -> int:
        return len(self.orders)

    @property
    def columns(self) -> list[pa.Array]:
        return [column.chunk(0) for column in self.table.columns]

    @property
    def unique(self) -> bool:
        return bool(self.starts.all())

    def inverse(self) -> Ints:
        """Where each row of the table handed in is now."""
        places = np.empty_like(self.permutation)
        places[self.permutation] = np.arange(len(places))
        return places

    def last(self) -> Keys:
        """One row per key: the last that was handed in."""
        return self if self.unique else self.pick(np.flatnonzero(np.append(self.starts[1:], True)))

    def pick(self, rows: Ints) -> Keys:
        """Some rows, in ascending order, at most one per key."""
        columns = [take_array(column, rows) for column in self.columns]
        table = as_table(columns, self.table.schema)
        return Keys(table, self.orders[rows], self.slots[rows], self.permutation[rows], np.ones(len(rows), np.bool_))


@dataclass(frozen=True)
class Flushed:
    """What an activation leaves behind: a run, the range of each slot in it, and how many older runs each replaces."""

    rows: Rows
    slots: Ints
    offsets: Ints
    folded: Ints
    fresh: int

    @property
    def table(self) -> pa.Table:
        """The run as a table: order, live, key columns, value columns."""
        schema = pa.schema([pa.field("order", pa.uint64()), *self.rows.batch.schema])
        return as_table([pa.array(self.rows.orders), *self.rows.batch.columns], schema)


class KeyedTable:
    """State of the owned slots of an operator. `runs` are those of their chains and no others, newest first."""

    def __init__(
        self,
        schema: StateSchema,
        runs: Sequence[Run] = (),
        owned: Collection[int] | None = None,
        hasher: Hasher = hash_keys,
    ) -> None:
        self.schema = schema
        self._stored = list(runs)
        self._owned = owned_flags(schema.slots, owned)
        self._hasher = hasher
        self._written: list[Run] = []

    def keys(self, table: pa.Table, hashes: Ints | None = None) -> Keys:
        """The key columns of a table, hashed and sorted once for several uses. `hashes` saves the hashing."""
        columns = self.schema.conform(table, self.schema.keys)
        hashes = self._hasher(columns) if hashes is None else hashes
        slots = slot_of(hashes, self.schema.slots)
        self._check_owned(slots)
        orders = orders_of(hashes, slots, self.schema.slots)
        permutation, starts = arrange(columns, orders)
        if permutation is None:
            permutation = np.arange(len(orders))
        else:
            orders, columns = orders[permutation], [take_array(column, permutation) for column in columns]
        slot = slots_in(orders, self.schema.slots)
        return Keys(as_table(columns, self.schema.keys), orders, slot, permutation, starts)

    def lookup(self, keys: Keys) -> tuple[pa.Table, Flags]:
        """The values of each row of `keys`, null where there are none, and whether there are any."""
        hits, found = self._locate(keys)
        columns = [self._gather(hits, found, place) for place in range(len(self.schema.values))]
        return as_table(columns, self.schema.values), found

    def store(self, keys: Keys, values: pa.Table) -> None:
        """Set the values of keys that are unique; row i of `values` belongs to row i of `keys`."""
        columns = self.schema.conform(values, self.schema.values)
        if not keys.unique:
            raise StateError(f"The operator '{self.schema.operator}' stored a key twice at once; use put.")
        if any(len(column) != len(keys) for column in columns):
            raise StateError(
                f"The operator '{self.schema.operator}' stored {values.num_rows} rows of values for {len(keys)} keys."
            )
        self._write(keys, columns, live=True)

    def get(self, keys: pa.Table) -> pa.Table:
        """The value columns for each row of `keys`, in that order; null where a key has no state."""
        probes = self.keys(keys)
        values, _ = self.lookup(probes)
        return values.take(pa.array(probes.inverse()))

    def contains(self, keys: pa.Table) -> pa.BooleanArray:
        """Whether each key has state."""
        probes = self.keys(keys)
        _, found = self._locate(probes)
        return pa.array(found[probes.inverse()])

    def put(self, table: pa.Table) -> None:
        """Set the state of some keys, by name of key and value columns; the last row of a key counts."""
        columns = self.schema.conform(table, self.schema.values)
        keys = self.keys(table).last()
        self._write(keys, [take_array(column, keys.permutation) for column in columns], live=True)

    def delete(self, keys: pa.Table) -> None:
        """Forget some keys; one without state is no error, and costs no tombstone."""
        probes = self.keys(keys).last()
        _, found = self._locate(probes)
        gone = probes.pick(np.flatnonzero(found))
        self._write(gone, empty_columns(self.schema.values, len(gone)), live=False)

    def scan(self) -> pa.Table:
        """All keys with their values, in the order of state. The cost is that of the whole state."""
        parts = [*(run.referenced() for run in [*self._written, *self._stored]), self._nothing()]
        rows = merge(parts)
        living = rows.living()
        if not living.all():
            rows = rows.pick(np.flatnonzero(living))
        return as_table(rows.batch.columns[1:], self.schema.all)

    def flush(self, fold: Mapping[int, int] | None = None) -> Flushed | None:
        """Everything written, as one run; None when there is nothing to write.

        `fold` maps slots to how many of their newest older runs to fold in; slots of other lanes are ignored.
        Tombstones go where nothing older is left that they could hide.
        """
        fresh = merge([*(run.rows for run in self._written), self._nothing()])
        parts, folded, bottom = self._fold(self._depths(fold or {}))
        rows = merge([fresh, *parts])
        kept = rows.living() | ~bottom[slots_in(rows.orders, self.schema.slots)]
        if not kept.all():
            rows = rows.pick(np.flatnonzero(kept))
        present = np.flatnonzero(folded)
        slots = np.union1d(slots_in(rows.orders, self.schema.slots), present)
        if not slots.size:
            return None
        offsets = np.append(slot_starts(rows.orders, slots, self.schema.slots), len(rows))
        return Flushed(rows, slots, offsets, folded[slots], len(fresh))

    def _fold(self, depths: Ints) -> tuple[list[Rows], Ints, Flags]:
        """The older rows to fold in, newest run first; how many runs that is by slot; whether it is all of them."""
        chain = np.zeros(self.schema.slots, np.int64)
        parts = []
        for run in self._stored:
            ranges = run.ranges or whole(run.rows, self.schema.slots)
            wanted = chain < depths
            if wanted[ranges.slots].any():
                parts.append(run.rows.ranges(*ranges.of(wanted).bounds))
            chain[ranges.slots] += 1
        return parts, np.minimum(chain, depths), chain <= depths

    def _depths(self, fold: Mapping[int, int]) -> Ints:
        depths = np.zeros(self.schema.slots, np.int64)
        depths[np.fromiter(fold.keys(), np.int64, len(fold))] = np.fromiter(fold.values(), np.int64, len(fold))
        return np.where(self._owned, depths, 0)

    def _locate(self, keys: Keys) -> tuple[list[tuple[Rows, Matches]], Flags]:
        """In which rows the keys are that have state, and which those are."""
        found, unresolved = np.zeros(len(keys), np.bool_), np.ones(len(keys), np.bool_)
        slots = np.zeros(self.schema.slots, np.bool_)
        slots[keys.slots] = True
        columns, probes = keys.columns, np.arange(len(keys))
        hits = []
        for run in [*self._written, *self._stored]:
            if not probes.size:
                break
            if not run.covers(slots):
                continue
            match = run.find(columns, keys.orders, keys.slots, probes)
            unresolved[match.probe] = False
            probes = probes[unresolved[probes]]
            match = _living(run.rows, match) if match.probe.size else match
            found[match.probe] = True
            hits.append((run.rows, match))
        return [(rows, match) for rows, match in hits if match.probe.size], found

    def _gather(self, hits: list[tuple[Rows, Matches]], found: Flags, place: int) -> pa.Array:
        """One value column for all probes, from wherever each was found."""
        if not hits:
            return pa.nulls(len(found), self.schema.values.field(place).type)
        pieces = [take_array(rows.values[place], match.row) for rows, match in hits]
        if len(hits) == 1 and found.all():
            return pieces[0]
        source = np.zeros(len(found), np.int64)
        source[np.concatenate([match.probe for _, match in hits])] = np.arange(sum(map(len, pieces)))
        return pa.concat_arrays(pieces).take(pa.array(source, mask=~found))

    def _write(self, keys: Keys, values: Sequence[pa.Array], live: bool) -> None:
        if not len(keys):
            return
        rows = self._rows(keys.orders, live, keys.columns, values)
        # Tiers of sizes that at least double keep many small writes from costing the square of their number.
        while self._written and len(self._written[0].rows) <= 2 * len(rows):
            rows = merge([rows, self._written.pop(0).rows])
        self._written.insert(0, Run(lambda: rows))

    def _rows(self, orders: Orders, live: bool, keys: Sequence[pa.Array], values: Sequence[pa.Array]) -> Rows:
        schema = pa.schema([pa.field("live", pa.bool_()), *self.schema.all])
        flags = pa.array(np.full(len(orders), live))
        return Rows(orders, pa.RecordBatch.from_arrays([flags, *keys, *values], schema=schema), len(keys))

    def _nothing(self) -> Rows:
        keys, values = empty_columns(self.schema.keys, 0), empty_columns(self.schema.values, 0)
        return self._rows(np.zeros(0, np.uint64), True, keys, values)

    def _check_owned(self, slots: npt.NDArray[np.int32]) -> None:
        if not self._owned[slots].all():
            stray = int(slots[~self._owned[slots]][0])
            raise StateError(
                f"The operator '{self.schema.operator}' asked for a key of slot {stray}, which another lane owns: "
                "state can only be reached for the keys of the rows at hand."
            )


def _living(rows: Rows, match: Matches) -> Matches:
    live = take_array(rows.live, match.row)
    if live.true_count == len(live):
        return match
    flags = live.to_numpy(zero_copy_only=False)
    return Matches(match.probe[flags], match.row[flags])
