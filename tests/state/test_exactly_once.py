"""The whole of state against a dictionary, with a crash between any two operations on the store.

Spark is played by a list of batches: one that is not finished is brought again, with the same rows, until its epoch is
committed and it has been told so. Lanes come and go, slots move, hops follow each other, garbage is collected, and
older drivers wake up after they have been overtaken.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.state.doubles import (
    SLOTS,
    Crash,
    FaultyStore,
    MemoryStore,
    lane_table,
    make_claim,
    make_commit,
    open_checkpoint,
    owned,
    read_state,
    rows,
    write,
)

from trimtab.errors import FencedError
from trimtab.state import merging, protocol
from trimtab.state.keyhash import hash_keys, slot_of
from trimtab.state.merging import choose_folds
from trimtab.state.protocol import Checkpoint
from trimtab.state.records import Claim, RunRef, SegmentRecord
from trimtab.vocab import ControlMessage, Move, Routing

KEYS = st.integers(0, 11)
WRITES = st.lists(st.tuples(KEYS, st.none() | st.integers(0, 99)), max_size=6)
Batch = list[list[tuple[int, int | None]]]
GONE = 0
"""Written as a value, it means a deletion."""


@dataclass(frozen=True)
class Wish:
    """Another number of lanes, and slots on the lane that `home` comes to."""

    lanes: int | None = None
    slots: tuple[int, ...] = ()
    home: int = 0

    def message(self, routing: Routing) -> ControlMessage:
        """As a controller would say it: lanes that are to go drain first, and retire one message later."""
        kept = routing.staying[: self.lanes]
        leaving = tuple(lane for lane in routing.staying if lane not in kept)
        target = kept[self.home % len(kept)]
        lanes = [lane if lane in kept else target for lane in routing.slots[0]]
        for slot in self.slots:
            lanes[slot] = target
        moves = tuple(Move(0, slot, routing.slots[0][slot], lane) for slot, lane in enumerate(lanes))
        return ControlMessage(moves, draining=leaving, retired=routing.emptied, lanes=self.lanes)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Writes of one or two hops."""
    return [draw(WRITES) for _ in range(draw(st.integers(1, 2)))]


