"""`hash_keys` against a plain reference per value, against golden values, and against Spark itself."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from trimtab.state.keyhash import BLOCK, check_hashable, hash_keys, slot_of

LAYOUTS = ("plain", "sliced", "chunked", "dictionary", "sliced dictionary")


@dataclass(frozen=True)
class Kind:
    """A key type: its values, how Arrow holds them, and the bytes Spark hashes for one."""

    type: pa.DataType
    values: st.SearchStrategy[Any]
    payload: Callable[[Any], bytes]

    def array(self, values: list[Any]) -> pa.Array:
        if pa.types.is_temporal(self.type):
            return pa.array(values, pa.int32() if self.type.bit_width == 32 else pa.int64()).view(self.type)
        return pa.array(values, self.type)


def signed(width: int) -> Callable[[int], bytes]:
    return lambda value: int(value).to_bytes(width, "little", signed=True)


def ieee(code: str, nan: bytes) -> Callable[[float], bytes]:
    return lambda value: nan if math.isnan(value) else struct.pack(code, value or 0.0)


def integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.integers(low, high) | st.sampled_from([low, -1, 0, 1, high])


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    top = 10**precision - 1
    edges = {sign * 2**power + step for power in range(128) for sign in (-1, 1) for step in (-1, 0, 1)}
    unscaled = st.integers(-top, top) | st.sampled_from(sorted(edge for edge in edges if abs(edge) <= top))
    return unscaled.map(lambda value: Decimal(f"{value}e-{scale}"))


def unscaled_bytes(precision: int, scale: int) -> Callable[[Decimal], bytes]:
    def payload(value: Decimal) -> bytes:
        unscaled = int(f"{value:.{scale}f}".replace(".", ""))
        if precision <= 18:
            return unscaled.to_bytes(8, "little", signed=True)
        bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
        return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)

    return payload


def decimal_kind(type: pa.DataType) -> Kind:
    return Kind(type, decimals(type.precision, type.scale), unscaled_bytes(type.precision, type.scale))


FLOATS = st.floats(width=32) | st.sampled_from([-0.0, 0.0, math.nan, -math.nan, math.inf, -math.inf])
DOUBLES = st.floats() | st.sampled_from([-0.0, 5e-324, math.nan, -math.nan])
SECONDS = st.integers(-(2**63) // 10**6 + 1, 2**63 // 10**6 - 1)
MILLIS = st.integers(-(2**63) // 10**3 + 1, 2**63 // 10**3 - 1)
SCALARS = [
    Kind(pa.null(), st.none(), signed(8)),
    Kind(pa.bool_(), st.booleans(), signed(4)),
    Kind(pa.int8(), integers(8), signed(4)),
    Kind(pa.int16(), integers(16), signed(4)),
    Kind(pa.int32(), integers(32), signed(4)),
    Kind(pa.int64(), integers(64), signed(8)),
    Kind(pa.float32(), FLOATS, ieee("<f", b"\0\0\xc0\x7f")),
    Kind(pa.float64(), DOUBLES, ieee("<d", b"\0\0\0\0\0\0\xf8\x7f")),
    Kind(pa.date32(), integers(32), signed(4)),
    Kind(pa.timestamp("us"), integers(64), signed(8)),
    Kind(pa.timestamp("us", "Europe/Rome"), integers(64), signed(8)),
    Kind(pa.timestamp("ns"), integers(64), lambda value: signed(8)(value // 1000)),
    Kind(pa.timestamp("ms", "UTC"), MILLIS, lambda value: signed(8)(value * 1000)),
    Kind(pa.timestamp("s"), SECONDS, lambda value: signed(8)(value * 1_000_000)),
]
DECIMALS = [
    decimal_kind(pa.decimal128(9, 2)),
    decimal_kind(pa.decimal128(18, 0)),
    decimal_kind(pa.decimal128(18, 18)),
    decimal_kind(pa.decimal128(19, 3)),
    decimal_kind(pa.decimal128(38, 0)),
    decimal_kind(pa.decimal128(38, 10)),
]
# Spark has no column of these types; they are hashed as the decimal of the same precision.
OTHER_DECIMALS = [
    decimal_kind(pa.decimal32(9, 2)),
    decimal_kind(pa.decimal64(18, 4)),
    decimal_kind(pa.decimal256(18, 4)),
    decimal_kind(pa.decimal256(38, 10)),
]
TEXT = st.text(max_size=12) | st.text(min_size=20, max_size=90)
BINARY = st.binary(max_size=12) | st.binary(min_size=20, max_size=200)
TEXTS = [
    Kind(pa.string(), TEXT, str.encode),
    Kind(pa.large_string(), TEXT, str.encode),
    Kind(pa.binary(), BINARY, bytes),
    Kind(pa.large_binary(), BINARY, bytes),
]
KINDS = SCALARS + DECIMALS + OTHER_DECIMALS + TEXTS


def as_signed(hashed: int) -> int:
    return hashed - 2**64 if hashed >= 2**63 else hashed


def reference(kinds: list[Kind], rows: list[tuple[Any, ...]]) -> list[int]:
    """Value by value, with the xxhash package."""

    def chained(row: tuple[Any, ...]) -> int:
        seed = 42
        for kind, value in zip(kinds, row, strict=True):
            seed = seed if value is None else xxhash.xxh64_intdigest(kind.payload(value), seed)
        return as_signed(seed)

    return [chained(row) for row in rows]


def laid_out(array: pa.Array, layout: str) -> pa.Array | pa.ChunkedArray:
    """The same values, held in another way."""
    rows = len(array)
    if "sliced" in layout:
        array = pa.concat_arrays([array, array, array])
    if "dictionary" in layout and not pa.types.is_null(array.type):
        backwards = np.arange(len(array), dtype=np.int32)[::-1]
        array = pa.DictionaryArray.from_arrays(backwards, array.take(pa.array(backwards)))
    if "sliced" in layout:
        return array.slice(rows, rows)
    if layout == "chunked":
        return pa.chunked_array([array[: rows // 3], array[:0], array[rows // 3 :]], array.type)
    return array


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Kind], list[tuple[Any, ...]], list[str]]:
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    rows = draw(st.lists(st.tuples(*(st.none() | kind.values for kind in kinds)), max_size=12))
    return kinds, rows, [draw(st.sampled_from(LAYOUTS)) for _ in kinds]


@settings(max_examples=300, deadline=None)
@given(tables())
def test_any_columns_in_any_layout_hash_as_the_reference(
    table: tuple[list[Kind], list[tuple[Any, ...]], list[str]],
) -> None:
    kinds, rows, layouts = table
    columns = [
        laid_out(kind.array([row[i] for row in rows]), layout)
        for i, (kind, layout) in enumerate(zip(kinds, layouts, strict=True))
    ]
    assert hash_keys(columns).tolist() == reference(kinds, rows)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.type))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_type_hashes_as_the_reference(kind: Kind, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | kind.values, min_size=1, max_size=40))
    expected = reference([kind], [(value,) for value in values])
    for layout in LAYOUTS:
        assert hash_keys([laid_out(kind.array(values), layout)]).tolist() == expected, layout


def test_every_length_of_text_and_more_rows_than_a_block() -> None:
    rng = np.random.default_rng(7)
    lengths = [*range(300), 1023, 1024, 1025, 4096, 40_000, *rng.integers(0, 40, BLOCK).tolist()]
    values = [rng.bytes(length) for length in lengths]
    seeds = list(range(len(values)))
    kinds = [Kind(pa.int64(), integers(64), signed(8)), Kind(pa.binary(), BINARY, bytes)]
    expected = reference(kinds, list(zip(seeds, values, strict=True)))
    assert hash_keys([pa.array(seeds), pa.array(values)]).tolist() == expected


def test_what_stands_under_a_null_does_not_count() -> None:
    validity = pa.py_buffer(b"\x05")
    longs = pa.Array.from_buffers(pa.int64(), 3, [validity, pa.py_buffer(struct.pack("<3q", 1, 2, 3))])
    texts = pa.Array.from_buffers(
        pa.string(), 3, [validity, pa.py_buffer(struct.pack("<4i", 0, 1, 2, 3)), pa.py_buffer(b"abc")]
    )
    assert hash_keys([longs]).tolist() == hash_keys([pa.array([1, None, 3])]).tolist()
    assert hash_keys([texts]).tolist() == hash_keys([pa.array(["a", None, "c"])]).tolist()


SINGLES = np.array([0x7F80_0001, 0x7FC0_0000, 0x7FFF_FFFF, 0xFF80_0001, 0xFFC0_0000, 0xFFFF_FFFF], np.uint32)
DOUBLED = np.array([0x7FF << 52 | 1, 0x7FF8 << 48, 2**63 - 1, 0xFFF << 52 | 1, 0xFFF8 << 48, 2**64 - 1], np.uint64)
NANS = pa.table({"single": pa.array(SINGLES).view(pa.float32()), "double": pa.array(DOUBLED).view(pa.float64())})


def test_every_nan_hashes_as_the_canonical_one() -> None:
    for column in NANS.columns:
        assert set(hash_keys([column]).tolist()) == set(hash_keys([pa.array([math.nan], column.type)]).tolist())


def test_nulls_inside_a_dictionary_are_nulls() -> None:
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.uint8()), pa.array([None, "a"]))
    assert hash_keys([encoded]).tolist() == hash_keys([pa.array([None, "a", None, None], pa.string())]).tolist()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.type))
def test_no_rows_no_hashes(kind: Kind) -> None:
    for column in (kind.array([]), pa.chunked_array([], kind.type), kind.array([None, None])[2:]):
        hashes = hash_keys([column, column])
        assert hashes.dtype == np.int64
        assert hashes.size == 0
        assert slot_of(hashes, 8).size == 0


REFUSED = [
    pa.list_(pa.int64()),
    pa.struct({"a": pa.int64()}),
    pa.map_(pa.string(), pa.int64()),
    pa.dictionary(pa.int32(), pa.list_(pa.int64())),
    pa.uint64(),
    pa.float16(),
    pa.date64(),
    pa.time64("us"),
    pa.duration("us"),
    pa.string_view(),
    pa.binary(4),
    pa.decimal256(40, 2),
    pa.decimal128(10, -2),
    pa.decimal128(2, 4),
    pa.uuid(),
]


@pytest.mark.parametrize("type", REFUSED, ids=str)
def test_other_types_are_refused_with_a_sentence(type: pa.DataType) -> None:
    named = type.value_type if pa.types.is_dictionary(type) else type
    with pytest.raises(TypeError, match=r"^A key column cannot be of type .*\.$") as refusal:
        check_hashable(type)
    assert str(named) in str(refusal.value)
    assert ("key columns of their own" in str(refusal.value)) == pa.types.is_nested(named)
    with pytest.raises(TypeError):
        hash_keys([pa.nulls(0, type)])


def test_every_listed_type_is_hashable() -> None:
    for kind in KINDS:
        check_hashable(kind.type)
        check_hashable(pa.dictionary(pa.int16(), kind.type))


def test_bad_calls_are_refused() -> None:
    with pytest.raises(ValueError, match="one or more columns"):
        hash_keys([])
    with pytest.raises(ValueError, match=r"one length, not \[1, 2\]"):
        hash_keys([pa.array([1]), pa.array([1, 2])])
    for slots in (0, -1, 2**31):
        with pytest.raises(ValueError, match="slots"):
            slot_of(np.zeros(1, np.int64), slots)
    with pytest.raises(pa.ArrowInvalid, match="out of bounds"):
        hash_keys([pa.array([2**62]).view(pa.timestamp("s"))])


@given(st.lists(integers(64)), st.integers(1, 2**31 - 1))
def test_slots_are_the_non_negative_remainder(hashes: list[int], slots: int) -> None:
    found = slot_of(np.array(hashes, np.int64), slots)
    assert found.dtype == np.int32
    assert found.tolist() == [hashed % slots for hashed in hashes]


GOLDEN = pa.table(
    {
        "boolean": pa.array([True, False, None]),
        "byte": pa.array([127, -128, None], pa.int8()),
        "short": pa.array([32_767, -32_768, None], pa.int16()),
        "int": pa.array([2**31 - 1, -(2**31), None], pa.int32()),
        "long": pa.array([2**63 - 1, -(2**63), None]),
        "float": pa.array([1.5, -0.0, math.nan], pa.float32()),
        "double": pa.array([1.5, -0.0, math.nan]),
        "small decimal": pa.array([Decimal("1234.56"), Decimal("-0.01"), None], pa.decimal128(18, 2)),
        "large decimal": pa.array([Decimal("1234.56"), Decimal(f"-{2**127 // 10**4}"), None], pa.decimal128(38, 2)),
        "string": pa.array(["", "trimtab", "a key of more than thirty-two bytes, and some Ünïcödé"]),
        "binary": pa.array([b"\x00", bytes(range(256)), None]),
        "date": pa.array([0, -719_162, None], pa.int32()).view(pa.date32()),
        "timestamp": pa.array([1, -62_135_596_800_000_000, None]).view(pa.timestamp("us", "UTC")),
        "timestamp_ntz": pa.array([1, -62_135_596_800_000_000, None]).view(pa.timestamp("us")),
        "null": pa.nulls(3),
    }
)
GOLDEN_HASHES = {
    "boolean": [-6698625589789238999, 3614696996920510707, 42],
    "byte": [8632298611707923906, 4160238337661960656, 42],
    "short": [8952525448871805501, -904511417458573795, 42],
    "int": [1508894993788531228, 2073849959933241805, 42],
    "long": [-3246596055638297850, -8619748838626508300, 42],
    "float": [6163473420726370430, 3614696996920510707, 2692338816207849720],
    "double": [7738255526519901366, -5252525462095825812, -3127944061524951246],
    "small decimal": [6486980519540009875, 3858142552250413010, 42],
    "large decimal": [9014312435353544380, 7807172051089414499, 42],
    "string": [-7444071767201028348, -3758332665822398157, 3114427913838424865],
    "binary": [-8959994473701255385, -2156533592262354883, 42],
    "date": [3614696996920510707, 6773727150484150602, 42],
    "timestamp": [-7001672635703045582, 4148024589635468106, 42],
    "timestamp_ntz": [-7001672635703045582, 4148024589635468106, 42],
    "null": [42, 42, 42],
}
GOLDEN_CHAIN = [5801817674168704216, -8438384773167211570, 9207430935605574404]
GOLDEN_SLOTS = [216, 206, 4]


def test_golden_values_of_the_checkpoint_format() -> None:
    """A failure here means that checkpoints already written can no longer be read. Mend the code, not the values."""
    assert {name: hash_keys([GOLDEN[name]]).tolist() for name in GOLDEN.column_names} == GOLDEN_HASHES
    chain = hash_keys(GOLDEN.columns)
    assert chain.tolist() == GOLDEN_CHAIN
    assert slot_of(chain, 256).tolist() == GOLDEN_SLOTS


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    # One that other tests share is theirs to stop.
    shared = SparkSession.getActiveSession()
    builder = SparkSession.builder.master("local[1]").appName("keyhash").config("spark.ui.enabled", "false")
    session = shared or builder.getOrCreate()
    yield session
    if shared is None:
        session.stop()


def spark_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table, from_arrow_schema(table.schema))


def spark_hashes(frame: DataFrame, keys: list[list[str]], slots: int) -> pa.Table:
    """Columns `h0`, `s0`, ...: Spark's hash and slot of each list of key columns."""
    hashes = [sf.xxhash64(*(sf.col(f"`{name}`") for name in names)) for names in keys]
    slotted = [sf.pmod(hashed, sf.lit(slots)).alias(f"s{i}") for i, hashed in enumerate(hashes)]
    return frame.select(*(hashed.alias(f"h{i}") for i, hashed in enumerate(hashes)), *slotted).toArrow()


