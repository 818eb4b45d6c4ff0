"""The order of state: by slot, then by key hash, both in one unsigned number.

`order = slot << (64 - b) | hash >> b`, where b bits hold every slot. One binary search over a whole segment so serves
all its slots, and a slot is one contiguous range. Part of the checkpoint format.

Distinct keys may share an order. Whatever looks keys up or merges them therefore compares the keys themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

RUNS = 16
"""Up to so many ascending runs, one behind the other, a stable sort is a merge and the fastest there is."""

Orders = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def slot_bits(slots: int) -> int:
    """
    >>> [slot_bits(slots) for slots in (1, 2, 3, 256, 257)]
    [0, 1, 2, 8, 9]
    """
    return (slots - 1).bit_length()


def orders_of(hashes: Ints, slot: npt.NDArray[np.integer], slots: int) -> Orders:
    """Sort keys of rows from their hashes and slots.

    >>> [hex(order) for order in orders_of(np.array([-1, 0x10]), np.array([1, 0]), 2).tolist()]
    ['0xffffffffffffffff', '0x8']
    """
    bits = slot_bits(slots)
    unsigned = hashes.view(np.uint64)
    if bits == 0:
        return unsigned
    return (slot.astype(np.uint64) << np.uint64(64 - bits)) | (unsigned >> np.uint64(bits))


def slots_in(orders: Orders, slots: int) -> Ints:
    """The slots of rows from their sort keys."""
    bits = slot_bits(slots)
    if bits == 0:
        return np.zeros(len(orders), np.int64)
    return (orders >> np.uint64(64 - bits)).astype(np.int64)


def slot_starts(orders: Orders, wanted: Ints, slots: int) -> Ints:
    """The first row of each wanted slot in ascending orders, or where it would be."""
    bits = slot_bits(slots)
    if bits == 0:
        return np.zeros(len(wanted), np.int64)
    return np.searchsorted(orders, wanted.astype(np.uint64) << np.uint64(64 - bits)).astype(np.int64)


def arrange(columns: Sequence[pa.Array], orders: Orders) -> tuple[Ints | None, Flags]:
    """How to bring rows of keys into order, and where in that order each distinct key begins.

    Equal keys end up next to each other, in the order they came in. None when the rows already are so.
    """
    permutation, orders = _sorted(orders)
    starts = np.ones(len(orders), np.bool_)
    tied = np.flatnonzero(orders[1:] == orders[:-1]) + 1
    if tied.size:
        involved = ~starts
        involved[tied] = involved[tied - 1] = True
        rows = np.flatnonzero(involved)
        taken = [_take(column, rows if permutation is None else permutation[rows]) for column in columns]
        above = np.cumsum(involved)[tied] - 1
        equal = np.logical_and.reduce([same(_take(each, above), _take(each, above - 1)) for each in taken])
        if equal.all():
            starts[tied] = False
        else:
            permutation, starts[rows] = _separate(taken, orders, rows, permutation)
    return permutation, starts


def _sorted(orders: Orders) -> tuple[Ints | None, Orders]:
    """A stable permutation into ascending order, None when there is nothing to do."""
    descents = np.count_nonzero(orders[1:] < orders[:-1])
    if not descents:
        return None, orders
    if descents <= RUNS:
        permutation = np.argsort(orders, kind="stable")
        return permutation, orders[permutation]
    # numpy's unstable sort is five times as fast; rows that tie, mostly none, are put right afterwards.
    permutation = np.argsort(orders)
    ordered = orders[permutation]
    if (ordered[1:] == ordered[:-1]).any():
        permutation = np.argsort(orders, kind="stable")
    return permutation, ordered


def _separate(columns: Sequence[pa.Array], orders: Orders, rows: Ints, permutation: Ints | None) -> tuple[Ints, Flags]:
    """Hashes collide among these rows: sort them by key below the order. Returns the permutation and their starts."""
    keys = _identities(columns)
    finer = np.lexsort((keys, orders[rows]))
    permutation = np.arange(len(orders)) if permutation is None else permutation
    permutation[rows] = permutation[rows[finer]]
    keys, ordered = keys[finer], orders[rows]
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = (keys[1:] != keys[:-1]) | (ordered[1:] != ordered[:-1])
    return permutation, starts


def _identities(columns: Sequence[pa.Array]) -> Ints:
    """A number per row, equal for equal keys only."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if pa.types.is_floating(column.type):
            # A dictionary would tell zeros by their sign, which adding zero removes, and not-a-numbers by their bits.
            column = pc.add(column, pa.scalar(0.0, column.type))
            column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
        codes = column.dictionary_encode(null_encoding="encode").indices.to_numpy()
        numbers = np.unique(numbers * (codes.max() + 1) + codes, return_inverse=True)[1]
    return numbers


def same(left: pa.Array, right: pa.Array) -> Flags:
    """Row by row whether two key columns are equal as Spark groups them: nulls are, NaNs are, zeros of any sign are."""
    if pa.types.is_null(left.type):
        return np.ones(len(left), np.bool_)
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    if left.null_count or right.null_count:
        equal = pc.or_(equal.fill_null(False), pc.and_(left.is_null(), right.is_null()))
    return np.asarray(equal.to_numpy(zero_copy_only=False), np.bool_)


def _take(column: pa.Array, rows: Ints) -> pa.Array:
    return column.take(pa.array(rows))
