"""Aggregation by key over whole tables: partial state before the shuffle, state on the lane, finished columns out.

A row of *partial state* has the key columns and the state columns of every aggregate. Rows become partial state at the
source, where each key of a chunk shrinks to one row, so a single hot key costs no more than any other. Partial
states of a key combine, in order, into one, and that is merged into the state of the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trimtab.lane.context import Context
from trimtab.lane.functions import POSITION, Column, Function
from trimtab.lane.program import RESERVED
from trimtab.lane.user_code import placed
from trimtab.state.keyed import KeyedTable
from trimtab.state.order import Ints


@dataclass(frozen=True)
class AggregateBody:
    """The logic of `aggregate(...)`: update mode, one output row per key touched in the epoch."""

    keys: pa.Schema
    functions: tuple[Function, ...]

    combines = True
    timed = False

    @property
    def values(self) -> pa.Schema:
        """The state columns."""
        return pa.schema([field for function in self.functions for field in function.fields])

    @property
    def packed(self) -> pa.Schema:
        return pa.schema([*self.keys, *self.values])

    @property
    def output(self) -> pa.Schema:
        return pa.schema([*self.keys, *(pa.field(each.name, each.result) for each in self.functions)])

    def prepare(self, rows: pa.Table) -> tuple[pa.Table, Ints]:
        """One row of partial state per key, in the order in which keys first appear, and how many rows each is."""
        return self._group(rows, [function.feed(rows) for function in self.functions], combining=False)

    def combine(self, partial: pa.Table) -> pa.Table:
        """Partial states, several rows per key, into one row per key."""
        feeds = [{field.name: partial.column(field.name) for field in each.fields} for each in self.functions]
        return self._group(partial, feeds, combining=True)[0]

    def fresh(self) -> AggregateBody:
        return self

    def run(self, rows: pa.Table, state: KeyedTable, context: Context) -> pa.Table | None:
        with placed(context.place):
            return self._run(rows, state)

    def advance(self, state: KeyedTable, context: Context) -> pa.Table | None:
        return None

    def _run(self, rows: pa.Table, state: KeyedTable) -> pa.Table:
        combined = self.combine(rows)
        keys = state.keys(combined)
        new = combined.select(self.values.names).take(pa.array(keys.permutation))
        old, found = state.lookup(keys)
        merged = self._merge(old, new, pa.array(found)) if found.any() else new
        state.store(keys, merged)
        return self._finish(keys.table, merged)

    def _group(self, rows: pa.Table, feeds: Sequence[Mapping[str, Column]], combining: bool) -> tuple[pa.Table, Ints]:
        """One row per key, and how many rows went into it."""
        calls = [function.calls(combining) for function in self.functions]
        wide = {
            name: each.widen(column)
            for each, feed in zip(self.functions, feeds, strict=True)
            for name, column in feed.items()
        }
        if any(column == POSITION for plan in calls for column, _ in plan):
            wide[POSITION] = pa.array(np.arange(rows.num_rows))
        # Arrow takes names with a dot in front for paths: columns go by their places.
        keys = {f"{RESERVED}.{place}": rows.column(name) for place, name in enumerate(self.keys.names)}
        places = {name: f"{RESERVED}.{place}" for place, name in enumerate(wide, len(keys))}
        wanted = [
            ([] if function == "count_all" else places[column], function) for plan in calls for column, function in plan
        ]
        wanted.append(([], "count_all"))
        table = pa.table([*keys.values(), *wide.values()], [*keys, *places.values()])
        # Threads would change the order of rows and the last digits of sums from run to run.
        grouped = table.group_by(list(keys), use_threads=False).aggregate(wanted)
        columns = list(grouped.columns)
        result, columns = columns[: len(keys)], columns[len(keys) :]
        for function, feed, plan in zip(self.functions, feeds, calls, strict=True):
            result += function.settle(feed, columns[: len(plan)])
            columns = columns[len(plan) :]
        return pa.Table.from_arrays(result, schema=self.packed), grouped.columns[-1].to_numpy()

    def _merge(self, old: pa.Table, new: pa.Table, found: pa.Array) -> pa.Table:
        columns = []
        for function in self.functions:
            names = [field.name for field in function.fields]
            columns += function.merge([old.column(name) for name in names], [new.column(name) for name in names], found)
        return pa.Table.from_arrays(columns, schema=self.values)

    def _finish(self, keys: pa.Table, state: pa.Table) -> pa.Table:
        results = [
            function.finish([state.column(field.name) for field in function.fields]) for function in self.functions
        ]
        return pa.Table.from_arrays([*keys.columns, *results], schema=self.output)