def assert_as_spark(frame: DataFrame, table: pa.Table, keys: list[list[str]], slots: int = 250) -> None:
    found = spark_hashes(frame, keys, slots)
    for i, names in enumerate(keys):
        ours = hash_keys([table[name] for name in names])
        assert ours.tolist() == found[f"h{i}"].to_pylist(), names
        assert slot_of(ours, slots).tolist() == found[f"s{i}"].to_pylist(), names


def random_column(kind: Kind, rows: int, rng: np.random.Generator) -> pa.Array:
    """Edge cases first, then values with many bits set; one in eight null."""
    if pa.types.is_null(kind.type):
        return pa.nulls(rows)
    values = edges_and_more(kind.type, rng.integers(-(2**63), 2**63, rows).tolist(), rng)[:rows]
    return kind.array([None if rng.random() < 0.125 else value for value in values])


def edges_and_more(type: pa.DataType, wild: list[int], rng: np.random.Generator) -> list[Any]:
    if pa.types.is_decimal(type):
        top = 10**type.precision - 1
        edges = [sign * min(2**power + step, top) for power in range(127) for sign in (-1, 1) for step in (-1, 0)]
        return [Decimal(f"{value}e-{type.scale}") for value in [top, -top, 0, *edges, *(w**3 % top for w in wild)]]
    if type in (pa.string(), pa.large_string()):
        texts = ["".join(map(chr, rng.integers(32, 0x2FF, length))) for length in [*range(120), 5000]]
        return texts + [f"user-{w}" for w in wild]
    if type in (pa.binary(), pa.large_binary()):
        return [rng.bytes(length) for length in [*range(120), 5000, *(w % 40 for w in wild)]]
    if pa.types.is_floating(type):
        special = [-0.0, 0.0, math.nan, -math.nan, math.inf, -math.inf, 1e-45, 5e-324]
        return [*special, *np.ldexp(np.array(wild, float), rng.integers(-200, 60, len(wild))).tolist()]
    if pa.types.is_boolean(type):
        return [w % 2 == 0 for w in wild]
    return integer_edges_and_more(type, wild)


