"""The aggregates that `KeyedStream.aggregate` takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Aggregate:
    """A kind of aggregate and the column it reads; without a column it counts rows."""

    kind: str
    column: str = ""


def sum(column: str) -> Aggregate:
    """The sum of a number column; null if all of its values are null."""
    return Aggregate("sum", column)


def count(column: str = "") -> Aggregate:
    """How many rows, or how many values of a column are not null."""
    return Aggregate("count", column)


def min(column: str) -> Aggregate:
    """The least value."""
    return Aggregate("min", column)


def max(column: str) -> Aggregate:
    """The greatest value; NaN is greater than any number."""
    return Aggregate("max", column)


def mean(column: str) -> Aggregate:
    """The average of a number column."""
    return Aggregate("mean", column)


def first(column: str) -> Aggregate:
    """The value in the first row of the key, null included."""
    return Aggregate("first", column)


def last(column: str) -> Aggregate:
    """The value in the latest row of the key, null included."""
    return Aggregate("last", column)
