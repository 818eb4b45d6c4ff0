"""`process(tt.Logic)`: the user's own logic over the rows and the state of a lane."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from trimtab.lane.context import Context
from trimtab.lane.user_code import conform, user_code
from trimtab.state.keyed import KeyedTable

ROWS_PER_CALL = 1_000_000


class KeyedState:
    """The state of one operator's keys on one lane, as logic sees it.

    Everything works on whole tables. Keys are tables with the key columns; other columns are ignored. Reads see what
    the same call wrote before. Keys of another lane's slots cannot be reached.
    """

    def __init__(self, table: KeyedTable) -> None:
        self._table = table

    def get(self, keys: pa.Table) -> pa.Table:
        """The state columns for each row of `keys`, in that order; null where a key has no state."""
        return self._table.get(keys)

    def contains(self, keys: pa.Table) -> pa.BooleanArray:
        """Whether each key has state."""
        return self._table.contains(keys)

    def put(self, rows: pa.Table) -> None:
        """Set the state of some keys: key columns and state columns; of several rows with one key the last counts."""
        self._table.put(rows)

    def delete(self, keys: pa.Table) -> None:
        """Forget some keys; a key without state is no error."""
        self._table.delete(keys)

    def scan(self) -> pa.Table:
        """All keys of the lane with their state. The cost is that of the whole state: not for every epoch."""
        return self._table.scan()


@dataclass(frozen=True)
class LogicBody:
    """Runs a `tt.Logic`. Its `on_rows` may be called several times an epoch, with any split of the rows."""

    logic: Any
    output: pa.Schema
    rows_per_call: int = ROWS_PER_CALL

    combines = False

    @property
    def timed(self) -> bool:
        return getattr(self.logic, "on_watermark", None) is not None

    def prepare(self, rows: pa.Table) -> tuple[pa.Table, None]:
        return rows, None

    def fresh(self) -> LogicBody:
        return replace(self, logic=copy.copy(self.logic))

    def run(self, rows: pa.Table, state: KeyedTable, context: Context) -> pa.Table | None:
        calls = (
            self._call(self.logic.on_rows, context, part, KeyedState(state), context) for part in self._parts(rows)
        )
        return joined(calls)

    def advance(self, state: KeyedTable, context: Context) -> pa.Table | None:
        if not self.timed:
            return None
        return self._call(self.logic.on_watermark, context, context.watermark, KeyedState(state), context)

    def _parts(self, rows: pa.Table) -> Iterator[pa.Table]:
        return (rows.slice(start, self.rows_per_call) for start in range(0, rows.num_rows, self.rows_per_call))

    def _call(self, function: Callable[..., object], context: Context, *arguments: object) -> pa.Table | None:
        name = f"{type(self.logic).__name__}.{function.__name__}"
        with user_code(f"{context.place}, in {name}."):
            output = function(*arguments)
            return None if output is None else conform(output, self.output, name)


def joined(tables: Iterable[pa.Table | None]) -> pa.Table | None:
    """The tables behind one another; None if there are none."""
    some = [table for table in tables if table is not None and table.num_rows]
    return pa.concat_tables(some) if some else None