def integer_edges_and_more(type: pa.DataType, wild: list[int]) -> list[int]:
    # Close to the limit of nanoseconds PySpark's own rounding overflows.
    unit = {"s": 10**6, "ms": 10**3}.get(getattr(type, "unit", ""), 1)
    top = 2 ** (type.bit_width - 1) // unit - (1000 if type == pa.timestamp("ns") else 1)
    edges = [top, -top, -top - (unit == 1), -1, 0, 1, 999, -999, -1000, -1001]
    return [edge for edge in edges if abs(edge) <= top + (unit == 1)] + [w % (2 * top) - top for w in wild]


@pytest.fixture(scope="module")
def wide() -> pa.Table:
    """A column of every type Spark has, named by its type."""
    rng = np.random.default_rng(11)
    return pa.table({str(kind.type): random_column(kind, 700, rng) for kind in SCALARS + DECIMALS + TEXTS})


@pytest.mark.parametrize("codegen", ["CODEGEN_ONLY", "NO_CODEGEN"])
def test_every_type_alone_and_chained_is_as_spark(spark: SparkSession, wide: pa.Table, codegen: str) -> None:
    names = wide.column_names
    chained = [names, names[::-1], names[::3], ["int64", "string"], ["string", "int64", "decimal128(38, 10)"]]
    spark.conf.set("spark.sql.codegen.factoryMode", codegen)
    spark.conf.set("spark.sql.codegen.wholeStage", str(codegen == "CODEGEN_ONLY").lower())
    try:
        assert_as_spark(spark_frame(spark, wide), wide, [[name] for name in names] + chained)
    finally:
        spark.conf.unset("spark.sql.codegen.factoryMode")
        spark.conf.unset("spark.sql.codegen.wholeStage")


