"""Payloads: the form in which rows travel to a lane.

A payload is an Arrow IPC stream of the packed columns of one operator, with a header in the schema's metadata. It
holds nothing random: the same rows give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa

from trimtab.errors import DamagedError
from trimtab.vocab import HotKey

HEADER = b"trimtab"


class Header(msgspec.Struct, frozen=True, array_like=True):
    """Where a payload comes from. Payloads are worked on in the order of (operator, source, partition, chunk)."""

    operator: int
    source: int
    partition: int
    chunk: int
    rows: int = 0
    """How many rows of the source went into it before they were combined."""
    latest: int | None = None
    """The greatest event time among them, in microseconds."""
    slots: list[int] = []
    """The slots that its rows belong to; for each, from how many rows of the source, and how many travel here."""
    slot_rows: list[int] = []
    slot_work: list[int] = []
    hot: list[HotKey] = []

    @property
    def place(self) -> tuple[int, int, int, int]:
        return (self.operator, self.source, self.partition, self.chunk)


def pack(header: Header, rows: pa.Table) -> bytes:
    """The payload of some rows."""
    schema = rows.schema.with_metadata({HEADER: msgspec.json.encode(header)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(rows.replace_schema_metadata(schema.metadata))
    payload: bytes = sink.getvalue().to_pybytes()
    return payload


def unpack(payload: pa.Buffer) -> tuple[Header, pa.Table]:
    """The header and the rows of a payload, without a copy."""
    table = pa.ipc.open_stream(payload).read_all()
    metadata = table.schema.metadata or {}
    if HEADER not in metadata:
        raise DamagedError("A payload arrived without its header: rows reached a lane past the packing stage.")
    return msgspec.json.decode(metadata[HEADER], type=Header), table.replace_schema_metadata(None)


def unpack_all(batches: Iterable[pa.RecordBatch], column: str) -> Iterator[tuple[Header, pa.Table]]:
    """Every payload of a column, in the order in which rows are to be worked on, however they arrived."""
    payloads = [unpack(each.as_buffer()) for batch in batches for each in batch.column(column) if each.is_valid]
    yield from sorted(payloads, key=lambda payload: payload[0].place)
