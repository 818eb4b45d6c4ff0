"""The two functions that Spark's Python workers run: packing at the source, and the work of a lane."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
import pyarrow as pa
import xxhash
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.cloudpickle import loads
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from trimtab.lane.pack import Packer
from trimtab.lane.packing import unpack_all
from trimtab.lane.program import Program
from trimtab.lane.task import HopPlan, LaneReport, LaneTask
from trimtab.ports import SystemClock
from trimtab.spark.failures import marked
from trimtab.state.store import open_store
from trimtab.vocab import LaneId

PACKED_SCHEMA = StructType([StructField("task", IntegerType()), StructField("payload", BinaryType())])
OUTPUT_ROWS = 64 * 1024
BATCH = pa.schema([("task", pa.int32()), ("payload", pa.binary())])

Reports = dict[tuple[int, int, int], bytes]
"""Encoded lane reports by (epoch, hop, lane): a task that ran twice says the same twice."""


class ReportsParam(AccumulatorParam[Reports]):
    """Lane reports come back to the driver through an accumulator: result tasks count once."""

    def zero(self, value: Reports) -> Reports:
        return {}

    def addInPlace(self, value1: Reports, value2: Reports) -> Reports:  # noqa: N802 - Spark's name
        return {**value1, **value2}


@dataclass(frozen=True)
class PackTask:
    """Packs a partition of a source."""

    program: bytes
    source: int
    routing: tuple[LaneId, ...]
    running: tuple[LaneId, ...]
    epoch: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        routing = np.asarray(self.routing, dtype=np.int32)
        packer = Packer(program_of(self.program), self.source, routing, self.epoch, partition())
        with marked():
            for lane, payload in packer.payloads(batches):
                task = self.running.index(lane)
                yield pa.record_batch([pa.array([task], pa.int32()), pa.array([payload], pa.binary())], schema=BATCH)
        settle_worker("pack")


@dataclass(frozen=True)
class HopTask:
    """Runs the lane whose task this is. Emits the leaf's rows, or one struct per leaf where there are several."""

    program: bytes
    plan: bytes
    reports: Accumulator[Reports]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        program = program_of(self.program)
        plan = msgspec.msgpack.decode(self.plan, type=HopPlan)
        lane = plan.routing.running[partition()]
        with marked():
            task = LaneTask(program, plan, lane, open_store(program.store), SystemClock(), executor())
            report, leaves = task.run(unpack_all(batches, "payload"))
        self.reports.add({(plan.epoch, plan.hop, lane): msgspec.msgpack.encode(report)})
        yield from leaves[0].to_batches(OUTPUT_ROWS) if len(leaves) == 1 else as_structs(leaves)
        settle_worker("lane")


def as_structs(leaves: list[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Rows of several leaves in one schema: leaf i's rows in column i, null in the others."""
    names = [f"leaf{place}" for place in range(len(leaves))]
    for place, leaf in enumerate(leaves):
        for batch in leaf.to_batches(OUTPUT_ROWS):
            columns = [pa.nulls(batch.num_rows, pa.struct(list(other.schema))) for other in leaves]
            columns[place] = batch.to_struct_array()
            yield pa.record_batch(columns, names=names)


def decode_reports(reports: Reports) -> list[LaneReport]:
    """The reports of a hop in the order of their lanes."""
    return [msgspec.msgpack.decode(reports[key], type=LaneReport) for key in sorted(reports)]


@lru_cache(maxsize=8)
def program_of(pickled: bytes) -> Program:
    """The program of a run. It travels with every task, and a worker unpickles it once."""
    program = loads(pickled)
    assert isinstance(program, Program)
    return program


def partition() -> int:
    """The number of this task's partition."""
    context = TaskContext.get()
    assert context is not None, "only Spark's tasks call this"
    return int(context.partitionId())


@lru_cache(maxsize=1)
def executor() -> str:
    """A short name of the executor that this worker belongs to: workers of one executor share its folders."""
    folders = os.environ.get("SPARK_EXECUTOR_DIRS") or os.environ.get("SPARK_LOCAL_DIRS") or ""
    return xxhash.xxh32_hexdigest(folders.encode())


_settled: set[str] = set()


def settle_worker(kind: str) -> None:
    """Take what this worker has imported so far out of the garbage collector's sight, once per kind of task.

    Spark's worker collects garbage after every task, which takes 40 to 60 ms with Arrow and NumPy loaded, and the next
    task waits for it. Frozen objects are not looked at. Called at the end of a task, when its imports are done.
    """
    if kind not in _settled:
        gc.collect()
        gc.freeze()
        _settled.add(kind)
