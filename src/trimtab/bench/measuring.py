"""`trimtab bench measuring`: what measuring costs an epoch.

In the tasks: packing and the work of two lanes, without Spark, with measuring as it is against the same with its parts
taken out, in turns. Where rows are combined they are counted as well; that happens inside groupings that are needed
anyway, so it is timed as one more column of them. In the driver: the steps `measure` and `control` of a run of the same
size.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from unittest.mock import patch

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from trimtab.bench.contenders import trimtab
from trimtab.bench.figures import Figure, figure
from trimtab.bench.skew.service import Totals, Waiting
from trimtab.bench.streams import Contender, bids, epoch_seconds
from trimtab.lane import pack as pack_module
from trimtab.lane import task as task_module
from trimtab.lane.aggregate import AggregateBody
from trimtab.lane.functions import resolve
from trimtab.lane.logic import LogicBody
from trimtab.lane.measures import SlotCounts
from trimtab.lane.pack import Packer
from trimtab.lane.packing import unpack_all
from trimtab.lane.program import Body, Leaf, Operator, Program, Source
from trimtab.lane.task import HopPlan, LaneTask, OperatorPlan
from trimtab.ports import SystemClock, chance
from trimtab.spark.run import Run
from trimtab.state.keyed import StateSchema
from trimtab.state.store import LocalStore
from trimtab.vocab import Routing, SlotMeasures

ROWS, KEYS, LANES, SLOTS = 500_000, 50_000, 2, 256
BUDGET = 0.03
BATCH = 100_000
"""Rows of a batch, as Spark hands them to Python."""
Counted = tuple[list[str], str]
"""A column for Arrow's groupings that counts rows."""
BIDS = pa.schema([("auction", pa.int64()), ("price", pa.int64())])
KEY = pa.schema([("auction", pa.int64())])


class TaskCost(msgspec.Struct, frozen=True):
    """Seconds of all tasks of an epoch together, with and without measuring, and what it adds to the epoch.

    Tasks run side by side, so the epoch gets longer by a lane's part of what they all spend.
    """

    measured: Figure
    unmeasured: Figure
    counting: Figure
    added: float


class MeasuringResult(msgspec.Struct, frozen=True):
    """`share` is of an epoch of the same rows and keys with an aggregate, `epoch` seconds long."""

    rows: int
    keys: int
    epoch: Figure
    tasks: dict[str, TaskCost]
    driver: dict[str, float]
    share: dict[str, float]
    holds: dict[str, bool]


