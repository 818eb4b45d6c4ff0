"""Packing and the work of a lane, without Spark: the same whatever order payloads arrive in, however rows are cut."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from trimtab.errors import DamagedError, LogicError
from trimtab.flow.logic import Logic
from trimtab.lane.aggregate import AggregateBody
from trimtab.lane.context import Context
from trimtab.lane.functions import resolve
from trimtab.lane.logic import KeyedState, LogicBody
from trimtab.lane.pack import CHUNK_BYTES, Packer
from trimtab.lane.packing import unpack, unpack_all
from trimtab.lane.program import Body, Leaf, Operator, Program, Source, Step
from trimtab.lane.task import HopPlan, LaneReport, LaneTask, OperatorPlan
from trimtab.lane.user_code import user_code
from trimtab.ports import SystemClock
from trimtab.state.keyed import StateSchema
from trimtab.state.store import LocalStore
from trimtab.vocab import Routing

ROWS = pa.schema([("key", pa.string()), ("value", pa.float64()), ("moment", pa.timestamp("us", "UTC"))])
ROWS_OF_LONGS = pa.schema([("key", pa.string()), ("value", pa.int64())])
KEYS = pa.schema([("key", pa.string())])
SLOTS = 8
LANES = 3


class Numbered(Logic):
    """Every row gets its number within its key: depends on nothing but the order of a key's rows."""

    state = ""
    output = ""

    def on_rows(self, rows: pa.Table, state: KeyedState, ctx: Context) -> pa.Table:
        numbers = dict(zip(*(state.scan()[name].to_pylist() for name in ("key", "rows")), strict=True))
        mine = []
        for key in rows["key"].to_pylist():
            numbers[key] = numbers.get(key, 0) + 1
            mine.append(numbers[key])
        state.put(pa.table({"key": pa.array(list(numbers), pa.string()), "rows": list(numbers.values())}))
        return pa.table({"key": rows["key"], "value": rows["value"], "number": mine})


def program(body: Body, values: pa.Schema, store: Path, steps: tuple[Step, ...] = ()) -> Program:
    operator = Operator("by", SLOTS, ("key",), StateSchema(KEYS, values, SLOTS, "by"), body)
    source = Source("source", ROWS, steps, 0, "moment", 0)
    return Program("flow", (source,), (operator,), (Leaf(0, (), body.output),), str(store))


def aggregates(store: Path) -> Program:
    kinds = ("sum", "count", "first", "last", "mean")
    body = AggregateBody(KEYS, tuple(resolve(kind, kind, "value", pa.float64()) for kind in kinds))
    return program(body, body.values, store)


def numbered(store: Path, rows_per_call: int) -> Program:
    output = pa.schema([("key", pa.string()), ("value", pa.float64()), ("number", pa.int64())])
    body = LogicBody(Numbered(), output, rows_per_call=rows_per_call)
    return program(body, pa.schema([("rows", pa.int64())]), store)


def partitions(seed: int) -> list[list[pa.RecordBatch]]:
    """Three partitions of some batches each."""
    chance = np.random.default_rng(seed)

    def batch(number: int) -> pa.RecordBatch:
        keys = [f"key {each}" if each else None for each in chance.integers(0, 12, 40)]
        moments = pa.array(chance.integers(0, 10**9, 40), pa.int64()).cast(pa.timestamp("us", "UTC"))
        return pa.record_batch([pa.array(keys, pa.string()), pa.array(chance.normal(size=40)), moments], schema=ROWS)

    return [[batch(number) for number in range(4)] for _ in range(3)]


def run(
    flow: Program, rows: list[list[pa.RecordBatch]], shuffle: int = 0, chunk_bytes: int = CHUNK_BYTES
) -> list[tuple[LaneReport, pa.Table]]:
    """Pack the partitions and run every lane; payloads arrive in an order of chance."""
    routing = Routing.spread(LANES, [SLOTS])
    to_lanes: list[list[bytes]] = [[] for _ in range(LANES)]
    for number, batches in enumerate(rows):
        packer = Packer(flow, 0, np.asarray(routing.slots[0]), 0, number, chunk_bytes)
        for lane, payload in packer.payloads(iter(batches)):
            to_lanes[lane].append(payload)
    plan = HopPlan(0, 0, routing, 0, 1, [OperatorPlan([], {})])
    results = []
    for lane, payloads in enumerate(to_lanes):
        random.Random(shuffle).shuffle(payloads)
        arrived = [pa.record_batch([pa.array(payloads, pa.binary())], names=["payload"])]
        task = LaneTask(flow, plan, lane, LocalStore(flow.store), SystemClock())
        report, leaves = task.run(unpack_all(arrived, "payload"))
        results.append((report, leaves[0]))
    return results


@pytest.mark.parametrize("shuffle", range(5))
def test_the_order_of_arrival_changes_not_a_byte(tmp_path: Path, shuffle: int) -> None:
    flow = aggregates(tmp_path)
    once, again = run(flow, partitions(1)), run(flow, partitions(1), shuffle)
    assert [report.segments for report, _ in again] == [report.segments for report, _ in once]
    assert all(mine.equals(other) for (_, mine), (_, other) in zip(once, again, strict=True))


