"""What an operator's state looks like, and tables brought into that form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from trimtab.errors import StateError
from trimtab.state.keyhash import check_hashable


@dataclass(frozen=True)
class StateSchema:
    """Key columns, value columns and the number of slots of one operator, which errors name."""

    keys: pa.Schema
    values: pa.Schema
    slots: int
    operator: str = "?"

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise StateError(f"The operator '{self.operator}' has {self.slots} slots; it needs at least one.")
        if not len(self.keys):
            raise StateError(f"The operator '{self.operator}' has no key columns; it needs at least one.")
        names = [*self.keys.names, *self.values.names]
        for name in sorted({name for name in names if names.count(name) > 1}):
            raise StateError(f"The state of operator '{self.operator}' has two columns '{name}'; rename one of them.")
        for field in self.keys:
            check_hashable(field.type)
        object.__setattr__(self, "keys", _bare(self.keys))
        object.__setattr__(self, "values", _bare(self.values))

    @property
    def all(self) -> pa.Schema:
        """Key columns, then value columns."""
        return pa.schema([*self.keys, *self.values])

    def conform(self, table: pa.Table | pa.RecordBatch, columns: pa.Schema) -> list[pa.Array]:
        """The named columns as plain arrays of exactly their types; other columns are left out.

        Another layout of the same type (large strings, dictionaries, nulls of no type) is converted.
        """
        return [self._column(table, field) for field in columns]

    def _column(self, table: pa.Table | pa.RecordBatch, field: pa.Field) -> pa.Array:
        found = table.schema.get_all_field_indices(field.name)
        if len(found) != 1:
            raise StateError(
                f"The operator '{self.operator}' was handed rows with {len(found) or 'no'} columns '{field.name}'; its "
                f"state needs one of type {field.type}. The rows have {table.schema.names}."
            )
        column = flat(table.column(found[0]))
        if column.type == field.type:
            return column
        if _layout_of(column.type, field.type):
            return column.cast(field.type)
        raise StateError(
            f"The column '{field.name}' of the state of operator '{self.operator}' has type {field.type}, but the rows "
            f"handed in have {column.type}; cast it."
        )


def empty_columns(schema: pa.Schema, rows: int) -> list[pa.Array]:
    """Nothing but nulls."""
    return [pa.nulls(rows, field.type) for field in schema]


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array, copied only if it is in several pieces."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def as_table(columns: Iterable[pa.Array], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays(list(columns), schema=schema)


def _bare(schema: pa.Schema) -> pa.Schema:
    """Nullable and without metadata: a tombstone has null values, and metadata would get into the bytes of segments."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _layout_of(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(given):
        return True
    if pa.types.is_dictionary(given):
        return given.value_type == wanted or _layout_of(given.value_type, wanted)
    return _kind(given) is not None and _kind(given) == _kind(wanted)


def _kind(type: pa.DataType) -> str | None:
    if pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return "text"
    if pa.types.is_binary(type) or pa.types.is_large_binary(type) or pa.types.is_binary_view(type):
        return "bytes"
    return None