def test_golden_values_are_spark_values(spark: SparkSession) -> None:
    names = GOLDEN.column_names
    assert_as_spark(spark_frame(spark, GOLDEN), GOLDEN, [[name] for name in names] + [names], slots=256)


def test_every_nan_is_as_spark(spark: SparkSession) -> None:
    assert_as_spark(spark_frame(spark, NANS), NANS, [["single"], ["double"], ["single", "double"]])


def test_rows_made_by_spark_hash_alike_on_both_sides(spark: SparkSession) -> None:
    """The way of real rows: computed in the JVM, hashed there and, as the Arrow that Spark hands out, here."""
    n = "(id * 7919 - 400000)"
    frame = spark.range(0, 300, 1, 1).selectExpr(
        f"cast({n} as decimal(38, 0)) * cast({n} as decimal(18, 0)) as product",
        f"cast({n} / 7 as decimal(38, 10)) as quotient",
        f"cast({n} as decimal(19, 0)) as whole",
        f"cast(cast({n} as decimal(38, 6)) as decimal(12, 2)) as narrowed",
        "cast('-0.0' as double) * id as zero",
        "cast('NaN' as float) as nan",
        f"timestamp_micros({n} * 123456789) as at",
        f"timestamp_ntz '1582-10-04 00:00:00' + make_dt_interval(0, 0, 0, {n}) as local",
        f"date_add(date '1969-12-31', cast({n} as int)) as day",
        "cast('ab' as char(5)) as padded",
        "if(id % 5 = 0, null, repeat('ß', cast(id % 70 as int))) as text",
        "null as nothing",
    )
    table = frame.toArrow()
    assert_as_spark(frame, table, [[name] for name in table.column_names] + [table.column_names])
