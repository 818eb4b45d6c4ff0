"""What is refused before a start touches its checkpoint: one that fails must not overtake a run that is well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import chain

from pyspark.cloudpickle import dumps
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from trimtab.errors import FlowError
from trimtab.lane.program import Program
from trimtab.spark.compile import Compiled, SinkPlan
from trimtab.spark.engine import Engine
from trimtab.spark.failures import brief


def check_not_running(session: SparkSession, flow: str) -> None:
    """A session runs one query of a name."""
    if any(query.name == flow for query in session.streams.active):
        raise FlowError(
            f"Flow '{flow}': a query of this name is running in this Spark session. Stop it before you start it anew, "
            "or give another flow another name."
        )


def check_sinks(session: SparkSession, compiled: Compiled) -> None:
    """The columns that sinks get have to be there and have names of their own."""
    as_it_is = session.conf.get("spark.sql.caseSensitive") == "true"
    for sink in compiled.sinks:
        where = f"Flow '{compiled.program.flow}', sink '{sink.name}'"
        schema = from_arrow_schema(compiled.program.leaves[sink.leaf].schema)
        names = _expressed(session, sink, schema, where)
        _check_names(names if as_it_is else [name.lower() for name in names], names, where)
        _check_reserved(sink, names, where)


def engine_for(spark: SparkSession, compiled: Compiled) -> Engine:
    """The engine; FlowError when something of the flow cannot travel to Spark's tasks."""
    try:
        return Engine(spark, compiled)
    except Exception as error:
        raise FlowError(
            f"Flow '{compiled.program.flow}': {_stays(compiled.program)} cannot travel to Spark's tasks: "
            f"{brief(error)}. Locks, connections, sessions and open files stay here: make them where they are used."
        ) from error


def _expressed(session: SparkSession, sink: SinkPlan, schema: StructType, where: str) -> list[str]:
    """The columns that a sink gets."""
    if not sink.expressions:
        return schema.names
    try:
        empty = session.createDataFrame([], schema)
        return reduce(lambda frame, express: express(frame), sink.expressions, empty).columns
    except Exception as error:
        # The lines behind the first show Spark's plan.
        reason = brief(error).partition("\n")[0]
        raise FlowError(
            f"{where}: Spark cannot do the select(), filter() or with_columns() before it, where there are the columns "
            f"{schema.names}. {reason}"
        ) from error


def _check_names(folded: list[str], names: list[str], where: str) -> None:
    seen: dict[str, str] = {}
    for key, name in zip(folded, names, strict=True):
        if key in seen:
            raise FlowError(
                f"{where}: its columns '{seen[key]}' and '{name}' have the same name to Spark; rename one of them."
            )
        seen[key] = name


def _check_reserved(sink: SinkPlan, names: list[str], where: str) -> None:
    reserved: Iterable[str] = getattr(sink.function, "reserved", ())
    # Whoever reads the folders may be in a session that tells no case.
    for name in names:
        if name.lower() in reserved:
            raise FlowError(
                f"{where}: column '{name}' cannot be told from the sink's own column of that name when the folder is "
                f"read. Rename it before the sink, as in select(F.col('{name}').alias('other'), ...)."
            )


def _stays(program: Program) -> str:
    """What of a program cannot be pickled."""
    for name, part in _parts(program):
        try:
            dumps(part)  # type: ignore[no-untyped-call]
        except Exception:  # noqa: BLE001 - whatever it is, it stays
            return name
    return "it"


def _parts(program: Program) -> Iterator[tuple[str, object]]:
    steps = [each.steps for each in program.sources] + [each.steps for each in program.leaves]
    for step in chain.from_iterable(steps):
        yield f"the function of map_batches({step.name})", step.function
    for operator in program.operators:
        yield f"the logic of operator '{operator.name}'", operator.body
