"""Sorted rows of state: what a segment holds, and what writes and merges produce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trimtab.state.order import Flags, Ints, Orders, arrange


@dataclass(frozen=True)
class Rows:
    """Keys with their values, in ascending order, every key once. A row that is not live is a tombstone.

    The batch's columns: live, so many key columns, the value columns.
    """

    orders: Orders
    batch: pa.RecordBatch
    width: int

    def __len__(self) -> int:
        return len(self.orders)

    @property
    def live(self) -> pa.BooleanArray:
        return self.batch.column(0)

    @property
    def keys(self) -> list[pa.Array]:
        return list(self.batch.columns[1 : 1 + self.width])

    @property
    def values(self) -> list[pa.Array]:
        return list(self.batch.columns[1 + self.width :])

    def slice(self, start: int, stop: int) -> Rows:
        """Rows from start to stop, without a copy."""
        return Rows(self.orders[start:stop], self.batch.slice(start, stop - start), self.width)

    def pick(self, rows: Ints) -> Rows:
        """Some rows, in ascending order; no copy where they are contiguous."""
        return Rows(_take_orders(self.orders, rows), take(self.batch, rows), self.width)

    def ranges(self, starts: Ints, stops: Ints) -> Rows:
        """The rows in some ranges that ascend."""
        return self.pick(range_rows(starts, stops))

    def living(self) -> Flags:
        return np.asarray(self.live.to_numpy(zero_copy_only=False), np.bool_)


def merge(parts: Sequence[Rows]) -> Rows:
    """One run out of several, newest first; of a key's rows only the newest stays, be it a tombstone."""
    filled = [part for part in parts if len(part)]
    if len(filled) < 2:
        return filled[0] if filled else parts[0]
    joined = Rows(
        np.concatenate([part.orders for part in filled]),
        pa.concat_batches([part.batch for part in filled]),
        parts[0].width,
    )
    permutation, starts = arrange(joined.keys, joined.orders)
    return joined.pick(np.flatnonzero(starts) if permutation is None else permutation[starts])


def take(batch: pa.RecordBatch, rows: Ints) -> pa.RecordBatch:
    """Some rows of a batch; no copy where they are contiguous and ascend."""
    if contiguous(rows):
        return batch.slice(int(rows[0]) if rows.size else 0, len(rows))
    return batch.take(pa.array(rows))


def take_array(column: pa.Array, rows: Ints) -> pa.Array:
    """The same for one column."""
    if contiguous(rows):
        return column.slice(int(rows[0]) if rows.size else 0, len(rows))
    return column.take(pa.array(rows))


def _take_orders(orders: Orders, rows: Ints) -> Orders:
    if contiguous(rows):
        start = int(rows[0]) if rows.size else 0
        return orders[start : start + len(rows)]
    return orders[rows]


def contiguous(rows: Ints) -> bool:
    """
    >>> contiguous(np.array([4, 5, 6])), contiguous(np.array([4, 6, 6])), contiguous(np.array([], int))
    (True, False, True)
    """
    # The first test alone settles nearly all cases.
    return not rows.size or bool(rows[-1] - rows[0] == rows.size - 1 and (np.diff(rows) == 1).all())


def range_rows(starts: Ints, stops: Ints) -> Ints:
    """The row numbers in some ranges, one after the other.

    >>> range_rows(np.array([3, 7, 9]), np.array([5, 7, 10])).tolist()
    [3, 4, 9]
    """
    lengths = stops - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())
