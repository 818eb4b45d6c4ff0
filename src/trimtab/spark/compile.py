"""From a flow as it is written to the program that lanes run, with every check that needs schemas."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from trimtab.errors import FlowError
from trimtab.flow.aggregates import Aggregate
from trimtab.flow.graph import ExpressionNode, MapNode, Node, OperatorNode, SinkNode, SourceNode, ancestry
from trimtab.flow.logic import Logic
from trimtab.flow.topology import Topology
from trimtab.lane.aggregate import AggregateBody
from trimtab.lane.functions import resolve
from trimtab.lane.logic import LogicBody
from trimtab.lane.program import Body, Leaf, Operator, Program, Source, Step
from trimtab.spark.schemas import arrow_from_ddl, arrow_schema, from_ddl, refuse_collated
from trimtab.state.keyed import StateSchema
from trimtab.state.keyhash import check_hashable
from trimtab.state.records import FORMAT, FlowRecord, OperatorRecord

UNITS = {"microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}
UNITS["day"] = 24 * UNITS["hour"]


@dataclass(frozen=True)
class SinkPlan:
    """A sink, the leaf it reads and Spark's expressions on the way."""

    name: str
    function: Callable[[DataFrame, int], object]
    leaf: int
    expressions: tuple[Callable[[DataFrame], DataFrame], ...]

    @property
    def whole(self) -> bool:
        """Whether the sink says that its one action reads every row."""
        return bool(getattr(self.function, "whole", False))


@dataclass(frozen=True)
class Compiled:
    """A flow ready to run."""

    program: Program
    frames: tuple[DataFrame, ...]
    sinks: tuple[SinkPlan, ...]
    record: FlowRecord


def compile_flow(flow: Topology, lanes: int, store: str) -> Compiled:
    """Check the flow and compile it. Reads schemas, never data."""
    flow.check(lanes)
    node = flow.operators[0]
    source, frame = _source(flow, node)
    operator = _operator(flow, node, source)
    source, frame = _narrowed(source, numbered(frame), node)
    leaves: list[Leaf] = []
    sinks = tuple(_sink(flow, sink, operator, leaves) for sink in flow.sinks)
    program = Program(flow.name, (source,), (operator,), tuple(leaves), store)
    return Compiled(program, (frame,), sinks, record_of(program))


def record_of(program: Program) -> FlowRecord:
    """What a checkpoint remembers of a flow, to refuse another one."""
    return FlowRecord(FORMAT, program.flow, tuple(_operator_record(operator) for operator in program.operators))


