"""Spark's schemas as Arrow's, and back from DDL."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from trimtab.errors import FlowError
from trimtab.lane.program import RESERVED


def arrow_schema(schema: StructType, where: str) -> pa.Schema:
    """The Arrow schema of a Spark schema: every column nullable, and what is nested in it, instants in UTC.

    Raises a `FlowError` for names that clash or are Trimtab's own, and for types without an Arrow form.
    """
    names = schema.names
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise FlowError(f"{where}: column '{twice}' is there twice; rename one of them.")
    if reserved := next((name for name in names if name.startswith(RESERVED)), None):
        raise FlowError(f"{where}: column '{reserved}' begins with '{RESERVED}', which Trimtab keeps for itself.")
    try:
        arrow = to_arrow_schema(schema.toNullable(), timezone="UTC")
    except PySparkException as error:
        raise FlowError(f"{where}: {error}") from error
    return pa.schema([pa.field(field.name, field.type) for field in arrow])


def refuse_collated(schema: StructType, columns: tuple[str, ...], where: str) -> None:
    """A collation makes different bytes equal, and the slot of a key comes from its bytes."""
    for field in schema.fields:
        collation = getattr(field.dataType, "collation", "UTF8_BINARY")
        if field.name in columns and collation != "UTF8_BINARY":
            raise FlowError(
                f"{where}: key column '{field.name}' has the collation {collation}, under which different strings are "
                "equal. Key by something that is equal byte for byte, say lower(...) cast to string."
            )


def from_ddl(ddl: str, where: str) -> StructType:
    """The Spark schema of a DDL string such as "total long, note string"."""
    try:
        parsed = StructType.fromDDL(ddl)
    except Exception as error:
        raise FlowError(f"{where}: {ddl!r} is not a list of columns in Spark's DDL: {error}") from error
    if not isinstance(parsed, StructType):
        raise FlowError(f"{where}: {ddl!r} is a single type; name its columns, as in 'total long, note string'.")
    return parsed


def arrow_from_ddl(ddl: str, where: str) -> pa.Schema:
    """The Arrow schema of a DDL string."""
    return arrow_schema(from_ddl(ddl, where), where)
