"""The epoch driver: claim, hops, sinks, commit, in this order, once per epoch.

    Spark's micro-batch ─┐
                         ├─> settle what was claimed ─> claim ─> lanes ─> sinks ─> commit ─> collect garbage
    an epoch of our own ─┘

Whatever stops it, the next start goes on from the checkpoint: a committed epoch is adopted, a claimed one runs again
under its claim, and there is nothing else to repair.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec
import numpy as np
from pyspark.sql import DataFrame, SparkSession

from trimtab.control.background import Background
from trimtab.control.measure import combined
from trimtab.errors import CheckpointError, EpochError, HaltedError
from trimtab.lane.hottest import merged
from trimtab.lane.program import Program
from trimtab.lane.task import HopPlan, LaneReport, OperatorPlan
from trimtab.planners.snapshot import Ints
from trimtab.ports import Clock, Rng
from trimtab.spark.address import SPARK_FOLDER
from trimtab.spark.engine import Engine
from trimtab.spark.shape import HeldShape, apply_shape
from trimtab.state.merging import choose_folds
from trimtab.state.protocol import Checkpoint
from trimtab.state.records import Claim, Commit
from trimtab.vocab import Measure, Routing, SlotMeasures


class EpochDriver:
    """Runs the epochs of one flow, one at a time, from Spark's callback or from a thread of our own."""

    def __init__(
        self,
        program: Program,
        engine: Engine,
        checkpoint: Checkpoint,
        routing: Routing,
        control: Background,
        shape: HeldShape,
        clock: Clock,
        rng: Rng,
    ) -> None:
        self.batch_error: BaseException | None = None
        """What ended an epoch of Spark's, as it was: Spark passes on only its text."""
        self.idle_error: BaseException | None = None
        """What ended an epoch without input."""
        self._halted = False
        self._program = program
        self._engine = engine
        self._checkpoint = checkpoint
        self._store = checkpoint.store
        self._first: Routing | None = routing
        self._control = control
        self._shape = shape
        self._clock = clock
        self._rng = rng
        self._lock = threading.RLock()
        self._query: str | None = None
        self._ended = clock.monotonic()
        self._held = self._measure_state()
        self.timings: deque[dict[str, float]] = deque(maxlen=1000)
        """Seconds of the steps of the newest epochs."""

    def on_batch(self, frame: DataFrame, batch: int) -> None:
        """Spark's `foreachBatch`."""
        with self._lock:
            if self._halted:
                # To return would tell Spark that the batch is done.
                raise HaltedError(f"Flow '{self._program.flow}' was stopped before batch {batch}.")
            try:
                self._batch(frame, batch)
            except BaseException as error:
                self.batch_error = error
                raise

    def halt(self) -> None:
        """Begin no epoch any more; returns when the one that runs has ended."""
        with self._lock:
            self._halted = True

    def due(self) -> bool:
        """Whether an epoch without input would do anything."""
        pending = self._checkpoint.pending_claim()
        if pending is not None:
            return pending.batch is None
        routing = self._checkpoint.routing
        if routing is not None and self._control.controller.due(routing):
            return True
        return self._program.timed() and self._checkpoint.watermarks != self._checkpoint.told

    def idle(self, session: SparkSession, quiet: float = 0) -> bool:
        """Run one epoch without input if one is due and none ran for `quiet` seconds; say whether it ran."""
        with self._lock:
            rested = self._clock.monotonic() - self._ended
            ended = self._halted or self.batch_error or self.idle_error
            if ended or rested < quiet or not self.due():
                return False
            try:
                self._run(self._checkpoint.pending_claim() or self._claim(None), session, None)
            except BaseException as error:
                self.idle_error = error
                raise
            return True

    def close(self) -> None:
        """Give back what this driver changed outside; its epochs are over."""
        self._control.close()
        self._shape.release()

    def _batch(self, frame: DataFrame, batch: int) -> None:
        session = frame.sparkSession
        self._check_query(batch)
        if batch == self._checkpoint.last_batch:
            return
        pending = self._checkpoint.pending_claim()
        if pending is not None and pending.batch is None:
            self._run(pending, session, None)
            pending = None
        claim = pending or self._claim(batch)
        if claim.batch != batch:
            self._refuse(f"epoch {claim.epoch} was claimed for batch {claim.batch}, but Spark brings batch {batch}")
        self._run(claim, session, frame)
        if claim.settings != self._shape.usual:
            apply_shape(session, self._shape.usual)
            self._shape.release()

    def _check_query(self, batch: int) -> None:
        """Refuse batches of a Spark query that this checkpoint's epochs did not come from."""
        if self._query is None:
            metadata = msgspec.json.decode(bytes(self._store.read(f"{SPARK_FOLDER}/metadata")))
            self._query = str(metadata["id"])
        pending, last = self._checkpoint.pending_claim(), self._checkpoint.last_batch
        known = self._checkpoint.query or (pending.query if pending else None)
        if known is not None and known != self._query:
            self._refuse("its epochs came from another Spark query")
        if last is not None and batch < last:
            self._refuse(f"batch {last} is committed, but Spark brings batch {batch}")
        # Spark counts its batches without a gap: rows of one that is left out would be lost.
        following = 0 if last is None else last + 1
        if batch > following:
            self._refuse(f"batch {following} is next, but Spark brings batch {batch}")

    def _refuse(self, reason: str) -> None:
        raise CheckpointError(
            f"Flow '{self._program.flow}': the checkpoint and its folder '{SPARK_FOLDER}' do not belong together: "
            f"{reason}. Restore both from the same copy, or start with an empty checkpoint."
        )

    def _claim(self, batch: int | None) -> Claim:
        checkpoint = self._checkpoint
        routing = self._routing()
        message = self._control.controller.message(routing, checkpoint.next_epoch, idle=batch is None)
        claim = Claim(
            epoch=checkpoint.next_epoch,
            batch=batch,
            query=self._query,
            routing=routing.apply(message),
            message=message,
            processing_time=round(self._clock.now() * 1e6),
            watermarks=checkpoint.watermarks,
            seed=self._rng.seed(),
            term=checkpoint.term,
            settings=self._shape.usual,
        )
        with self._writing(claim.epoch, "claim"):
            return checkpoint.claim(claim)

    def _routing(self) -> Routing:
        """Where slots are before the next epoch's message: at the start as it was asked for, then as they are."""
        first, self._first = self._first, None
        routing = first or self._checkpoint.routing
        assert routing is not None, "an epoch was committed without a routing"
        return routing

    def _run(self, claim: Claim, session: SparkSession, frame: DataFrame | None) -> None:
        steps: dict[str, float] = {}
        began = self._clock.monotonic()
        self._control.began()
        with self._timed(steps, "plan"):
            plan = self._plan(claim)
        with self._timed(steps, "lanes_and_sinks"):
            reports = self._engine.run(session, frame, plan, lambda: self._checkpoint.check_term("its sinks"))
        with self._timed(steps, "measure"):
            measure = self._measure(claim, reports, began)
        with self._timed(steps, "commit"), self._writing(claim.epoch, "commit"):
            self._checkpoint.commit(self._commit(claim, reports, measure))
        with self._timed(steps, "control"):
            self._held = self._measure_state()
            state = np.concatenate([size for size, _ in self._held]).astype(np.float64)
            self._control.measured(measure, claim.message, claim.routing, state)
        with self._timed(steps, "collect_garbage"):
            self._checkpoint.collect_garbage()
        self.timings.append(steps)

    def _measure(self, claim: Claim, reports: list[LaneReport], began: float) -> Measure:
        """What the lanes report, as one; the epoch ends here."""
        ended = self._clock.monotonic()
        span, self._ended = ended - (self._ended if self.timings else began), ended
        return Measure(
            epoch=claim.epoch,
            at=self._clock.now(),
            rows=sum(report.measure.rows for report in reports),
            seconds=round(ended - began, 6),
            span=round(span, 6),
            bytes_written=sum(segment.bytes for report in reports for segment in report.segments),
            lanes=[report.measure for report in reports],
            slots=[self._with_state(each) for each in combined([report.slots for report in reports])],
            hot=merged(key for report in reports for key in report.hot),
        )

    def _with_state(self, slots: SlotMeasures) -> SlotMeasures:
        size, keys = (held[slots.slots].tolist() for held in self._held[slots.operator])
        return msgspec.structs.replace(slots, state=size, keys=keys)

    def _measure_state(self) -> list[tuple[Ints, Ints]]:
        """Bytes and keys of state by slot, for every operator."""
        manifest, operators = self._checkpoint.manifest, enumerate(self._program.operators)
        return [
            (manifest.slot_bytes(number, each.slots), manifest.slot_rows(number, each.slots))
            for number, each in operators
        ]

    @contextmanager
    def _writing(self, epoch: int, record: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise EpochError(
                f"Flow '{self._program.flow}', epoch {epoch}: its {record} could not be written to the checkpoint "
                f"{self._store.url}: {error}. The next start goes on from there once it can be."
            ) from error

    @contextmanager
    def _timed(self, steps: dict[str, float], step: str) -> Iterator[None]:
        start = self._clock.monotonic()
        yield
        steps[step] = self._clock.monotonic() - start

    def _plan(self, claim: Claim) -> HopPlan:
        manifest = self._checkpoint.manifest
        folds = choose_folds(manifest)
        watermark = self._watermark(claim.watermarks)
        advanced = watermark is not None and watermark != self._watermark(self._checkpoint.told)
        operators = [
            OperatorPlan(manifest.runs_of(number), folds.get(number, {}), watermark, advanced)
            for number in range(len(self._program.operators))
        ]
        return HopPlan(claim.epoch, 0, claim.routing, claim.processing_time, claim.seed, operators)

    def _watermark(self, marks: dict[str, int]) -> int | None:
        """The one in force: the lowest of the sources that are tracked.

        A checkpoint keeps the marks of sources that the flow no longer has by that name. They are in force until the
        first rows of another come, and then hold nothing up.
        """
        tracked = [source.name for source in self._program.sources if source.event_time is not None]
        if not tracked:
            return None
        return min([marks[name] for name in tracked if name in marks] or marks.values(), default=None)

    def _commit(self, claim: Claim, reports: list[LaneReport], measure: Measure) -> Commit:
        last = self._checkpoint.last_batch if claim.batch is None else claim.batch
        return Commit(
            epoch=claim.epoch,
            batch=claim.batch,
            last_batch=last,
            query=claim.query,
            term=self._checkpoint.term,
            routing=claim.routing,
            segments=[segment for report in reports for segment in report.segments],
            watermarks=self._watermarks(claim.watermarks, reports),
            told=claim.watermarks,
            measure=measure,
        )

    def _watermarks(self, current: dict[str, int], reports: Iterable[LaneReport]) -> dict[str, int]:
        """The watermarks from the next epoch on: the latest event time less the delay, never going back."""
        delays = {source.name: source.delay for source in self._program.sources}
        following = dict(current)
        for report in reports:
            for source, latest in report.latest.items():
                reached = latest - delays[source]
                following[source] = max(reached, following.get(source, reached))
        return following
