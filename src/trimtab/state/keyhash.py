"""Where a key lives: Spark's `xxhash64` over Arrow columns, and the slot that a hash falls into.

This is part of the checkpoint format and stable for ever: segments are sorted by these hashes and slots are their
remainders, so a change of a single bit makes every checkpoint unreadable. It equals Spark's own
`pmod(xxhash64(columns), slots)`, so rows may be routed by either side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

U64 = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.unsignedinteger[Any]]
Hasher = Callable[[pa.Array, U64], U64]

SEED = 42
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
LANE_SEEDS = np.array([[(P1 + P2) % 2**64], [P2], [0], [2**64 - P1]], np.uint64)

LONG_DIGITS = 18
SPARK_DIGITS = 38
# Temporaries of this many rows stay in the processor's cache; whole columns of 250,000 took 3 to 6 times as long.
BLOCK = 16_384


def hash_keys(columns: Sequence[pa.Array | pa.ChunkedArray]) -> npt.NDArray[np.int64]:
    """Spark's `xxhash64(columns...)`, one hash per row; part of the checkpoint format, stable for ever.

    The first column is hashed with seed 42, each further one with the hash so far as its seed. A null leaves the hash
    as it is, so `(null, x)` and `(x, null)` collide. -0.0 hashes as 0.0, and all NaNs alike. Strings are hashed as
    their bytes, whatever their collation in Spark. The type counts: an int and a long of the same value differ, and
    so do decimals of 18 and 19 digits. Timestamps hash as microseconds: nanoseconds are rounded down as PySpark does,
    values beyond the range raise `pa.ArrowInvalid`.

    Raises TypeError for a type that `check_hashable` refuses, ValueError without columns or with unequal lengths.

    >>> hash_keys([pa.array(["Spark"]), pa.array([123], pa.int32()), pa.array([2], pa.int32())])
    array([5602566077635097486])
    >>> hash_keys([pa.array([7, None])])
    array([-2864211556195259663,                   42])
    """
    for column in columns:
        check_hashable(column.type)
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise ValueError(f"A key needs one or more columns of one length, not {[len(column) for column in columns]}.")
    hashes = np.full(lengths.pop(), SEED, np.uint64)
    for column in columns:
        start = 0
        for block in _blocks(column):
            _hash_block(block, hashes[start : start + len(block)])
            start += len(block)
    return hashes.view(np.int64)


def slot_of(hashes: npt.NDArray[np.int64], slots: int) -> npt.NDArray[np.int32]:
    """Spark's `pmod(hash, slots)`: the slot of each signed hash, in `range(slots)`. Part of the checkpoint format.

    >>> slot_of(np.array([-1, 0, 257]), 256)
    array([255,   0,   1], dtype=int32)
    """
    if not 1 <= slots <= np.iinfo(np.int32).max:
        raise ValueError(f"An operator needs between 1 and {np.iinfo(np.int32).max} slots, not {slots}.")
    # numpy's remainder takes the sign of the divisor, as pmod does; Java's takes that of the dividend.
    return np.remainder(hashes, np.int64(slots)).astype(np.int32)


def check_hashable(type: pa.DataType) -> None:
    """Raise TypeError, with a sentence for the user, unless a column of this type can be a key."""
    while pa.types.is_dictionary(type):
        type = type.value_type
    if type.id not in _HASHERS:
        way_out = "make its fields key columns of their own" if pa.types.is_nested(type) else "cast it to one of these"
        raise TypeError(
            f"A key column cannot be of type {type}: keys are boolean, signed integer, float, double, decimal, string,"
            f" binary, date32, timestamp or null; {way_out}."
        )
    if pa.types.is_decimal(type) and not 0 <= type.scale <= type.precision <= SPARK_DIGITS:
        raise TypeError(
            f"A key column cannot be of type {type}: Spark's decimals have at most {SPARK_DIGITS} digits and a scale"
            " between 0 and the number of digits; cast it to such a type."
        )


def _blocks(column: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        for start in range(0, len(chunk), BLOCK):
            yield chunk.slice(start, BLOCK)


def _hash_block(block: pa.Array, hashes: U64) -> None:
    """Advance the hashes, in place, by one value each."""
    while pa.types.is_dictionary(block.type):
        block = pc.take(block.dictionary, block.indices)
    fresh = _HASHERS[block.type.id](block, hashes)
    # A null's value slot may hold anything, so nulls are hashed with the rest and then left out.
    np.copyto(hashes, fresh, where=block.is_valid().to_numpy(zero_copy_only=False) if block.null_count else True)


def _hash_small(block: pa.Array, seeds: U64) -> U64:
    """Integers of up to 32 bits: sign-extended to 32, then hashed as 4 bytes."""
    values = _values(block, np.dtype(f"i{block.type.bit_width // 8}"))
    return _hash_word4(values.astype(np.int32).view(np.uint32), seeds)


def _hash_long(block: pa.Array, seeds: U64) -> U64:
    return _hash_word8(_values(block, np.dtype("u8")), seeds)


def _hash_float(block: pa.Array, seeds: U64) -> U64:
    bits = _values(block, np.dtype("u4"))
    return _hash_word4(_java_bits(bits, sign=0x8000_0000, infinity=0x7F80_0000, nan=0x7FC0_0000), seeds)


def _hash_double(block: pa.Array, seeds: U64) -> U64:
    bits = _values(block, np.dtype("u8"))
    return _hash_word8(_java_bits(bits, sign=1 << 63, infinity=0x7FF << 52, nan=0x7FF8 << 48), seeds)


def _java_bits(bits: Words, sign: int, infinity: int, nan: int) -> U64:
    """The bits as Spark hashes them: -0.0 becomes 0.0, and every NaN Java's canonical one."""
    bits = np.where(bits == sign, 0, bits)
    return np.where((bits & (sign - 1)) > infinity, nan, bits)


