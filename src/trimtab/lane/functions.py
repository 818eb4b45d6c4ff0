"""The aggregate functions: what each keeps as state, and how states come about, combine, merge and finish.

Results and null handling follow Spark's functions of the same names: `sum`, `min`, `max` and `mean` pass over nulls
and are null for nothing but nulls, NaN is greater than any number, `first` and `last` take nulls as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trimtab.errors import FlowError, LogicError

Column: TypeAlias = pa.ChunkedArray
Call = tuple[str, str]
"""A column and the name of the Arrow function that reduces it over a group."""

POSITION = "__trimtab_position"
GREATEST = 2**63 - 1
DIGITS = 38
"""As many as a decimal of Spark's has at most."""


@dataclass(frozen=True)
class Function:
    """One aggregate of an operator; `name` is its output column, `column` and `type` what it reads."""

    name: str
    column: str
    type: pa.DataType

    combining: ClassVar[str]
    """The Arrow function that combines partial states; what makes them from rows, unless `calls` says other."""

    @property
    def fields(self) -> list[pa.Field]:
        """The state columns."""
        return [pa.field(self.name, self.result)]

    @property
    def result(self) -> pa.DataType:
        """The type of the output column."""
        return self.type

    def feed(self, rows: pa.Table) -> dict[str, Column]:
        """What goes into the state columns, from raw rows."""
        return {self.name: rows.column(self.column)}

    def calls(self, combining: bool) -> list[Call]:
        """How each state column is reduced over the rows, or over the partial states, of a key."""
        return [(field.name, self.combining) for field in self.fields]

    def widen(self, column: Column) -> Column:
        """A fed column in a form that reduces without loss."""
        return column

    def settle(self, fed: Mapping[str, Column], reduced: list[Column]) -> list[Column]:
        """State columns from reduced ones."""
        return [self._narrow(column, field.type) for column, field in zip(reduced, self.fields, strict=True)]

    def merge(self, old: list[Column], new: list[Column], found: pa.Array) -> list[Column]:
        """The state after `new`, which came later. Where nothing was `found` the old columns are null."""
        raise NotImplementedError

    def finish(self, state: list[Column]) -> Column:
        """The output column."""
        return state[0]

    def _narrow(self, column: Column, wanted: pa.DataType) -> Column:
        try:
            return column if column.type == wanted else column.cast(wanted)
        except pa.ArrowInvalid as error:
            raise too_large(self.name, wanted) from error


def too_large(name: str, wanted: pa.DataType) -> LogicError:
    """The error of a sum that its type cannot hold."""
    wider = "double, which rounds" if pa.types.is_decimal(wanted) else "a wider type, say decimal"
    return LogicError(f"The aggregate '{name}' is too large for {wanted}: cast its column to {wider}.")


def add(name: str, old: Column, new: Column) -> Column:
    """Both added where both are there, the one that is there otherwise."""
    try:
        total = pc.add_checked(roomy(old), roomy(new))
        return pc.coalesce(total if total.type == old.type else total.cast(old.type), old, new)
    except pa.ArrowInvalid as error:
        raise too_large(name, old.type) from error


def roomy(column: Column) -> Column:
    """Decimals of the most digits as longer ones: Arrow wants a digit more for adding two."""
    full = pa.types.is_decimal(column.type) and column.type.precision == DIGITS
    return column.cast(pa.decimal256(DIGITS, column.type.scale)) if full else column


def widen_sum(column: Column) -> Column:
    """Whole numbers and decimals in a longer type if their sum might not fit: Arrow's own would wrap around in silence.

    >>> widen_sum(pa.chunked_array([[2**62, 2**62]])).type, widen_sum(pa.chunked_array([[1, 2]])).type
    (Decimal128Type(decimal128(19, 0)), DataType(int64))
    """
    if pa.types.is_integer(column.type):
        return column.cast(pa.decimal128(19, 0)) if reach(column) > GREATEST else column
    if not pa.types.is_decimal(column.type) or column.type.precision + len(str(len(column))) <= DIGITS:
        return column
    scale = column.type.scale
    return column.cast(pa.decimal256(DIGITS, scale)) if reach(column) * 10**scale >= 10**DIGITS else column


