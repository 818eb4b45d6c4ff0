"""Aggregates equal a plain computation, however the rows are split into chunks, partitions and epochs."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import datetime, timezone
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import FlowError, LogicError
from trimtab.lane.aggregate import AggregateBody
from trimtab.lane.context import EPOCH_START, Context
from trimtab.lane.functions import resolve
from trimtab.state.keyed import KeyedTable, StateSchema
from trimtab.state.runs import Run

CONTEXT = Context("flow", "operator", 0, 0, EPOCH_START, seed=0)
KINDS = ("sum", "count", "min", "max", "mean", "first", "last")
INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2050, 1, 1)).map(lambda each: each.replace(tzinfo=timezone.utc))
CENTS = st.integers(-(10**9), 10**9).map(lambda cents: Decimal(cents) / 100)
VALUES = {
    "long": (pa.int64(), st.integers(-(10**9), 10**9)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "double": (pa.float64(), st.integers(-1000, 1000).map(lambda whole: whole / 4)),
    "decimal": (pa.decimal128(12, 2), CENTS),
    "decimal of 28": (pa.decimal128(28, 2), CENTS),
    "decimal of 38": (pa.decimal128(38, 2), CENTS),
    "string": (pa.string(), st.text(max_size=4)),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "instant": (pa.timestamp("us", "UTC"), INSTANTS),
}


def body_of(kinds: dict[str, str], read: pa.DataType) -> AggregateBody:
    functions = tuple(resolve(kind, name, "v", read) for name, kind in kinds.items())
    return AggregateBody(pa.schema([("k", pa.int64())]), functions)


def over_epochs(body: AggregateBody, epochs: list[list[pa.Table]]) -> dict[Any, tuple[Any, ...]]:
    """Each epoch's chunks are prepared apart, then merged into one state; the last output row of a key counts."""
    runs: list[Run] = []
    latest: dict[Any, tuple[Any, ...]] = {}
    for chunks in epochs:
        state = KeyedTable(StateSchema(body.keys, body.values, 4), runs)
        output = body.run(pa.concat_tables([body.prepare(chunk)[0] for chunk in chunks]), state, CONTEXT)
        assert output is not None and output.schema == body.output
        for row in output.to_pylist():
            key = row.pop("k")
            latest[key] = tuple(row.values())
        flushed = state.flush()
        assert flushed is not None
        runs.insert(0, Run(lambda rows=flushed.rows: rows))  # type: ignore[misc]
    return latest


def expected(kind: str, values: list[Any]) -> Any:
    there = [value for value in values if value is not None]
    if kind == "count":
        return len(there)
    if kind in ("first", "last"):
        return values[0 if kind == "first" else -1]
    if not there:
        return None
    if kind == "mean":
        return mean(there)
    return {"sum": sum, "min": min, "max": max}[kind](there)  # type: ignore[operator]


def mean(values: list[Any]) -> Any:
    if isinstance(values[0], Decimal):
        return (sum(values) / len(values)).quantize(Decimal("0.000001"), ROUND_HALF_UP)
    return sum(map(float, values)) / len(values)


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, list[list[list[tuple[int, Any]]]]]:
    kind = draw(st.sampled_from(sorted(VALUES)))
    row = st.tuples(st.integers(0, 3), st.none() | VALUES[kind][1])
    return kind, draw(
        st.lists(st.lists(st.lists(row, min_size=1, max_size=6), min_size=1, max_size=3), min_size=1, max_size=4)
    )


@settings(deadline=None)
@given(histories())
def test_every_function_equals_a_plain_computation(history: tuple[str, list[list[list[tuple[int, Any]]]]]) -> None:
    name, epochs = history
    read = VALUES[name][0]
    summable = name.split()[0] in ("long", "int", "double", "decimal")
    kinds = {kind: kind for kind in KINDS if summable or kind not in ("sum", "mean")}
    tables = [
        [pa.table({"k": [key for key, _ in chunk], "v": pa.array([v for _, v in chunk], read)}) for chunk in chunks]
        for chunks in epochs
    ]
    values = defaultdict(list)
    for chunks in epochs:
        for chunk in chunks:
            for key, value in chunk:
                values[key].append(value)
    result = over_epochs(body_of(kinds, read), tables)
    assert result == {key: tuple(expected(kind, each) for kind in kinds) for key, each in values.items()}


def test_floats_order_as_in_spark_with_nan_above_everything() -> None:
    body = body_of({"least": "min", "greatest": "max"}, pa.float64())
    nan, infinity = math.nan, math.inf
    first = pa.table(
        {"k": [1, 1, 2, 3], "v": [nan, 2.0, nan, None]}, schema=pa.schema([("k", "int64"), ("v", "float64")])
    )
    second = pa.table({"k": [1, 2, 3], "v": [-infinity, nan, infinity]})
    result = over_epochs(body, [[first], [second]])
    assert result[1][0] == -infinity and math.isnan(result[1][1])
    assert all(math.isnan(value) for value in result[2])
    assert result[3] == (infinity, infinity)


