"""The nodes of a flow. Each knows what it reads from; a flow is the nodes behind its sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trimtab.flow.aggregates import Aggregate
from trimtab.flow.logic import Logic

Frame = Any
"""A Spark DataFrame: this layer hands it on and asks it for its columns, nothing more."""


@dataclass(frozen=True, eq=False)
class SourceNode:
    """A streaming DataFrame, with Spark's own expressions already applied to it."""

    name: str
    frame: Frame
    event_time: str | None = None
    delay: str | None = None


@dataclass(frozen=True, eq=False)
class MapNode:
    """A stateless function over tables."""

    parent: Node
    function: Callable[..., Any]
    output: str

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


@dataclass(frozen=True, eq=False)
class OperatorNode:
    """A keyed operator: aggregates or logic over the slots of its keys."""

    parent: Node
    name: str
    keys: tuple[str, ...]
    slots: int
    work: dict[str, Aggregate] | Logic


@dataclass(frozen=True, eq=False)
class ExpressionNode:
    """Spark's expressions behind the last operator, applied to what the sinks get."""

    parent: Node
    apply: Callable[[Frame], Frame]


Node = SourceNode | MapNode | OperatorNode | ExpressionNode


@dataclass(frozen=True, eq=False)
class SinkNode:
    """Where the rows of a stream go: `function(DataFrame, epoch)` under a name of its own."""

    parent: Node
    name: str
    function: Callable[[Frame, int], object]


def ancestry(node: Node) -> Iterator[Node]:
    """The node and all before it, nearest first."""
    while True:
        yield node
        if isinstance(node, SourceNode):
            return
        node = node.parent
