"""The durable records of a checkpoint, and the names they have in its store.

Their fields are the checkpoint format: change one only with a new `FORMAT` and a design note.
"""

from __future__ import annotations

import msgspec

from trimtab.vocab import ControlMessage, Epoch, Hop, LaneId, Measure, OperatorId, Routing, SlotId

FORMAT = 2
FLOW = "flow"
TERMS = "terms/"
CLAIMS = "claims/"
COMMITS = "commits/"
MANIFESTS = "manifests/"
SEGMENTS = "segments/"


class OperatorRecord(msgspec.Struct, frozen=True):
    """An operator's part of the checkpoint's identity; columns are (name, type) as text."""

    name: str
    slots: int
    key: tuple[tuple[str, str], ...]
    state: tuple[tuple[str, str], ...]
    kind: str


class FlowRecord(msgspec.Struct, frozen=True):
    """Which flow a checkpoint belongs to. It never changes."""

    format: int
    flow: str
    operators: tuple[OperatorRecord, ...]


class TermRecord(msgspec.Struct, frozen=True):
    """Which driver holds a term, so that two of them never write the same bytes."""

    term: int
    driver: str
    since: float


class Claim(msgspec.Struct, frozen=True):
    """How an epoch runs: everything that a replay must repeat. Immutable once it is in the store.

    Watermarks are by source, in microseconds.
    """

    epoch: Epoch
    batch: int | None
    query: str | None
    routing: Routing
    message: ControlMessage
    processing_time: int
    """Microseconds since 1970."""

    watermarks: dict[str, int]
    seed: int
    term: int
    settings: dict[str, str]


class SegmentRecord(msgspec.Struct, frozen=True):
    """A segment that an epoch wrote.

    `slots` ascend; slot i has the rows from `offsets[i]` to `offsets[i + 1]`, which stand for the `folded[i]` newest
    older runs of that slot too. An empty range only takes those away.
    """

    name: str
    operator: OperatorId
    bytes: int
    rows: int
    slots: list[SlotId]
    offsets: list[int]
    folded: list[int]
    fresh: int = 0
    """How many rows the logic wrote, before older runs were folded in."""


class RunRef(msgspec.Struct, frozen=True):
    """The ranges of a segment that some slots' chains refer to; slots ascend."""

    name: str
    slots: list[SlotId]
    starts: list[int]
    stops: list[int]


class Commit(msgspec.Struct, frozen=True):
    """What an epoch changed. Its presence in the store is what makes the epoch count.

    `watermarks` are those for the next epoch, `told` those that were in force in this one. `last_batch` is the newest
    Spark batch that is committed by now.
    """

    epoch: Epoch
    batch: int | None
    term: int
    segments: list[SegmentRecord]
    watermarks: dict[str, int]
    measure: Measure
    last_batch: int | None
    query: str | None = None
    routing: Routing | None = None
    told: dict[str, int] = {}


class LiveSegment(msgspec.Struct, frozen=True):
    """A segment that chains refer to."""

    name: str
    operator: OperatorId
    bytes: int
    rows: int


class ChainsRecord(msgspec.Struct, frozen=True):
    """All chains of an operator, slot after slot, newest run first; `segment` counts in the manifest's list."""

    operator: OperatorId
    segment: list[int]
    slot: list[SlotId]
    start: list[int]
    stop: list[int]


class ManifestRecord(msgspec.Struct, frozen=True):
    """The whole state of a checkpoint after an epoch."""

    epoch: Epoch
    term: int
    watermarks: dict[str, int]
    told: dict[str, int]
    last_batch: int | None
    query: str | None
    routing: Routing | None
    fresh: int
    segments: list[LiveSegment]
    chains: list[ChainsRecord]


class SegmentId(msgspec.Struct, frozen=True, order=True):
    """Where a segment's name says it comes from."""

    epoch: Epoch
    hop: Hop
    lane: LaneId
    operator: OperatorId


def term_name(term: int) -> str:
    return f"{TERMS}{term:08d}"


def claim_name(epoch: Epoch) -> str:
    return f"{CLAIMS}{epoch:012d}"


def commit_name(epoch: Epoch) -> str:
    return f"{COMMITS}{epoch:012d}"


def manifest_name(epoch: Epoch) -> str:
    return f"{MANIFESTS}{epoch:012d}"


def number_of(name: str) -> int:
    """The term or epoch in the name of a term, claim, commit or manifest."""
    return int(name.rsplit("/", 1)[-1])


def segment_name(identity: SegmentId, digest: str) -> str:
    """
    >>> segment_name(SegmentId(epoch=7, hop=1, lane=2, operator=3), "ab")
    'segments/000000000007-01-00002-003-ab.arrow'
    """
    return (
        f"{SEGMENTS}{identity.epoch:012d}-{identity.hop:02d}-{identity.lane:05d}-{identity.operator:03d}-{digest}.arrow"
    )


def parse_segment(name: str) -> SegmentId:
    """
    >>> parse_segment("segments/000000000007-01-00002-003-ab.arrow")
    SegmentId(epoch=7, hop=1, lane=2, operator=3)
    """
    epoch, hop, lane, operator, _ = name.removeprefix(SEGMENTS).split("-")
    return SegmentId(int(epoch), int(hop), int(lane), int(operator))


def segment_digest(name: str) -> str:
    return name.rsplit("-", 1)[-1].removesuffix(".arrow")
