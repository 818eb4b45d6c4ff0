"""The way from a source to the lanes: steps before the key, combining, slots, lanes, payloads.

This runs where the source's rows are, before the shuffle, on chunks of bounded size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trimtab.lane.hottest import hottest_keys
from trimtab.lane.measures import SlotCounts
from trimtab.lane.packing import Header, pack
from trimtab.lane.program import Program, Source, Step
from trimtab.lane.user_code import conform, placed, user_code
from trimtab.state.keyhash import hash_keys, slot_of
from trimtab.vocab import LaneId

CHUNK_BYTES = 32 << 20


@dataclass(frozen=True)
class Packer:
    """Packs one partition of one source in one epoch. `routing` is the lane of each slot of the source's operator."""

    program: Program
    source: int
    routing: np.ndarray
    epoch: int
    partition: int
    chunk_bytes: int = CHUNK_BYTES

    @cached_property
    def lanes(self) -> int:
        """How many lanes have slots of the operator."""
        return len(np.unique(self.routing))

    def payloads(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[LaneId, bytes]]:
        """Payloads by destination, at most one per lane and chunk."""
        source = self.program.sources[self.source]
        for chunk, rows in enumerate(chunks(batches, self.chunk_bytes)):
            # By place: Spark may have the columns under other names.
            table = rows.rename_columns(source.schema.names).cast(source.schema)
            latest = latest_time(table, source.event_time)
            for step in source.steps:
                table = run_step(step, table, f"Flow '{self.program.flow}', epoch {self.epoch}.")
            if table.num_rows or latest is not None:
                yield from self._by_lane(source, table, chunk, latest)

    def _by_lane(
        self, source: Source, rows: pa.Table, chunk: int, latest: int | None
    ) -> Iterator[tuple[LaneId, bytes]]:
        operator = self.program.operators[source.operator]
        with placed(f"Flow '{self.program.flow}', operator '{operator.name}', epoch {self.epoch}"):
            packed, counts = operator.body.prepare(canonical(rows, operator.keys))
        hashes = hash_keys([packed.column(key) for key in operator.keys])
        slots = slot_of(hashes, operator.slots).astype(np.int64)
        counted = SlotCounts.of(slots, counts, self.routing)
        # A key that was combined weighs no more than any other.
        names = [] if operator.body.combines else operator.keys
        share, hot = rows.num_rows, list(hottest_keys(source.operator, packed, names, slots, self.lanes))
        for lane, part in self._parts(packed, self.routing[slots]):
            place = source.operator, self.source, self.partition, chunk
            yield lane, pack(Header(*place, share, latest, *counted.on(lane), hot), part)
            share, hot = 0, []

    def _parts(self, packed: pa.Table, lanes: np.ndarray) -> Iterator[tuple[LaneId, pa.Table]]:
        """The rows of each lane that has some; an empty part where steps left none: event time must get through."""
        if not len(lanes):
            yield int(self.routing[0]), packed
            return
        packed = packed.take(pa.array(np.argsort(lanes, kind="stable")))
        ends = np.cumsum(np.bincount(lanes))
        for lane in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
            start = int(ends[lane - 1]) if lane else 0
            yield lane, packed.slice(start, int(ends[lane]) - start)


def chunks(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.Table]:
    """Batches in tables of about `limit` bytes, in order, none empty."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= limit:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def canonical(rows: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """Float keys with one zero and one NaN, as Spark groups them."""
    for place, name in enumerate(rows.column_names):
        column = rows.column(place)
        if name in keys and pa.types.is_floating(column.type):
            zero, nan = pa.scalar(0.0, column.type), pa.scalar(float("nan"), column.type)
            same = pc.if_else(pc.is_nan(column), nan, pc.if_else(pc.equal(column, zero), zero, column))
            rows = rows.set_column(place, name, same)
    return rows


def latest_time(rows: pa.Table, column: str | None) -> int | None:
    """The greatest event time in microseconds; None without a column or without a value."""
    if column is None:
        return None
    greatest = pc.max(rows.column(column)).cast(pa.timestamp("us", "UTC"))
    return None if not greatest.is_valid else int(greatest.cast(pa.int64()).as_py())


def run_step(step: Step, rows: pa.Table, where: str) -> pa.Table:
    """The table after a stateless function, checked against what the step declares."""
    with user_code(f"{where[:-1]}, in map_batches({step.name})."):
        return conform(step.function(rows), step.output, f"map_batches({step.name})")