def reach(column: Column) -> Fraction:
    """How far from zero the sum of a column can be at most."""
    bounds = pc.min_max(column)
    return len(column) * max(abs(Fraction(bounds[side].as_py() or 0)) for side in ("min", "max"))


class Sum(Function):
    """The sum: whole numbers as long, fractions as double, decimals with ten more digits."""

    combining = "sum"

    @property
    def result(self) -> pa.DataType:
        if pa.types.is_decimal(self.type):
            return pa.decimal128(min(38, self.type.precision + 10), self.type.scale)
        return pa.int64() if pa.types.is_integer(self.type) else pa.float64()

    def widen(self, column: Column) -> Column:
        return widen_sum(column)

    def merge(self, old: list[Column], new: list[Column], found: pa.Array) -> list[Column]:
        return [add(self.name, old[0], new[0])]


class Count(Function):
    """How many rows; with a column, how many of its values are not null."""

    combining = "sum"

    @property
    def result(self) -> pa.DataType:
        return pa.int64()

    def feed(self, rows: pa.Table) -> dict[str, Column]:
        return {self.name: rows.column(self.column)} if self.column else {}

    def calls(self, combining: bool) -> list[Call]:
        if combining:
            return [(self.name, "sum")]
        return [(self.name, "count")] if self.column else [("", "count_all")]

    def merge(self, old: list[Column], new: list[Column], found: pa.Array) -> list[Column]:
        return [add(self.name, old[0], new[0])]


class Extreme(Function):
    """The least or the greatest value, floats in Spark's order: NaN is above everything."""

    pick: ClassVar[Callable[..., Column]]

    def widen(self, column: Column) -> Column:
        return sortable(column) if pa.types.is_floating(column.type) else column

    def settle(self, fed: Mapping[str, Column], reduced: list[Column]) -> list[Column]:
        return [self._unsortable(reduced[0])]

    def merge(self, old: list[Column], new: list[Column], found: pa.Array) -> list[Column]:
        return [self._restored(type(self).pick(self._comparable(old[0]), self._comparable(new[0])))]

    def _comparable(self, column: Column) -> Column:
        """The column in a type of which Arrow can pick one of two, in the same order."""
        if pa.types.is_boolean(self.type):
            return column.cast(pa.uint8())
        return column.cast(pa.int64()) if pa.types.is_timestamp(self.type) else self.widen(column)

    def _restored(self, column: Column) -> Column:
        return self._unsortable(column) if pa.types.is_floating(self.type) else column.cast(self.type)

    def _unsortable(self, column: Column) -> Column:
        return unsortable(column, self.type) if pa.types.is_floating(self.type) else column


class Min(Extreme):
    """The least value."""

    combining = "min"
    pick = staticmethod(pc.min_element_wise)


class Max(Extreme):
    """The greatest value."""

    combining = "max"
    pick = staticmethod(pc.max_element_wise)


def sortable(column: Column) -> Column:
    """Floats as whole numbers in the same order, NaN last.

    >>> sortable(pa.chunked_array([[1.5, -2.0, float("nan"), None]])).to_pylist()[1] < 0
    True
    """
    whole = column.cast(pa.float64()).combine_chunks()
    floats = pc.fill_null(whole, 0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(floats), np.nan, floats + 0.0).view(np.int64)
    ordered = np.where(bits < 0, bits ^ np.int64(GREATEST), bits)
    return pa.chunked_array([pa.array(ordered, mask=whole.is_null().to_numpy(zero_copy_only=False))])


