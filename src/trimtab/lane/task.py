"""The work of a lane in one hop: unpack, group by operator, state, logic, segment, output.

Free of Spark: the engine's adapter and the simulator hand in payloads and an object store, and take what comes out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from trimtab.lane.context import Context, instant
from trimtab.lane.logic import joined
from trimtab.lane.measures import Activation, Stopwatch, held_rows, slot_measures
from trimtab.lane.pack import run_step
from trimtab.lane.packing import Header
from trimtab.lane.program import Leaf, Operator, Program
from trimtab.ports import Clock, ObjectStore
from trimtab.state.keyed import KeyedTable
from trimtab.state.order import Ints
from trimtab.state.records import RunRef, SegmentId, SegmentRecord
from trimtab.state.runs import open_runs
from trimtab.state.segment import write_segment
from trimtab.vocab import Epoch, Hop, HotKey, LaneId, LaneMeasure, OperatorId, Routing, SlotMeasures

PART_BYTES = 256 << 20


class OperatorPlan(msgspec.Struct, frozen=True):
    """An operator's part of a hop: which runs make up its state, which of them to fold, and its watermark."""

    runs: list[RunRef]
    folds: dict[int, int]
    watermark: int | None = None
    advanced: bool = False
    """Whether the watermark is a new one, so that the operator is told of it in this epoch."""


class HopPlan(msgspec.Struct, frozen=True):
    """All that a lane needs to know of one hop of one epoch; the same for every lane."""

    epoch: Epoch
    hop: Hop
    routing: Routing
    processing_time: int
    seed: int
    operators: list[OperatorPlan]


class LaneReport(msgspec.Struct, frozen=True):
    """What a lane hands back to the driver, once."""

    epoch: Epoch
    hop: Hop
    lane: LaneId
    segments: list[SegmentRecord]
    latest: dict[str, int]
    """Greatest event time by source, in microseconds."""
    measure: LaneMeasure
    slots: list[SlotMeasures]
    """By operator."""
    hot: list[HotKey]


@dataclass(frozen=True)
class LaneTask:
    """One lane in one hop. `run` may be repeated and run twice at once: every time it does the very same."""

    program: Program
    plan: HopPlan
    lane: LaneId
    store: ObjectStore
    clock: Clock
    executor: str = ""
    """Where it runs, for the measure."""

    def run(self, payloads: Iterable[tuple[Header, pa.Table]]) -> tuple[LaneReport, list[pa.Table]]:
        """Work on payloads in the order given; return the report and the rows of each leaf."""
        watch = Stopwatch(self.clock)
        rows: defaultdict[OperatorId, list[tuple[Header, pa.Table]]] = defaultdict(list)
        for header, table in payloads:
            rows[header.operator].append((header, table))
        headers = [header for payload in rows.values() for header, _ in payload]
        read = watch.lap()
        activations = [self._operator(number, rows[number], watch) for number in range(len(self.program.operators))]
        leaves = []
        for leaf in self.program.leaves:
            leaves.append(self._leaf(leaf, activations[leaf.operator].output))
            activations[leaf.operator] = activations[leaf.operator].longer(watch.lap())
        busy, write = sum(each.busy for each in activations), sum(each.write for each in activations)
        count, work = sum(header.rows for header in headers), sum(sum(header.slot_work) for header in headers)
        measure = LaneMeasure(self.lane, read + busy + write, read, busy, write, count, work, self.executor)
        slots = [self._slot_measures(number, rows[number], each) for number, each in enumerate(activations)]
        segments = [each.segment for each in activations if each.segment is not None]
        hot = [key for header in headers for key in header.hot]
        latest = self._latest(headers)
        return LaneReport(self.plan.epoch, self.plan.hop, self.lane, segments, latest, measure, slots, hot), leaves

    def _slot_measures(
        self, number: OperatorId, payloads: list[tuple[Header, pa.Table]], activation: Activation
    ) -> SlotMeasures:
        plan = self.plan.operators[number]
        # What a watermark alone gives to do, it does to the state that there is.
        held = held_rows(plan.runs, self._owned(number)) if plan.advanced and not payloads else ([], [])
        return slot_measures(number, payloads, activation, held)

    def _owned(self, number: OperatorId) -> Ints:
        return np.flatnonzero(np.asarray(self.plan.routing.slots[number]) == self.lane)

    def _latest(self, headers: Iterable[Header]) -> dict[str, int]:
        latest: dict[str, int] = {}
        for header in headers:
            if header.latest is not None:
                source = self.program.sources[header.source].name
                latest[source] = max(header.latest, latest.get(source, header.latest))
        return latest

    def _operator(self, number: OperatorId, payloads: list[tuple[Header, pa.Table]], watch: Stopwatch) -> Activation:
        operator, plan = self.program.operators[number], self.plan.operators[number]
        owned = self._owned(number)
        state = KeyedTable(operator.state, open_runs(self.store, plan.runs, operator.slots, owned), owned)
        context, body = self._context(operator, plan), operator.body.fresh()
        rows = [table for _, table in payloads]
        outputs = [body.run(part, state, context) for part in parts(rows, body.combines)]
        if plan.advanced:
            outputs.append(body.advance(state, context))
        output, busy = joined(outputs), watch.lap()
        flushed = state.flush(plan.folds)
        identity = SegmentId(self.plan.epoch, self.plan.hop, self.lane, number)
        segment = None if flushed is None else write_segment(self.store, identity, flushed)
        return Activation(output, segment, busy, watch.lap())

    def _leaf(self, leaf: Leaf, rows: pa.Table | None) -> pa.Table:
        rows = self.program.operators[leaf.operator].body.output.empty_table() if rows is None else rows
        for step in leaf.steps if rows.num_rows else ():
            rows = run_step(step, rows, f"Flow '{self.program.flow}', epoch {self.plan.epoch}, lane {self.lane}.")
        return rows if rows.num_rows else leaf.schema.empty_table()

    def _context(self, operator: Operator, plan: OperatorPlan) -> Context:
        return Context(
            flow=self.program.flow,
            operator=operator.name,
            epoch=self.plan.epoch,
            lane=self.lane,
            processing_time=instant(self.plan.processing_time),
            seed=self.plan.seed,
            watermark=None if plan.watermark is None else instant(plan.watermark),
        )


def parts(rows: list[pa.Table], combines: bool) -> Iterator[pa.Table]:
    """Payloads in tables for one call each: all at once where they were combined, else of bounded size."""
    held: list[pa.Table] = []
    size = 0
    for table in rows:
        held.append(table)
        size += table.nbytes
        if size >= PART_BYTES and not combines:
            yield pa.concat_tables(held)
            held, size = [], 0
    if held:
        yield pa.concat_tables(held)