def _hash_timestamp(block: pa.Array, seeds: U64) -> U64:
    if block.type.unit == "ns":
        return _hash_word8(np.floor_divide(_values(block, np.dtype("i8")), 1000).view(np.uint64), seeds)
    return _hash_long(block.cast(pa.timestamp("us", block.type.tz)), seeds)


def _hash_decimal(block: pa.Array, seeds: U64) -> U64:
    """Up to 18 digits as a long, above as the bytes of Java's `BigInteger.toByteArray`."""
    block = block.cast(pa.decimal128(block.type.precision, block.type.scale))
    words = _values(block, np.dtype(("<u8", 2)))
    if block.type.precision <= LONG_DIGITS:
        return _hash_word8(words[:, 0], seeds)
    data = np.ascontiguousarray(words.view(np.uint8)[:, ::-1]).ravel()
    lengths = _twos_complement_lengths(words[:, 0], words[:, 1])
    return _hash_bytes(data, np.arange(16, data.size + 16, 16) - lengths, lengths, seeds)


def _twos_complement_lengths(low: U64, high: U64) -> Ints:
    """How many bytes a 128-bit integer needs, its sign bit included."""
    sign = (high.view(np.int64) >> 63).view(np.uint64)
    low, high = low ^ sign, high ^ sign
    # With k bytes one can reach 2**(8k-1) - 1.
    limits = 1 << np.arange(7, 64, 8, dtype=np.uint64)
    return np.where(high == 0, 1 + np.searchsorted(limits, low, "right"), 9 + np.searchsorted(limits, high, "right"))


def _hash_text(block: pa.Array, seeds: U64) -> U64:
    wide = pa.types.is_large_string(block.type) or pa.types.is_large_binary(block.type)
    _, offsets, data = block.buffers()
    dtype = np.dtype("i8" if wide else "i4")
    ends = np.frombuffer(offsets, dtype, len(block) + 1, block.offset * dtype.itemsize).astype(np.int64)
    values = np.frombuffer(data if data is not None else b"", np.uint8)
    return _hash_bytes(values, ends[:-1], np.diff(ends), seeds)


