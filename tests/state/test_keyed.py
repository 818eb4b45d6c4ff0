"""The keyed table against a dictionary, whatever the hash, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.state.doubles import MemoryStore, few_orders, one_order, rows

from trimtab.errors import StateError
from trimtab.state.keyed import Flushed, KeyedTable, StateSchema
from trimtab.state.keyhash import hash_keys
from trimtab.state.records import RunRef, SegmentId
from trimtab.state.runs import open_runs
from trimtab.state.segment import write_segment

SCHEMA = StateSchema(
    pa.schema([("n", pa.int32()), ("s", pa.string()), ("f", pa.float64())]),
    pa.schema([("order", pa.int64()), ("live", pa.list_(pa.string()))]),
    4,
    "model",
)
KEY = st.tuples(
    st.none() | st.integers(0, 2), st.none() | st.sampled_from(["", "a", "bb"]), st.sampled_from([None, 0.0, math.nan])
)
VALUE = st.tuples(st.none() | st.integers(0, 9), st.none() | st.lists(st.none() | st.just("x"), max_size=2))
STEP = st.one_of(
    st.tuples(st.just("put"), st.lists(st.tuples(KEY, VALUE), max_size=6)),
    st.tuples(st.just("delete"), st.lists(KEY, max_size=4)),
    st.tuples(st.just("get"), st.lists(KEY, max_size=5)),
    st.tuples(st.just("flush"), st.dictionaries(st.integers(0, 3), st.integers(0, 9))),
)
HASHERS = st.sampled_from([hash_keys, one_order, few_orders])


def key_table(keys: Sequence[tuple]) -> pa.Table:
    return pa.table([pa.array([key[i] for key in keys], SCHEMA.keys.field(i).type) for i in range(3)], SCHEMA.keys)


def full_table(pairs: Sequence[tuple[tuple, tuple]]) -> pa.Table:
    columns = [pa.array([value[i] for _, value in pairs], SCHEMA.values.field(i).type) for i in range(2)]
    return pa.table([*key_table([key for key, _ in pairs]).columns, *columns], SCHEMA.all)


def normal(key: tuple) -> tuple:
    """Equal where state says that keys are equal: not-a-number equals itself."""
    return tuple("nan" if isinstance(part, float) and math.isnan(part) else part for part in key)


class Chain:
    """One lane's table over a store: what a manifest would do, by hand and one slot at a time."""

    def __init__(self, hasher) -> None:
        self.store, self.hasher = MemoryStore(), hasher
        self.chains: dict[int, list[tuple[str, int, int, int]]] = {slot: [] for slot in range(SCHEMA.slots)}
        self.epoch = 0
        self.table = self.reopened()

    def flush(self, fold: dict[int, int]) -> None:
        flushed = self.table.flush(fold)
        if flushed is not None:
            record = write_segment(self.store, SegmentId(self.epoch, 0, 0, 0), flushed)
            ranges = zip(record.slots, record.offsets, record.offsets[1:], record.folded, strict=False)
            for slot, start, stop, folded in ranges:
                assert folded == min(fold.get(slot, 0), len(self.chains[slot]))
                new = [(record.name, start, stop, self.epoch)] if start < stop else []
                self.chains[slot] = new + self.chains[slot][folded:]
        self.epoch += 1
        self.table = self.reopened()

    def reopened(self) -> KeyedTable:
        segments: dict[tuple[int, str], list[tuple[int, int, int]]] = {}
        for slot, chain in self.chains.items():
            for name, start, stop, epoch in chain:
                segments.setdefault((-epoch, name), []).append((slot, start, stop))
        references = [
            RunRef(name, *map(list, zip(*sorted(ranges), strict=True)))
            for (_, name), ranges in sorted(segments.items())
        ]
        return KeyedTable(SCHEMA, open_runs(self.store, references, SCHEMA.slots), hasher=self.hasher)


def contents(table: KeyedTable) -> dict[tuple, tuple]:
    found = list(zip(*(column.to_pylist() for column in table.scan().columns), strict=True))
    result = {normal(row[:3]): row[3:] for row in found}
    assert len(result) == len(found)
    return result


