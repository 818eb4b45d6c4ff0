"""The form of every durable record: a line with the digest of the body, then the body as JSON.

>>> name, blob = "commits/1", encode({"epoch": 1})
>>> decode(name, blob, dict)
{'epoch': 1}
>>> decode(name, blob.replace(b"1}", b"2}"), dict)
Traceback (most recent call last):
    ...
trimtab.errors.DamagedError: commits/1 is damaged: its contents do not match its digest.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import xxhash

from trimtab.errors import CheckpointError, DamagedError
from trimtab.ports import ObjectStore

T = TypeVar("T")


def encode(record: Any) -> bytes:
    """The same bytes for equal records."""
    body = msgspec.json.encode(record)
    return digest(body).encode() + b"\n" + body


def decode(name: str, blob: bytes | pa.Buffer, kind: type[T]) -> T:
    """The record, or DamagedError naming the blob; CheckpointError when a newer version's record does not fit."""
    head, _, body = bytes(blob).partition(b"\n")
    if head != digest(body).encode():
        raise DamagedError(f"{name} is damaged: its contents do not match its digest.")
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise CheckpointError(
            f"{name} is whole but not understood ({error}): it was written by another version of Trimtab; open the "
            "checkpoint with that version."
        ) from error


def read_record(store: ObjectStore, name: str, kind: type[T]) -> T:
    """A record that must be there: DamagedError also when it is missing."""
    try:
        blob = store.read(name)
    except FileNotFoundError as error:
        raise DamagedError(f"{name} is missing from the checkpoint {store.url}.") from error
    return decode(name, blob, kind)


def digest(data: bytes | pa.Buffer) -> str:
    """Names and guards blobs: xxh3, 128 bits, in hex."""
    return xxhash.xxh3_128_hexdigest(data)
