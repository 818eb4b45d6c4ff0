"""Stand-ins for the outside, and small builders, shared by the tests of state."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from trimtab.ports import ObjectStore
from trimtab.state.keyed import Flushed, KeyedTable, StateSchema
from trimtab.state.protocol import Checkpoint
from trimtab.state.records import FORMAT, Claim, Commit, FlowRecord, OperatorRecord, RunRef, SegmentId, SegmentRecord
from trimtab.state.recovery import Replayable
from trimtab.state.runs import open_runs
from trimtab.state.segment import write_segment
from trimtab.vocab import ControlMessage, Measure, Routing


class Crash(BaseException):
    """The process dies here."""


class MemoryStore:
    """A store in a dictionary, which outlives the drivers that use it."""

    made = 0

    def __init__(self) -> None:
        MemoryStore.made += 1
        self.url = f"test-memory://{MemoryStore.made}"
        self.blobs: dict[str, bytes] = {}

    def put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        if name in self.blobs:
            return False
        self.blobs[name] = bytes(data)
        return True

    def read(self, name: str) -> pa.Buffer:
        try:
            return pa.py_buffer(self.blobs[name])
        except KeyError:
            raise FileNotFoundError(name) from None

    def exists(self, name: str) -> bool:
        return name in self.blobs

    def list(self, prefix: str) -> list[str]:
        return sorted(name for name in self.blobs if name.startswith(prefix) and "/" not in name[len(prefix) :])

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self.blobs.pop(name, None)


@dataclass
class FaultyStore:
    """Raises when `countdown` operations are through, before or after the effect of the next one."""

    inner: ObjectStore
    countdown: int | None = None
    after: bool = False
    error: Callable[[], BaseException] = Crash
    log: list[tuple[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.inner.url

    def put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        return self._step("put", name, lambda: self.inner.put_if_absent(name, data))

    def read(self, name: str) -> pa.Buffer:
        return self._step("read", name, lambda: self.inner.read(name))

    def exists(self, name: str) -> bool:
        return self._step("exists", name, lambda: self.inner.exists(name))

    def list(self, prefix: str) -> list[str]:
        return self._step("list", prefix, lambda: self.inner.list(prefix))

    def delete(self, names: Iterable[str]) -> None:
        # Each name is a step of its own: a crash may fall between any two.
        for name in names:
            self._step("delete", name, lambda name=name: self.inner.delete([name]))

    def _step(self, kind: str, name: str, effect: Callable[[], object]) -> object:
        self.log.append((kind, name))
        if self.countdown is None:
            return effect()
        self.countdown -= 1
        if self.countdown >= 0:
            return effect()
        if self.after:
            effect()
        raise self.error()


class FullStore(FaultyStore):
    """A disk with no room left: puts fail, all else works."""

    full = True

    def put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device", name)
        return self.inner.put_if_absent(name, data)


class StoppedClock:
    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0


class CountingRng:
    """A new identity at every call, in every instance."""

    count = 0

    def seed(self) -> int:
        CountingRng.count += 1
        return CountingRng.count

    def identity(self) -> str:
        return f"driver-{self.seed()}"


SLOTS = 8
SCHEMA = StateSchema(pa.schema([("k", pa.int64())]), pa.schema([("v", pa.int64())]), SLOTS, "sums")
OPERATOR = OperatorRecord("sums", SLOTS, (("k", "bigint"),), (("v", "bigint"),), "logic")
FLOW = FlowRecord(FORMAT, "test", (OPERATOR,))


def always(claim: Claim) -> bool:
    return True


def open_checkpoint(store: ObjectStore, replayable: Replayable = always, flow: FlowRecord = FLOW) -> Checkpoint:
    return Checkpoint.open(store, flow, rng=CountingRng(), clock=StoppedClock(), replayable=replayable)


def make_claim(checkpoint: Checkpoint, batch: int | None = None, lanes: int = 1) -> Claim:
    routing = Routing.spread(lanes, [SLOTS])
    marks = checkpoint.watermarks
    return Claim(checkpoint.next_epoch, batch, "q", routing, ControlMessage(), 0, marks, 1, checkpoint.term, {})


def make_commit(checkpoint: Checkpoint, claim: Claim, segments: Sequence[SegmentRecord]) -> Commit:
    last = checkpoint.last_batch if claim.batch is None else claim.batch
    term, marks = checkpoint.term, checkpoint.watermarks
    return Commit(claim.epoch, claim.batch, term, list(segments), marks, Measure(), last, claim.query, claim.routing)


def owned(routing: Routing, lane: int, operator: int = 0) -> list[int]:
    return [slot for slot, home in enumerate(routing.slots[operator]) if home == lane]


def lane_table(store: ObjectStore, runs: Sequence[RunRef], slots: Sequence[int]) -> KeyedTable:
    return KeyedTable(SCHEMA, open_runs(store, runs, SLOTS, slots), slots)


def write(store: ObjectStore, flushed: Flushed | None, epoch: int, hop: int = 0, lane: int = 0) -> list[SegmentRecord]:
    return [] if flushed is None else [write_segment(store, SegmentId(epoch, hop, lane, 0), flushed)]


def rows(pairs: dict[int, int | None]) -> pa.Table:
    return pa.table({"k": pa.array(pairs, pa.int64()), "v": pa.array(pairs.values(), pa.int64())})


def run_epoch(checkpoint: Checkpoint, puts: dict[int, int | None], batch: int | None = None) -> None:
    """One whole epoch on one lane, without folding."""
    claim = checkpoint.claim(make_claim(checkpoint, batch))
    table = lane_table(checkpoint.store, checkpoint.manifest.runs_of(0), range(SLOTS))
    table.put(rows(puts))
    checkpoint.commit(make_commit(checkpoint, claim, write(checkpoint.store, table.flush(), claim.epoch)))


def read_state(checkpoint: Checkpoint) -> dict[int, int | None]:
    table = lane_table(checkpoint.store, checkpoint.manifest.runs_of(0), range(SLOTS))
    found = table.scan()
    return dict(zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True))


def one_order(columns: Sequence[pa.Array]) -> np.ndarray:
    """A hash under which all keys collide."""
    return np.full(len(columns[0]), 5, np.int64)


def few_orders(columns: Sequence[pa.Array]) -> np.ndarray:
    """A hash with many collisions, in a few slots."""
    return np.array([sum(len(str(value)) for value in row) for row in zip(*columns, strict=True)], np.int64)