def _hash_bytes(data: Bytes, starts: Ints, lengths: Ints, seeds: U64) -> U64:
    """XXH64 of `data[start : start + length]` for each row; all rows of enough length advance together."""
    hashes = seeds + P5
    if (long := np.flatnonzero(lengths >= 32)).size:
        hashes[long] = _hash_stripes(data, starts[long], lengths[long] // 32, seeds[long])
    hashes += lengths.astype(np.uint64)
    tails, left = starts + (lengths & ~31), lengths & 31
    for step in range(3):
        _advance(_mix8, hashes, np.flatnonzero(left >= 8 * step + 8), tails + 8 * step, _unaligned(data, "<u8"))
    _advance(_mix4, hashes, np.flatnonzero(left & 4), tails + (left & 24), _unaligned(data, "<u4"))
    for step in range(3):
        _advance(_mix1, hashes, np.flatnonzero((left & 3) > step), tails + (left & 28) + step, data)
    return _finish(hashes)


def _advance(mix: Callable[[U64, U64], U64], hashes: U64, rows: Ints, at: Ints, words: Words) -> None:
    hashes[rows] = mix(hashes[rows], words[at[rows]].astype(np.uint64))


def _unaligned(data: Bytes, dtype: str) -> Words:
    """A view in which item i is the word that starts at byte i."""
    return np.ndarray((max(0, data.size - np.dtype(dtype).itemsize + 1),), dtype, data, strides=(1,))


def _hash_stripes(data: Bytes, starts: Ints, stripes: Ints, seeds: U64) -> U64:
    """The state of XXH64 after the 32-byte stripes of rows that have one or more."""
    # Longest first: the rows that still have a stripe are then a prefix, and need no gathering.
    order = np.argsort(-stripes, kind="stable")
    at = starts[order] + np.array([[0], [8], [16], [24]])
    lanes = seeds[order] + LANE_SEEDS
    words = _unaligned(data, "<u8")
    alive = np.searchsorted(-stripes[order], -np.arange(stripes.max()), "left")
    for step, count in enumerate(alive.tolist()):
        lanes[:, :count] = _round(lanes[:, :count], words[at[:, :count] + 32 * step])
    hashes = np.empty_like(seeds)
    hashes[order] = _merge(lanes)
    return hashes


def _round(lane: U64, words: U64) -> U64:
    return _rotate(lane + words * P2, 31) * P1


def _merge(lanes: U64) -> U64:
    one, two, three, four = lanes
    hashes = _rotate(one, 1) + _rotate(two, 7) + _rotate(three, 12) + _rotate(four, 18)
    for lane in lanes:
        hashes = (hashes ^ _round(np.zeros_like(lane), lane)) * P1 + P4
    return hashes


def _hash_word8(words: U64, seeds: U64) -> U64:
    return _finish(_mix8(seeds + (P5 + 8), words))


def _hash_word4(words: Words, seeds: U64) -> U64:
    return _finish(_mix4(seeds + (P5 + 4), words.astype(np.uint64)))


def _mix8(hashes: U64, words: U64) -> U64:
    return _rotate(hashes ^ (_rotate(words * P2, 31) * P1), 27) * P1 + P4


def _mix4(hashes: U64, words: U64) -> U64:
    return _rotate(hashes ^ (words * P1), 23) * P2 + P3


def _mix1(hashes: U64, words: U64) -> U64:
    return _rotate(hashes ^ (words * P5), 11) * P1


def _rotate(words: U64, bits: int) -> U64:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _finish(hashes: U64) -> U64:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * P3
    return hashes ^ (hashes >> np.uint64(32))


def _values(block: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The value buffer of a fixed-width array, without a copy; what stands under a null is undefined."""
    return np.frombuffer(block.buffers()[1], dtype, len(block), block.offset * dtype.itemsize)


_HASHERS: dict[int, Hasher] = {
    type.id: hasher
    for hasher, types in (
        (lambda block, seeds: seeds, [pa.null()]),
        (lambda block, seeds: _hash_small(block.cast(pa.int32()), seeds), [pa.bool_()]),
        (_hash_small, [pa.int8(), pa.int16(), pa.int32(), pa.date32()]),
        (_hash_long, [pa.int64()]),
        (_hash_float, [pa.float32()]),
        (_hash_double, [pa.float64()]),
        (_hash_decimal, [pa.decimal32(1), pa.decimal64(1), pa.decimal128(1), pa.decimal256(1)]),
        (_hash_timestamp, [pa.timestamp("us")]),
        (_hash_text, [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]),
    )
    for type in types
}