def test_a_sum_that_does_not_fit_is_an_error_and_never_wraps_around() -> None:
    body = body_of({"total": "sum"}, pa.int64())
    large = pa.table({"k": [1, 1], "v": [2**62, 2**62]})
    with pytest.raises(LogicError, match="'total' is too large"):
        over_epochs(body, [[large]])
    half = pa.table({"k": [1], "v": [2**62]})
    with pytest.raises(LogicError, match="'total' is too large"):
        over_epochs(body, [[half], [half]])


@pytest.mark.parametrize("scale", [0, 2, 28])
@pytest.mark.parametrize("precision", [28, 38])
def test_decimals_of_many_digits_add_up_from_epoch_to_epoch(precision: int, scale: int) -> None:
    read = pa.decimal128(precision, scale)
    one = Decimal(1).scaleb(-scale)
    table = pa.table({"k": [1, 2, 1], "v": pa.array([one, one, None], read)})
    result = over_epochs(body_of({"total": "sum", "average": "mean"}, read), [[table], [table, table], [table]])
    assert result == {1: (4 * one, one), 2: (4 * one, one)}


@pytest.mark.parametrize("kind", ["sum", "mean"])
@pytest.mark.parametrize("value", ["9e37", "6e37", "-9e37"])
def test_a_sum_of_decimals_that_does_not_fit_is_an_error_and_never_wraps_around(kind: str, value: str) -> None:
    """Twice 9e37 is above what 128 bits hold, twice 6e37 just above what 38 digits do."""
    wide = pa.decimal128(38, 0)
    body = body_of({"total": kind}, wide)
    both, one = (pa.table({"k": [1] * n, "v": pa.array([Decimal(value)] * n, wide)}) for n in (2, 1))
    for epochs in ([[both]], [[one, one]]):
        with pytest.raises(LogicError, match="'total' is too large for decimal128"):
            over_epochs(body, epochs)


def test_the_greatest_decimal_is_no_error() -> None:
    greatest = Decimal("9" * 36 + ".99")
    table = pa.table({"k": [1, 1], "v": pa.array([greatest, None], pa.decimal128(38, 2))})
    assert over_epochs(body_of({"total": "sum"}, pa.decimal128(38, 2)), [[table], [table.slice(1)]]) == {1: (greatest,)}


def test_a_sum_that_outgrows_its_type_on_a_lane_says_where() -> None:
    half = pa.table({"k": [1], "v": [2**62]})
    body = body_of({"total": "sum"}, pa.int64())
    with pytest.raises(LogicError, match=r"^Flow 'flow', operator 'operator', epoch 0, lane 0: The aggregate 'total'"):
        over_epochs(body, [[half], [half]])


def test_large_values_that_cancel_out_are_summed_exactly() -> None:
    table = pa.table({"k": [1, 1, 1], "v": [2**62, 2**62, -(2**62)]})
    assert over_epochs(body_of({"total": "sum"}, pa.int64()), [[table]]) == {1: (2**62,)}
    wide = pa.table({"k": [1, 1, 1], "v": pa.array([9 * 10**37, 9 * 10**37, -9 * 10**37], pa.decimal128(38, 0))})
    assert over_epochs(body_of({"total": "sum"}, pa.decimal128(38, 0)), [[wide]]) == {1: (9 * 10**37,)}


@pytest.mark.parametrize("name", ["", ".x", "[0]", "a.b", "a`b", "*"])
def test_columns_may_have_any_name(name: str) -> None:
    functions = (resolve("sum", name, "v", pa.int64()), resolve("mean", f"{name}.", "v", pa.int64()))
    body = AggregateBody(pa.schema([("k", pa.int64())]), (*functions, resolve("last", "..", "v", pa.int64())))
    table = pa.table({"k": [1, 1], "v": [2, 4]})
    assert over_epochs(body, [[table], [table]]) == {1: (12, 3.0, 4)}


def test_a_key_that_is_nothing_but_null_is_one_key() -> None:
    body = AggregateBody(pa.schema([("k", pa.null())]), (resolve("sum", "total", "v", pa.int64()),))
    table = pa.table({"k": pa.nulls(3), "v": [1, 2, 4]})
    assert over_epochs(body, [[table], [table, table]]) == {None: (21,)}


def test_counting_rows_needs_no_column() -> None:
    body = AggregateBody(pa.schema([("k", pa.int64())]), (resolve("count", "rows", "", pa.int64()),))
    table = pa.table({"k": [1, None, None, 1, 1]})
    assert over_epochs(body, [[table], [table]]) == {1: (6,), None: (4,)}


def test_the_order_of_output_and_the_last_digit_of_sums_repeat() -> None:
    body = body_of({"total": "sum"}, pa.float64())
    table = pa.table({"k": list(range(500)) * 20, "v": [1 / (1 + row % 977) for row in range(10_000)]})
    once, _ = body.prepare(table)
    assert all(body.prepare(table)[0].equals(once) for _ in range(5))


def test_functions_that_make_no_sense_of_a_type_are_refused_by_name() -> None:
    with pytest.raises(FlowError, match="'total' asks for the sum of column 'v', which has type string"):
        resolve("sum", "total", "v", pa.string())
    with pytest.raises(FlowError, match="'least' asks for the min of column 'v'"):
        resolve("min", "least", "v", pa.list_(pa.int64()))
    with pytest.raises(FlowError, match="'greatest' asks for the max of column 'v', which has type duration"):
        resolve("max", "greatest", "v", pa.duration("us"))