def unsortable(column: Column, wanted: pa.DataType) -> Column:
    """What `sortable` was made from."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    bits = pc.fill_null(whole, 0).to_numpy(zero_copy_only=False)
    floats = np.where(bits < 0, bits ^ np.int64(GREATEST), bits).view(np.float64)
    mask = whole.is_null().to_numpy(zero_copy_only=False)
    return pa.chunked_array([pa.array(floats, mask=mask).cast(wanted, safe=False)])


class Mean(Function):
    """The average: double, or for decimals four more digits after the point."""

    combining = "sum"

    @property
    def fields(self) -> list[pa.Field]:
        return [pa.field(f"{self.name}.sum", self._sum), pa.field(f"{self.name}.count", pa.int64())]

    @property
    def result(self) -> pa.DataType:
        if not pa.types.is_decimal(self.type):
            return pa.float64()
        return pa.decimal128(min(38, self.type.precision + 4), min(38, self.type.scale + 4))

    @property
    def _sum(self) -> pa.DataType:
        if not pa.types.is_decimal(self.type):
            return pa.float64()
        return pa.decimal128(min(38, self.type.precision + 10), self.type.scale)

    def feed(self, rows: pa.Table) -> dict[str, Column]:
        column = rows.column(self.column)
        values = column if pa.types.is_decimal(self.type) else column.cast(pa.float64(), safe=False)
        return {f"{self.name}.sum": values, f"{self.name}.count": column}

    def widen(self, column: Column) -> Column:
        return widen_sum(column) if pa.types.is_decimal(column.type) else column

    def calls(self, combining: bool) -> list[Call]:
        return [(f"{self.name}.sum", "sum"), (f"{self.name}.count", "sum" if combining else "count")]

    def merge(self, old: list[Column], new: list[Column], found: pa.Array) -> list[Column]:
        return [add(self.name, *pair) for pair in zip(old, new, strict=True)]

    def finish(self, state: list[Column]) -> Column:
        total, count = state
        count = pc.if_else(pc.equal(count, 0), None, count)
        if not pa.types.is_decimal(self.type):
            return pc.divide(total, count.cast(pa.float64()))
        # Arrow divides to twenty more digits than the sum has; then rounded half up, as Spark rounds.
        exact = pc.divide(
            total.cast(pa.decimal256(total.type.precision, total.type.scale)), count.cast(pa.decimal256(19, 0))
        )
        rounded = pc.round(exact, ndigits=self.result.scale, round_mode="half_towards_infinity")
        return self._narrow(rounded, self.result)


class Positional(Function):
    """A value picked by where its row stands; nulls count as values."""

    def calls(self, combining: bool) -> list[Call]:
        return [(POSITION, self.combining)]

    def settle(self, fed: Mapping[str, Column], reduced: list[Column]) -> list[Column]:
        return [fed[self.name].take(reduced[0])]


class First(Positional):
    """The value of the first row of the key."""

    combining = "min"

    def merge(self, old: list[Column], new: list[Column], found: pa.Array) -> list[Column]:
        return [pc.if_else(found, old[0], new[0])]


class Last(Positional):
    """The value of the last row of the key."""

    combining = "max"

    def merge(self, old: list[Column], new: list[Column], found: pa.Array) -> list[Column]:
        return new


FUNCTIONS: dict[str, type[Function]] = {
    "sum": Sum,
    "count": Count,
    "min": Min,
    "max": Max,
    "mean": Mean,
    "first": First,
    "last": Last,
}


def resolve(kind: str, name: str, column: str, read: pa.DataType) -> Function:
    """The function for a column of some type, or a `FlowError` if it makes no sense of that type."""
    numeric = pa.types.is_integer(read) or pa.types.is_floating(read) or pa.types.is_decimal(read)
    ordered = not (pa.types.is_nested(read) or pa.types.is_null(read) or pa.types.is_duration(read))
    if (kind in ("sum", "mean") and not numeric) or (kind in ("min", "max") and not ordered):
        raise FlowError(f"The aggregate '{name}' asks for the {kind} of column '{column}', which has type {read}.")
    return FUNCTIONS[kind](name, column, read)
