"""Streams and keyed streams: the verbs of a flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trimtab.errors import FlowError
from trimtab.flow.aggregates import Aggregate
from trimtab.flow.graph import ExpressionNode, Frame, MapNode, Node, OperatorNode, SinkNode, SourceNode, ancestry
from trimtab.flow.logic import Logic

if TYPE_CHECKING:
    from trimtab.flow.topology import Topology


class Stream:
    """Rows without a key. Every verb returns a new stream."""

    def __init__(self, flow: Topology, node: Node) -> None:
        self._flow = flow
        self._node = node

    def select(self, *columns: Any) -> Stream:
        """Spark's `DataFrame.select`."""
        return self._express("select", lambda frame: frame.select(*columns))

    def filter(self, condition: Any) -> Stream:
        """Spark's `DataFrame.filter`."""
        return self._express("filter", lambda frame: frame.filter(condition))

    def with_columns(self, **columns: Any) -> Stream:
        """Spark's `DataFrame.withColumns`."""
        return self._express("with_columns", lambda frame: frame.withColumns(columns))

    def watermark(self, column: str, delay: str) -> Stream:
        """Track event time by a timestamp column: the watermark stays `delay` ("10 seconds") behind the latest."""
        node = self._node
        if not isinstance(node, SourceNode):
            raise FlowError(
                f"Flow '{self._flow.name}': watermark() belongs to a source, before map_batches() and key_by()."
            )
        if not all(isinstance(given, str) for given in (column, delay)):
            raise FlowError(
                f"Flow '{self._flow.name}': watermark() takes the name of a column and a delay such as '10 seconds', "
                f"not {column!r} and {delay!r}."
            )
        return Stream(self._flow, SourceNode(node.name, node.frame, column, delay))

    def map_batches(self, function: Callable[[pa.Table], pa.Table], output: str) -> Stream:
        """A stateless function over tables; `output` declares the columns it returns, in Spark's DDL.

        The function gets any number of rows at a time and must not depend on where they are split.
        """
        if not callable(function):
            raise FlowError(
                f"Flow '{self._flow.name}': map_batches() takes a function over Arrow tables, not {function!r}."
            )
        if isinstance(self._node, ExpressionNode):
            raise FlowError(
                f"Flow '{self._flow.name}': map_batches() cannot follow select(), filter() or with_columns() behind "
                "an operator, because Spark runs those on the way to the sinks. Put map_batches() first."
            )
        return Stream(self._flow, MapNode(self._node, function, output))

    def key_by(self, *columns: str, slots: int = 256, name: str = "") -> KeyedStream:
        """Group by columns into `slots` slots, the units of state and of movement.

        The number of slots is fixed for the life of a checkpoint; a few hundred serve up to a hundred lanes.
        `name` is the operator's, for the history, errors and the checkpoint.
        """
        if not columns or not all(isinstance(column, str) for column in columns):
            raise FlowError(
                f"Flow '{self._flow.name}': key_by() takes the names of its key columns as strings, as in "
                f"key_by('auction', 'day'), not {', '.join(map(repr, columns)) or 'nothing'}."
            )
        label = name or f"by_{'_'.join(columns)}"
        if any(isinstance(node, OperatorNode) for node in ancestry(self._node)):
            raise FlowError(f"Flow '{self._flow.name}': '{label}' would be a second keyed operator; a flow has one.")
        return KeyedStream(self._flow, self._node, label, columns, slots)

    def sink(self, function: Callable[[Frame, int], object], name: str = "") -> None:
        """Send every epoch's rows to a function `(DataFrame, epoch)` or to one of `trimtab.sinks`.

        An epoch may reach a sink more than once, with the same number and the same rows.
        """
        label = name or str(getattr(function, "name", "")) or getattr(function, "__name__", "sink")
        self._flow.add_sink(SinkNode(self._node, label, function))

    def _express(self, verb: str, apply: Callable[[Frame], Frame]) -> Stream:
        node = self._node
        if isinstance(node, SourceNode):
            return Stream(self._flow, SourceNode(node.name, apply(node.frame), node.event_time, node.delay))
        if any(isinstance(each, OperatorNode) for each in ancestry(node)):
            return Stream(self._flow, ExpressionNode(node, apply))
        raise FlowError(
            f"Flow '{self._flow.name}': {verb}() cannot follow map_batches() before the key, because Spark would have "
            "to run it between two of Trimtab's steps. Put it before map_batches(), or do it in the function."
        )


class KeyedStream:
    """Rows grouped by key: what keeps state."""

    def __init__(self, flow: Topology, parent: Node, name: str, keys: tuple[str, ...], slots: int) -> None:
        self._flow = flow
        self._parent = parent
        self._name = name
        self._keys = keys
        self._slots = slots

    def aggregate(self, **aggregates: Aggregate) -> Stream:
        """Aggregates per key in update mode: each epoch, one row for every key it touched."""
        return self._operator(aggregates)

    def process(self, logic: Logic) -> Stream:
        """The user's own keyed logic."""
        return self._operator(logic)

    def _operator(self, work: dict[str, Aggregate] | Logic) -> Stream:
        node = OperatorNode(self._parent, self._name, self._keys, self._slots, work)
        self._flow.add_operator(node)
        return Stream(self._flow, node)
