"""The border between Trimtab and the functions of its users: what goes wrong there, and what comes back."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from trimtab.errors import LogicError

PACKAGE = str(Path(__file__).resolve().parent.parent)


@contextmanager
def user_code(where: str) -> Iterator[None]:
    """Turn any exception inside into a `LogicError`: the user's own traceback first, then `where` it happened.

    `sys.exit()` counts as an exception: code in a task has nothing to exit from.
    """
    try:
        yield
    except LogicError:
        raise
    except (Exception, SystemExit) as error:
        raise LogicError(f"{own_traceback(error)}\n{where}") from error


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Put `where` it happened in front of a `LogicError` that does not know."""
    try:
        yield
    except LogicError as error:
        raise LogicError(f"{where}: {error}") from error


def own_traceback(error: BaseException) -> str:
    """The traceback without the frames of this package.

    Frames of Trimtab that the user's code called into stay out as well: the last line still says what was wrong.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(PACKAGE)]
    return "".join(
        [
            "Traceback (most recent call last):\n",
            *traceback.format_list(frames),
            *traceback.format_exception_only(error),
        ]
    ).rstrip()


def conform(table: object, schema: pa.Schema, what: str) -> pa.Table:
    """The table with exactly the columns and types of `schema`, or a `LogicError` that names the column.

    Columns are matched by name; types are cast where no value is lost.

    >>> conform(pa.table({"b": [1], "a": ["x"]}), pa.schema({"a": pa.string(), "b": pa.int64()}), "f").column_names
    ['a', 'b']
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise LogicError(f"{what} returned {type(table).__name__} instead of a pyarrow.Table.")
    if sorted(table.column_names) != sorted(schema.names):
        raise LogicError(f"{what} returned the columns {table.column_names}, but its output declares {schema.names}.")
    return pa.Table.from_arrays([_cast(table, field, what) for field in schema], schema=schema)


def _cast(table: pa.Table, field: pa.Field, what: str) -> pa.ChunkedArray:
    column = table.column(field.name)
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise LogicError(
            f"{what} returned column '{field.name}' as {column.type}, which does not fit the declared "
            f"{field.type}: {error}."
        ) from error