class ExactlyOnce(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = FaultyStore(MemoryStore())
        self.checkpoint: Checkpoint | None = None
        self.overtaken: list[Checkpoint] = []
        self.batches: list[Batch] = []
        self.finished = 0
        self.wish = Wish()
        # Small numbers, so that folds, full manifests and garbage come up in short runs.
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(protocol, "FULL_EVERY", 3)
        self.patch.setattr(protocol, "DELETIONS", 5)
        self.patch.setattr(merging, "SHORTEST", 1)
        self.patch.setattr(merging, "RECENT", 2)

    def teardown(self) -> None:
        self.patch.undo()

    @initialize()
    def start(self) -> None:
        self.open()

    @rule(batch=batches(), crash=st.none() | st.tuples(st.integers(0, 25), st.booleans()))
    def batch(self, batch: Batch, crash: tuple[int, bool] | None) -> None:
        """Spark brings its next batch, or once more the one that it has not seen finished."""
        if self.finished == len(self.batches):
            self.batches.append(batch)
        self.until_crash(crash, self.on_batch)

    @rule(crash=st.none() | st.tuples(st.integers(0, 15), st.booleans()))
    def idle(self, crash: tuple[int, bool] | None) -> None:
        """An epoch without input."""
        self.until_crash(crash, lambda: self.epoch(None))

    @rule(crash=st.none() | st.tuples(st.integers(0, 40), st.booleans()))
    def restart(self, crash: tuple[int, bool] | None) -> None:
        self.close()
        self.until_crash(crash, self.open)

    @rule(lanes=st.integers(1, 5), slots=st.lists(st.integers(0, SLOTS - 1), max_size=3), home=st.integers(0, 4))
    def move(self, lanes: int, slots: list[int], home: int) -> None:
        """In the next claim, other lanes and some slots elsewhere."""
        self.wish = Wish(lanes, tuple(slots), home)

    @rule(late=st.sampled_from(["claim", "commit", "collect_garbage", "check_term"]))
    def older_driver(self, late: str) -> None:
        """Drivers that have been overtaken find out, and change nothing."""
        self.settle()
        for driver in self.overtaken[-3:]:
            before = dict(self.store.inner.blobs)
            driver._collectable, driver._claim = True, None
            claim = make_claim(driver)
            arguments = {"claim": [claim], "commit": [make_commit(driver, claim, [])], "check_term": ["its sinks"]}
            with pytest.raises(FencedError):
                getattr(driver, late)(*arguments.get(late, []))
            assert self.store.inner.blobs == before

    @invariant()
    def state_is_that_of_the_committed_batches(self) -> None:
        self.settle()
        assert self.checkpoint is not None
        last = self.checkpoint.last_batch
        committed = 0 if last is None else last + 1
        assert self.finished <= committed <= self.finished + 1
        assert read_state(self.checkpoint) == self.model(committed)

    @invariant()
    def nothing_needed_is_gone(self) -> None:
        self.settle()
        assert self.checkpoint is not None
        assert all(self.store.inner.exists(name) for name in self.checkpoint.manifest.referenced)

    def model(self, count: int) -> dict[int, int | None]:
        state: dict[int, int | None] = {}
        for writes in (writes for batch in self.batches[:count] for writes in batch):
            for key, value in writes:
                state[key] = value
                if value == GONE:
                    del state[key]
        return state

    def until_crash(self, crash: tuple[int, bool] | None, step) -> None:
        self.store.countdown, self.store.after = crash or (None, False)
        try:
            step()
        except Crash:
            self.close()
        finally:
            self.store.countdown = None

    def open(self) -> None:
        self.checkpoint = open_checkpoint(self.store, self.replayable)

    def close(self) -> None:
        if self.checkpoint is not None:
            self.overtaken.append(self.checkpoint)
        self.checkpoint = None

    def settle(self) -> None:
        if self.checkpoint is None:
            self.open()

    def replayable(self, claim: Claim) -> bool:
        return claim.batch is None or claim.batch >= self.finished

    def on_batch(self) -> None:
        self.settle()
        assert self.checkpoint is not None
        number = self.finished
        if self.checkpoint.last_batch != number:
            pending = self.checkpoint.pending_claim()
            if pending is not None and pending.batch is None:
                self.epoch(None)
            self.epoch(number)
        self.finished = number + 1

    def epoch(self, number: int | None) -> None:
        self.settle()
        checkpoint = self.checkpoint
        assert checkpoint is not None
        if number is None and checkpoint.pending_claim() is not None:
            number = checkpoint.pending_claim().batch
        claim = checkpoint.claim(self.next_claim(checkpoint, number))
        assert claim.batch == number
        segments: list[SegmentRecord] = []
        for hop, writes in enumerate([[]] if number is None else self.batches[number]):
            runs = checkpoint.manifest.extended(segments).runs_of(0)
            folds = choose_folds(checkpoint.manifest).get(0, {}) if hop == 0 else {}
            for lane in claim.routing.running:
                segments = segments + self.lane(claim, hop, lane, writes, runs, folds)
        checkpoint.commit(make_commit(checkpoint, claim, segments))
        checkpoint.collect_garbage()

    def next_claim(self, checkpoint: Checkpoint, number: int | None) -> Claim:
        routing = checkpoint.routing or Routing.spread(1, [SLOTS])
        message, self.wish = self.wish.message(routing), Wish()
        claim = make_claim(checkpoint, number)
        return msgspec.structs.replace(claim, routing=routing.apply(message), message=message)

    def lane(
        self,
        claim: Claim,
        hop: int,
        lane: int,
        writes: list[tuple[int, int | None]],
        runs: list[RunRef],
        folds: dict[int, int],
    ) -> list[SegmentRecord]:
        slots = owned(claim.routing, lane)
        table = lane_table(self.store, runs, slots)
        for key, value in writes:
            if slot_of(hash_keys([pa.array([key])]), SLOTS)[0] not in slots:
                continue
            if value == GONE:
                table.delete(rows({key: None}))
            else:
                table.put(rows({key: value}))
        return write(self.store, table.flush(folds), claim.epoch, hop, lane)


ExactlyOnce.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
test_state_is_exactly_once = ExactlyOnce.TestCase


def test_a_crash_at_every_single_step_of_some_epochs() -> None:
    """No luck needed: the same history, stopped before and after each operation in turn."""
    for after in (False, True):
        step, crashed = 0, True
        while crashed:
            crashed = history_with_crash(step, after)
            step += 1
        assert step > 40


def history_with_crash(step: int, after: bool) -> bool:
    machine = ExactlyOnce()
    try:
        machine.open()
        machine.store.countdown, machine.store.after = step, after
        crashed = False
        for number in range(5):
            machine.wish = Wish(lanes=1 + number % 3)
            machine.batches.append([[(number, number), (7, number)], [(3, GONE)]])
            try:
                machine.on_batch()
            except Crash:
                crashed = True
                machine.close()
                machine.store.countdown = None
                machine.on_batch()
            left, machine.store.countdown = machine.store.countdown, None
            machine.state_is_that_of_the_committed_batches()
            machine.store.countdown = left
        return crashed
    finally:
        machine.teardown()