def microseconds(delay: str, where: str) -> int:
    """A delay such as "10 seconds" in microseconds.

    >>> microseconds("2 minutes", "here")
    120000000
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*", delay.lower())
    if match is None or match[2] not in UNITS:
        raise FlowError(f"{where}: a delay reads like '10 seconds' or '5 minutes', not {delay!r}.")
    return round(float(match[1]) * UNITS[match[2]])


def _source(flow: Topology, operator: OperatorNode) -> tuple[Source, DataFrame]:
    *between, node = ancestry(operator.parent)
    assert isinstance(node, SourceNode)
    maps = [each for each in between if isinstance(each, MapNode)]
    where = f"Flow '{flow.name}', source '{node.name}'"
    schema = arrow_schema(node.frame.schema, where)
    steps = tuple(_step(flow, each) for each in reversed(maps))
    keyed = from_ddl(maps[0].output, where) if maps else node.frame.schema
    refuse_collated(keyed, operator.keys, f"Flow '{flow.name}', operator '{operator.name}'")
    source = Source(node.name, schema, steps, operator=0)
    if node.event_time is None:
        return source, node.frame
    if node.event_time not in schema.names or not pa.types.is_timestamp(schema.field(node.event_time).type):
        raise FlowError(
            f"{where}: watermark() needs a timestamp column; '{node.event_time}' is none of {schema.names}."
        )
    return replace(source, event_time=node.event_time, delay=microseconds(str(node.delay), where)), node.frame


def _narrowed(source: Source, frame: DataFrame, node: OperatorNode) -> tuple[Source, DataFrame]:
    """Without the columns that nothing reads: what aggregates need is known, what functions read is not."""
    if source.steps or isinstance(node.work, Logic):
        return source, frame
    read = {*node.keys, *(aggregate.column for aggregate in node.work.values()), source.event_time}
    wanted = [(field, name) for field, name in zip(source.schema, frame.columns, strict=True) if field.name in read]
    narrow = frame.select(*(frame[name] for _, name in wanted))
    return replace(source, schema=pa.schema([field for field, _ in wanted])), narrow


def numbered(frame: DataFrame) -> DataFrame:
    """The frame, its columns renamed if by their own names Spark would not find every one of them.

    PySpark looks columns up by name, and to it dots, stars and backticks mean something, and capitals nothing.
    """
    names = frame.columns
    if all(name.isidentifier() for name in names) and len({name.lower() for name in names}) == len(names):
        return frame
    return frame.toDF(*(f"c{place}" for place in range(len(names))))


def _step(flow: Topology, node: MapNode) -> Step:
    return Step(node.name, node.function, arrow_from_ddl(node.output, f"Flow '{flow.name}', map_batches({node.name})"))


def _operator(flow: Topology, node: OperatorNode, source: Source) -> Operator:
    where = f"Flow '{flow.name}', operator '{node.name}'"
    rows = source.steps[-1].output if source.steps else source.schema
    for key in node.keys:
        _column(rows, key, where)
        try:
            check_hashable(rows.field(key).type)
        except TypeError as error:
            raise FlowError(f"{where}: key column '{key}' cannot be a key. {error}") from error
    keys = pa.schema([rows.field(key) for key in node.keys])
    if isinstance(node.work, Logic):
        body, values = _logic(node.work, keys, rows, where)
    else:
        body, values = _aggregates(node.work, keys, rows, where)
    return Operator(node.name, node.slots, node.keys, StateSchema(keys, values, node.slots, node.name), body)


def _aggregates(work: dict[str, Aggregate], keys: pa.Schema, rows: pa.Schema, where: str) -> tuple[Body, pa.Schema]:
    functions = []
    for name, aggregate in work.items():
        read = _column(rows, aggregate.column, where).type if aggregate.column else pa.int64()
        try:
            functions.append(resolve(aggregate.kind, name, aggregate.column, read))
        except FlowError as error:
            raise FlowError(f"{where}: {error}") from error
    body = AggregateBody(keys, tuple(functions))
    _distinct([*keys.names, *body.values.names], f"{where}: aggregate")
    return body, body.values


def _logic(logic: Logic, keys: pa.Schema, rows: pa.Schema, where: str) -> tuple[Body, pa.Schema]:
    for attribute in ("state", "output"):
        if not isinstance(getattr(logic, attribute, None), str):
            raise FlowError(f"{where}: {type(logic).__name__}.{attribute} has to declare its columns as a DDL string.")
    values = arrow_from_ddl(logic.state, f"{where}, state")
    _distinct([*keys.names, *values.names], f"{where}: state")
    output = arrow_from_ddl(logic.output, f"{where}, output")
    return LogicBody(logic, output), values


def _sink(flow: Topology, sink: SinkNode, operator: Operator, leaves: list[Leaf]) -> SinkPlan:
    expressions: list[Callable[[DataFrame], DataFrame]] = []
    steps: list[Step] = []
    node: Node = sink.parent
    while not isinstance(node, OperatorNode):
        if isinstance(node, ExpressionNode):
            expressions.insert(0, node.apply)
        elif isinstance(node, MapNode):
            steps.insert(0, _step(flow, node))
        node = node.parent  # type: ignore[union-attr]  # a sink without an operator was refused
    leaf = Leaf(0, tuple(steps), steps[-1].output if steps else operator.body.output)
    if leaf not in leaves:
        leaves.append(leaf)
    return SinkPlan(sink.name, sink.function, leaves.index(leaf), tuple(expressions))


def _column(rows: pa.Schema, name: str, where: str) -> pa.Field:
    if name not in rows.names:
        raise FlowError(f"{where}: there is no column '{name}'; the input has {rows.names}.")
    return rows.field(name)


def _distinct(names: list[str], where: str) -> None:
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise FlowError(f"{where} column '{twice}' is there twice, or named like a key; call it something else.")


def _operator_record(operator: Operator) -> OperatorRecord:
    def columns(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
        return tuple((field.name, str(field.type)) for field in schema)

    kind = "aggregate" if isinstance(operator.body, AggregateBody) else "process"
    functions: Any = getattr(operator.body, "functions", ())
    detail = ",".join(f"{type(each).__name__.lower()}({each.column})" for each in functions)
    return OperatorRecord(
        operator.name,
        operator.slots,
        columns(operator.state.keys),
        columns(operator.state.values),
        f"{kind}({detail})" if detail else kind,
    )