@settings(max_examples=150, deadline=None)
@given(HASHERS, st.lists(STEP, max_size=14))
def test_table_behaves_like_a_dictionary(hasher, steps) -> None:
    chain = Chain(hasher)
    model: dict[tuple, tuple] = {}
    for step, argument in steps:
        if step == "put":
            chain.table.put(full_table(argument))
            model.update((normal(key), value) for key, value in argument)
        elif step == "delete":
            chain.table.delete(key_table(argument))
            for key in argument:
                model.pop(normal(key), None)
        elif step == "flush":
            chain.flush(argument)
        else:
            found = chain.table.get(key_table(argument)).to_pylist()
            wanted = [model.get(normal(key), (None, None)) for key in argument]
            assert [tuple(row.values()) for row in found] == wanted
            there = chain.table.contains(key_table(argument)).to_pylist()
            assert there == [normal(key) in model for key in argument]
        plain = {key: tuple(value) for key, value in model.items()}
        assert contents(chain.table) == plain
    chain.flush(dict.fromkeys(range(4), 99))
    assert contents(chain.table) == model
    assert sum(stop - start for ranges in chain.chains.values() for _, start, stop, _ in ranges) == len(model)


@settings(max_examples=100, deadline=None)
@given(HASHERS, st.lists(KEY, max_size=12))
def test_keys_bring_equal_keys_together_in_input_order(hasher, given_keys) -> None:
    keys = KeyedTable(SCHEMA, hasher=hasher).keys(key_table(given_keys))
    listed = [normal(row) for row in zip(*(column.to_pylist() for column in keys.table.columns), strict=True)]
    assert listed == [normal(given_keys[row]) for row in keys.permutation]
    assert keys.permutation[keys.inverse()].tolist() == list(range(len(given_keys)))
    assert (np.diff(keys.orders.astype(object)) >= 0).all()
    groups = np.cumsum(keys.starts).tolist()
    assert len(set(zip(groups, listed, strict=True))) == len(set(listed)) == len(set(groups))
    for group in set(groups):
        places = [row for row, member in zip(keys.permutation, groups, strict=True) if member == group]
        assert places == sorted(places)


def simple(slots: int = 4, owned: Sequence[int] | None = None) -> KeyedTable:
    schema = StateSchema(pa.schema([("k", pa.int64())]), pa.schema([("v", pa.int64())]), slots, "sums")
    return KeyedTable(schema, owned=owned)


def test_signed_zeros_are_one_key_and_so_are_all_not_a_numbers() -> None:
    schema = StateSchema(pa.schema([("f", pa.float64())]), pa.schema([("v", pa.int64())]), 4)
    for hasher in (hash_keys, one_order):
        table = KeyedTable(schema, hasher=hasher)
        table.put(pa.table({"f": [0.0, math.nan, -0.0, 1.0, -math.nan], "v": [1, 2, 3, 4, 5]}))
        assert table.get(pa.table({"f": [-0.0, 0.0, math.nan]}))["v"].to_pylist() == [3, 3, 5]


@pytest.mark.parametrize("hasher", [hash_keys, one_order])
def test_a_key_column_of_nothing_but_nulls_is_equal_in_every_row(hasher) -> None:
    schema = StateSchema(pa.schema([("k", pa.null()), ("n", pa.int64())]), pa.schema([("v", pa.int64())]), 4)
    table = KeyedTable(schema, hasher=hasher)
    table.put(pa.table({"k": pa.nulls(3), "n": [1, 2, 1], "v": [5, 6, 7]}))
    table.put(pa.table({"k": pa.nulls(1), "n": [2], "v": [8]}))
    assert table.get(pa.table({"k": pa.nulls(3), "n": [2, 3, 1]}))["v"].to_pylist() == [8, None, 7]


def test_lookup_and_store_work_on_sorted_keys() -> None:
    table = simple()
    keys = table.keys(pa.table({"k": [5, 3, 9]}))
    values, found = table.lookup(keys)
    assert values["v"].to_pylist() == [None] * 3
    assert not found.any()
    table.store(keys, pa.table({"v": keys.table["k"]}))
    values, found = table.lookup(keys)
    assert values["v"].to_pylist() == keys.table["k"].to_pylist()
    assert found.all()


def test_hashes_that_are_known_save_hashing() -> None:
    table = simple()
    column = pa.array([5, 3, 9])
    keys = table.keys(pa.table({"k": column}), hash_keys([column]))
    assert keys.orders.tolist() == table.keys(pa.table({"k": column})).orders.tolist()


def test_nothing_written_leaves_nothing() -> None:
    table = simple()
    assert table.flush() is None
    table.put(pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}))
    table.delete(pa.table({"k": [1]}))
    assert table.flush() is None
    table.put(rows({1: 1}))
    table.delete(pa.table({"k": [1]}))
    assert table.flush() is None
    assert table.scan().num_rows == 0


