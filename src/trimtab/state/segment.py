"""Segments: immutable Arrow IPC files of sorted state rows, named by what wrote them and by their digest.

Columns, by position since a user's column may have any name: order, live, the key columns, the value columns. The file
is uncompressed, so that a mapped one is searched in place. Where each slot lies is in the schema's metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from trimtab.errors import DamagedError
from trimtab.ports import ObjectStore, reached
from trimtab.state.envelope import digest
from trimtab.state.records import SegmentId, SegmentRecord, segment_digest, segment_name
from trimtab.state.rows import Rows

if TYPE_CHECKING:
    from trimtab.state.keyed import Flushed

INDEX = b"trimtab"
REMEMBERED = 20_000

# Which blobs this process has verified, with their sizes: a worker sees the same base segments epoch after epoch.
_verified: dict[tuple[str, str], int] = {}


class SegmentIndex(msgspec.Struct, frozen=True):
    """The metadata of a segment: slot i has rows `offsets[i]` to `offsets[i + 1]`; so many columns are the key's."""

    keys: int
    slots: list[int]
    offsets: list[int]


def write_segment(store: ObjectStore, identity: SegmentId, flushed: Flushed) -> SegmentRecord:
    """Put a lane's flushed state into the store, once and for all. Equal state gives equal bytes and one name."""
    slots, offsets, folded = flushed.slots.tolist(), flushed.offsets.tolist(), flushed.folded.tolist()
    data = encode_segment(flushed.rows, slots, offsets)
    name = segment_name(identity, digest(data))
    reached("before_segment", identity.epoch)
    store.put_if_absent(name, data)
    reached("after_segment", identity.epoch)
    return SegmentRecord(
        name, identity.operator, len(data), len(flushed.rows), slots, offsets, folded, fresh=flushed.fresh
    )


def encode_segment(rows: Rows, slots: Sequence[int], offsets: Sequence[int]) -> pa.Buffer:
    """The bytes of a segment."""
    index = SegmentIndex(rows.width, list(slots), list(offsets))
    schema = pa.schema([pa.field("order", pa.uint64()), *rows.batch.schema], {INDEX: msgspec.json.encode(index)})
    columns = [pa.array(rows.orders), *rows.batch.columns]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return sink.getvalue()


def open_segment(store: ObjectStore, name: str) -> Rows:
    """A segment's rows, mapped and not copied; DamagedError when they are not what was written.

    The first time a process opens a segment it reads all of it to verify the digest.
    """
    try:
        data = store.read(name)
    except FileNotFoundError as error:
        raise DamagedError(f"The segment {name} is missing from the checkpoint {store.url}.") from error
    _verify(store, name, data)
    return decode_segment(data)[0]


def decode_segment(data: pa.Buffer) -> tuple[Rows, SegmentIndex]:
    """Rows and index of a segment whose bytes are known to be good."""
    batch = pa.ipc.open_file(data).get_batch(0)
    index = msgspec.json.decode(batch.schema.metadata[INDEX], type=SegmentIndex)
    bare = pa.schema(list(batch.schema)[1:])
    rows = pa.RecordBatch.from_arrays(batch.columns[1:], schema=bare)
    return Rows(batch.column(0).to_numpy(), rows, index.keys), index


def _verify(store: ObjectStore, name: str, data: pa.Buffer) -> None:
    key = (store.url, name)
    if _verified.get(key) == data.size:
        return
    if digest(data) != segment_digest(name):
        raise DamagedError(
            f"The segment {name} of the checkpoint {store.url} is damaged: its contents do not match its digest."
        )
    if len(_verified) >= REMEMBERED:
        _verified.pop(next(iter(_verified)))
    _verified[key] = data.size