@pytest.mark.parametrize("chunk_bytes", [1, 1500, 10_000])
@pytest.mark.parametrize("rows_per_call", [1, 7, 1000])
def test_rows_of_a_key_keep_their_order_however_they_are_cut(
    tmp_path: Path, chunk_bytes: int, rows_per_call: int
) -> None:
    rows = partitions(2)
    output = pa.concat_tables([table for _, table in run(numbered(tmp_path, rows_per_call), rows, 3, chunk_bytes)])
    expected: dict[str | None, list[float]] = {}
    for batch in (batch for batches in rows for batch in batches):
        for key, value in zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True):
            expected.setdefault(key, []).append(value)
    numbered_rows: dict[str | None, list[float]] = {}
    for row in output.to_pylist():
        mine = numbered_rows.setdefault(row["key"], [])
        assert row["number"] == len(mine) + 1
        mine.append(row["value"])
    assert numbered_rows == expected


def test_reports_count_rows_once_and_carry_the_latest_event_time(tmp_path: Path) -> None:
    rows = partitions(3)
    reports = [report for report, _ in run(aggregates(tmp_path), rows)]
    assert sum(report.measure.rows for report in reports) == 3 * 4 * 40
    moments = [batch["moment"].cast(pa.int64()).to_pylist() for batches in rows for batch in batches]
    assert max(report.latest["source"] for report in reports) == max(map(max, moments))


def test_event_time_passes_even_if_a_step_drops_all_rows(tmp_path: Path) -> None:
    none = Step("none", lambda rows: rows.slice(0, 0), ROWS)
    body = AggregateBody(KEYS, (resolve("count", "n", "", pa.int64()),))
    reports = [report for report, _ in run(program(body, body.values, tmp_path, (none,)), partitions(4))]
    assert [report.latest for report in reports if report.latest]
    assert not any(report.segments for report in reports)


def test_a_sum_that_outgrows_its_type_at_the_source_says_where(tmp_path: Path) -> None:
    body = AggregateBody(KEYS, (resolve("sum", "total", "value", pa.int64()),))
    large = Step("large", lambda rows: pa.table({"key": ["a", "a"], "value": [2**62, 2**62]}), ROWS_OF_LONGS)
    flow = program(body, body.values, tmp_path, (large,))
    with pytest.raises(LogicError, match=r"^Flow 'flow', operator 'by', epoch 0: The aggregate 'total' is too large"):
        run(flow, partitions(5))


class Calls(Logic):
    """Tells how often it has been called, as far as it knows, and what the watermark is."""

    state = ""
    output = ""
    calls = 0

    def on_rows(self, rows: pa.Table, state: KeyedState, ctx: Context) -> pa.Table:
        self.calls += 1
        return pa.table({"calls": [self.calls], "year": [0 if ctx.watermark is None else ctx.watermark.year]})

    def on_watermark(self, watermark: object, state: KeyedState, ctx: Context) -> pa.Table:
        return self.on_rows(pa.table({}), state, ctx)


def calls(store: Path, watermark: int | None = None) -> tuple[Program, LaneTask]:
    output = pa.schema([("calls", pa.int64()), ("year", pa.int64())])
    flow = program(LogicBody(Calls(), output), pa.schema([("rows", pa.int64())]), store)
    plan = HopPlan(0, 0, Routing.spread(1, [SLOTS]), 0, 1, [OperatorPlan([], {}, watermark, watermark is not None)])
    return flow, LaneTask(flow, plan, 0, LocalStore(str(store)), SystemClock())


def test_what_logic_sets_on_itself_is_gone_in_the_next_task(tmp_path: Path) -> None:
    flow, task = calls(tmp_path)
    packer = Packer(flow, 0, np.zeros(SLOTS, np.int64), 0, 0)
    payloads = [unpack(pa.py_buffer(payload)) for _, payload in packer.payloads(partitions(6)[0])]
    assert [task.run(payloads)[1][0]["calls"].to_pylist() for _ in range(3)] == [[1], [1], [1]]


@pytest.mark.parametrize(("watermark", "year"), [(2**62, 9999), (-(2**62), 1), (0, 1970)])
def test_a_watermark_beyond_pythons_years_is_the_last_of_them(tmp_path: Path, watermark: int, year: int) -> None:
    _, task = calls(tmp_path, watermark)
    _, [rows] = task.run([])
    assert rows.to_pylist() == [{"calls": 1, "year": year}]


def test_to_exit_in_user_code_is_an_error_like_any_other() -> None:
    with pytest.raises(LogicError, match=r"(?s)^Traceback.*SystemExit: 3\nhere$"), user_code("here"):
        sys.exit(3)
    with pytest.raises(KeyboardInterrupt), user_code("here"):
        raise KeyboardInterrupt


def test_a_payload_without_its_header_is_refused() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ROWS) as writer:
        writer.write_table(ROWS.empty_table())
    with pytest.raises(DamagedError, match="without its header"):
        unpack(sink.getvalue())