def test_state_without_value_columns_is_a_set() -> None:
    schema = StateSchema(pa.schema([("k", pa.int64())]), pa.schema([]), 4, "seen")
    table = KeyedTable(schema)
    table.put(pa.table({"k": [1, 2, 2]}))
    table.delete(pa.table({"k": [1]}))
    assert table.contains(pa.table({"k": [1, 2, 3]})).to_pylist() == [False, True, False]
    flushed = table.flush()
    assert flushed is not None
    assert flushed.table.column_names == ["order", "live", "k"]
    assert table.scan()["k"].to_pylist() == [2]


def flushed_with(keys: list[int], older: list[int], delete: list[int], depth: int) -> Flushed | None:
    """A slot with one older run, after some writes and a fold."""
    store = MemoryStore()
    first = simple(1)
    first.put(rows(dict.fromkeys(older, 1)))
    flushed = first.flush()
    assert flushed is not None
    record = write_segment(store, SegmentId(0, 0, 0, 0), flushed)
    reference = RunRef(record.name, record.slots, record.offsets[:-1], record.offsets[1:])
    table = KeyedTable(first.schema, open_runs(store, [reference], 1))
    table.put(rows(dict.fromkeys(keys, 2)))
    table.delete(pa.table({"k": pa.array(delete, pa.int64())}))
    return table.flush({0: depth})


def test_tombstones_stay_as_long_as_they_hide_something() -> None:
    kept = flushed_with([3], [1, 2], [1], depth=0)
    assert kept is not None
    assert sorted(kept.table["live"].to_pylist()) == [False, True]
    folded = flushed_with([3], [1, 2], [1], depth=1)
    assert folded is not None
    assert sorted(folded.table["k"].to_pylist()) == [2, 3]
    assert folded.folded.tolist() == [1]
    assert folded.fresh == 2


def test_a_fold_that_leaves_nothing_still_says_what_it_replaces() -> None:
    empty = flushed_with([], [1], [1], depth=5)
    assert empty is not None
    assert (empty.slots.tolist(), empty.offsets.tolist(), empty.folded.tolist()) == ([0], [0, 0], [1])
    assert empty.table.num_rows == 0


def test_a_slot_that_nobody_touched_can_be_folded() -> None:
    moved = flushed_with([], [1, 2], [], depth=1)
    assert moved is not None
    assert sorted(moved.table["k"].to_pylist()) == [1, 2]
    assert moved.fresh == 0


def test_folds_of_other_lanes_slots_are_ignored() -> None:
    assert simple(4, owned=[0]).flush({1: 3}) is None


def test_keys_of_other_lanes_are_refused() -> None:
    table = simple(4, owned=[])
    with pytest.raises(StateError, match=r"operator 'sums' asked for a key of slot \d, which another lane owns"):
        table.get(pa.table({"k": [1]}))


@pytest.mark.parametrize(
    ("given_rows", "message"),
    [
        ({"k": pa.array([1], pa.int32()), "v": [1]}, "column 'k' .* has type int64, but .* int32"),
        ({"k": [1], "v": ["one"]}, "column 'v' .* has type int64, but .* string"),
        ({"k": [1]}, "no columns 'v'"),
        ({"v": [1]}, "no columns 'k'"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_column(given_rows, message) -> None:
    with pytest.raises(StateError, match=message):
        simple().put(pa.table(given_rows))


def test_other_layouts_of_the_same_type_are_taken() -> None:
    schema = StateSchema(pa.schema([("k", pa.string())]), pa.schema([("v", pa.int64())]), 4)
    table = KeyedTable(schema)
    table.put(pa.table({"k": pa.array(["a", "b"], pa.large_string()), "v": pa.nulls(2)}))
    keys = pa.chunked_array([["a"], ["c"]]).dictionary_encode()
    assert table.contains(pa.table({"k": keys})).to_pylist() == [True, False]


def test_storing_a_key_twice_at_once_is_refused() -> None:
    table = simple()
    keys = table.keys(pa.table({"k": [1, 1]}))
    with pytest.raises(StateError, match="twice"):
        table.store(keys, pa.table({"v": [1, 2]}))
    with pytest.raises(StateError, match="3 rows of values for 1 keys"):
        table.store(keys.last(), pa.table({"v": [1, 2, 3]}))


def test_schemas_that_cannot_work_are_refused() -> None:
    number = pa.schema([("k", pa.int64())])
    with pytest.raises(StateError, match="two columns 'k'"):
        StateSchema(number, number, 4, "x")
    with pytest.raises(StateError, match="no key columns"):
        StateSchema(pa.schema([]), number, 4, "x")
    with pytest.raises(StateError, match="0 slots"):
        StateSchema(number, pa.schema([]), 0, "x")
