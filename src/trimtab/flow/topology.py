"""A flow as it is written down, and the checks that need no engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NoReturn

from trimtab.errors import FlowError
from trimtab.flow.aggregates import Aggregate
from trimtab.flow.graph import Frame, OperatorNode, SinkNode, SourceNode, ancestry
from trimtab.flow.logic import Logic
from trimtab.flow.stream import Stream

LARGEST_SLOTS = 1 << 20


def is_count(number: object) -> bool:
    """Whether it is a whole number; True and False are none.

    >>> is_count(2), is_count(2.0), is_count(True)
    (True, False, False)
    """
    return isinstance(number, int) and not isinstance(number, bool)


class Topology:
    """A named flow: sources, one keyed operator, sinks."""

    def __init__(self, name: str) -> None:
        given: object = name
        if not isinstance(given, str) or not given or given != given.strip() or not given.isprintable():
            raise FlowError(f"A flow needs a printable name; {name!r} is none.")
        self.name = name
        self.operators: list[OperatorNode] = []
        self.sinks: list[SinkNode] = []
        self._sources = 0

    def source(self, frame: Frame, name: str = "") -> Stream:
        """A streaming DataFrame as a stream. Spark's own transformations may already be in it."""
        if not getattr(frame, "isStreaming", False):
            raise FlowError(
                f"Flow '{self.name}': a source has to be a streaming DataFrame, made with spark.readStream; "
                f"this is {'a batch DataFrame' if hasattr(frame, 'isStreaming') else type(frame).__name__}."
            )
        self._sources += 1
        return Stream(self, SourceNode(name or f"source{self._sources}", frame))

    def add_operator(self, node: OperatorNode) -> None:
        """Check and keep a keyed operator."""
        self._check_operator(node)
        self.operators.append(node)

    def add_sink(self, node: SinkNode) -> None:
        """Check and keep a sink."""
        function: object = node.function
        if not callable(function):
            self._refuse(f"sink '{node.name}' cannot be called with (DataFrame, epoch)")
        if not any(isinstance(each, OperatorNode) for each in ancestry(node.parent)):
            self._refuse(
                f"sink '{node.name}' has no keyed operator before it; a stream without state needs Spark alone"
            )
        if any(sink.name == node.name for sink in self.sinks):
            self._refuse(f"two sinks are called '{node.name}'; give one of them another with sink(..., name=)")
        self.sinks.append(node)

    def check(self, lanes: int) -> None:
        """What must hold before anything starts."""
        if not self.sinks:
            self._refuse("it has no sink, so nobody would see its results; add .sink(...)")
        reached = {id(node) for sink in self.sinks for node in ancestry(sink.parent)}
        for operator in self.operators:
            if id(operator) not in reached:
                self._refuse(f"operator '{operator.name}' leads to no sink")
            if not is_count(lanes) or not 1 <= lanes <= operator.slots:
                self._refuse(
                    f"it cannot run on {lanes!r} lanes: operator '{operator.name}' has {operator.slots} slots, "
                    "and lanes are a whole number, at least 1 and at most as many as slots"
                )
        if len(self.operators) > 1:
            self._refuse(f"it has {len(self.operators)} keyed operators; a flow has one")

    def _check_operator(self, node: OperatorNode) -> None:
        where = f"operator '{node.name}'"
        if not is_count(node.slots) or not 1 <= node.slots <= LARGEST_SLOTS:
            self._refuse(f"{where} asks for {node.slots!r} slots; it takes a whole number from 1 to {LARGEST_SLOTS}")
        if twice := [key for key, times in Counter(node.keys).items() if times > 1]:
            self._refuse(f"{where} has key column '{twice[0]}' twice")
        work: object = node.work
        if isinstance(work, dict):
            self._check_aggregates(where, node.keys, work)
        elif not isinstance(work, Logic):
            self._refuse(f"{where} was given {work!r}; process() takes an instance of a subclass of tt.Logic")

    def _check_aggregates(self, where: str, keys: tuple[str, ...], aggregates: Mapping[str, object]) -> None:
        if not aggregates:
            self._refuse(f"{where} has no aggregate; say, aggregate(total=tt.sum('price'))")
        for name, aggregate in aggregates.items():
            self._check_aggregate(f"{where}: '{name}'", aggregate)
            if name in keys:
                self._refuse(f"{where} has an aggregate named '{name}' like its key column; call it something else")

    def _check_aggregate(self, where: str, aggregate: object) -> None:
        if not isinstance(aggregate, Aggregate):
            self._refuse(f"{where} is {aggregate!r}; use tt.sum, tt.count and their like")
        column: object = aggregate.column
        if not isinstance(column, str) or not (column or aggregate.kind == "count"):
            self._refuse(f"{where}: tt.{aggregate.kind}() takes the name of a column, not {column!r}")

    def _refuse(self, reason: str) -> NoReturn:
        raise FlowError(f"Flow '{self.name}': {reason}.")