def measuring(
    spark: SparkSession, rows: int, repetitions: int, epochs: int, progress: Callable[[str], None]
) -> MeasuringResult:
    """Measure tasks first, then a run."""
    keys = min(KEYS, rows // 10)
    tasks = {}
    for name, body in {"aggregate": aggregate(), "logic": logic()}.items():
        progress(f"{name}: {repetitions} times with and without")
        tasks[name] = task_cost(body, rows, keys, repetitions)
    progress(f"a run of {epochs} epochs")
    epoch, driver = run_cost(spark, rows, keys, epochs)
    added = sum(driver.values())
    share = {name: round((cost.added + added) / epoch.median, 4) for name, cost in tasks.items()}
    holds = {f"{name}: under {BUDGET:.0%} of the epoch": part < BUDGET for name, part in share.items()}
    return MeasuringResult(rows, keys, epoch, tasks, driver, share, holds)


def aggregate() -> Body:
    """A sum and a count."""
    kinds = {"total": "sum", "bids": "count"}
    return AggregateBody(KEY, tuple(resolve(kind, name, "price", pa.int64()) for name, kind in kinds.items()))


def logic() -> Body:
    """A sum by a user's own logic, which takes every row to its lane."""
    return LogicBody(Totals(Waiting(0)), pa.schema([("auction", pa.int64()), ("total", pa.int64())]))


def task_cost(body: Body, rows: int, keys: int, repetitions: int) -> TaskCost:
    """The cost of measuring in the tasks of an epoch."""
    batches = partitions(rows, keys)
    measured, unmeasured, counted = [], [], []
    folder = Path(tempfile.mkdtemp(prefix="trimtab-bench-"))
    try:
        for repetition in range(-1, repetitions):
            with without_measuring():
                bare = epoch_of_tasks(body, batches, folder / f"bare-{repetition}")
            full = epoch_of_tasks(body, batches, folder / f"full-{repetition}")
            if repetition >= 0:
                measured.append(full)
                unmeasured.append(bare)
                counted.append(counting(batches) if body.combines else 0.0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    differences = np.array(measured) - np.array(unmeasured) + np.array(counted)
    added = max(0.0, float(np.median(differences))) / LANES
    return TaskCost(figure([measured]), figure([unmeasured]), figure([counted]), round(added, 6))


@contextmanager
def without_measuring() -> Iterator[None]:
    """The tasks without what measures by slot: counting rows and work, hottest keys, sharing out time."""
    none = np.zeros(0, np.int64)
    uncounted = SlotCounts(none, none, none, none)
    with ExitStack() as stack:
        stack.enter_context(patch.object(SlotCounts, "of", lambda *arguments: uncounted))
        stack.enter_context(patch.object(pack_module, "hottest_keys", lambda *arguments: ()))
        stack.enter_context(patch.object(task_module, "slot_measures", lambda number, *others: SlotMeasures(number)))
        yield


def partitions(rows: int, keys: int, seed: int = 1) -> list[list[pa.RecordBatch]]:
    """Two partitions of bids in batches."""
    random = chance(seed)
    table = pa.table([random.integers(0, keys, rows), np.arange(rows) % 100], schema=BIDS)
    half = rows // 2
    return [part.to_batches(BATCH) for part in (table.slice(0, half), table.slice(half))]


def epoch_of_tasks(body: Body, batches: list[list[pa.RecordBatch]], folder: Path) -> float:
    """Seconds of every task of an epoch, one after the other: packing, then lanes, with their reports as bytes."""
    folder.mkdir()
    values = body.values if isinstance(body, AggregateBody) else pa.schema([("total", pa.int64())])
    operator = Operator("totals", SLOTS, ("auction",), StateSchema(KEY, values, SLOTS, "totals"), body)
    flow = Program("measuring", (Source("bids", BIDS, (), 0),), (operator,), (Leaf(0, (), body.output),), str(folder))
    routing = Routing.spread(LANES, [SLOTS])
    plan = HopPlan(0, 0, routing, 0, 1, [OperatorPlan([], {})])
    clock = SystemClock()
    start = clock.monotonic()
    payloads: list[list[bytes]] = [[] for _ in range(LANES)]
    for number, part in enumerate(batches):
        for lane, payload in Packer(flow, 0, np.asarray(routing.slots[0]), 0, number).payloads(part):
            payloads[lane].append(payload)
    for lane, arrived in enumerate(payloads):
        batch = pa.record_batch([pa.array(arrived, pa.binary())], names=["payload"])
        report, _ = LaneTask(flow, plan, lane, LocalStore(str(folder)), clock).run(unpack_all([batch], "payload"))
        msgspec.msgpack.encode(report)
    return clock.monotonic() - start


def counting(batches: list[list[pa.RecordBatch]]) -> float:
    """Seconds that counting rows adds to grouping by key, once in each partition and once for all on the lanes."""
    clock, spent = SystemClock(), []
    ways: list[list[Counted]] = [[], [([], "count_all")]]
    for more in ways:
        start = clock.monotonic()
        parts = [by_key(pa.Table.from_batches(part), more) for part in batches]
        by_key(pa.concat_tables(parts), more)
        spent.append(clock.monotonic() - start)
    return spent[1] - spent[0]


def by_key(rows: pa.Table, more: list[Counted]) -> pa.Table:
    """The sum of every key, with more columns if they are wanted."""
    grouped = rows.group_by("auction", use_threads=False).aggregate([("price", "sum"), *more])
    return grouped.rename_columns(["auction", "price", *("count" for _ in more)])


def run_cost(spark: SparkSession, rows: int, keys: int, epochs: int) -> tuple[Figure, dict[str, float]]:
    """Seconds of an epoch of a run, and of its steps in the driver that measure and hand on."""
    runs: list[Run] = []
    contender = Contender("trimtab", trimtab(LANES, SLOTS, runs.append), epochs=epochs)
    seconds = epoch_seconds(spark, bids(spark, keys, rows, LANES), contender)
    timings = list(runs[0].timings)[contender.warmup :]
    steps = {step: round(median(timing[step] for timing in timings), 6) for step in ("measure", "control")}
    return figure([seconds]), steps
