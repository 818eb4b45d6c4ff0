"""What a flow comes down to for its tasks: plain descriptions, the same for every epoch of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from trimtab.lane.context import Context
from trimtab.state.keyed import KeyedTable, StateSchema
from trimtab.state.order import Ints

RESERVED = "__trimtab"


@dataclass(frozen=True)
class Step:
    """A stateless function over a table, with the schema it promises."""

    name: str
    function: Callable[[pa.Table], pa.Table]
    output: pa.Schema


class Body(Protocol):
    """The logic of a keyed operator."""

    @property
    def output(self) -> pa.Schema:
        """The columns that leave the operator."""

    def prepare(self, rows: pa.Table) -> tuple[pa.Table, Ints | None]:
        """Before the shuffle: what travels to the lanes for some rows of a source, combined where the logic allows.

        With it, how many rows went into each; None for one each.
        """

    def fresh(self) -> Body:
        """On the lane, before all else: the body for one activation, to which nothing clings from one before."""

    def run(self, rows: pa.Table, state: KeyedTable, context: Context) -> pa.Table | None:
        """On the lane: work on packed rows, in order, and return output rows."""

    def advance(self, state: KeyedTable, context: Context) -> pa.Table | None:
        """On the lane: the watermark has moved to the context's."""

    @property
    def combines(self) -> bool:
        """Whether `prepare` leaves at most one row per key, so that all of an epoch fits one call of `run`."""

    @property
    def timed(self) -> bool:
        """Whether `advance` does anything, so that epochs without input are worth running for it."""


@dataclass(frozen=True)
class Source:
    """Where rows enter: their schema, what is done to them before the first key, and which operator they go to."""

    name: str
    schema: pa.Schema
    steps: tuple[Step, ...]
    operator: int
    event_time: str | None = None
    delay: int = 0
    """How far the watermark stays behind the greatest event time, in microseconds."""


@dataclass(frozen=True)
class Operator:
    """A keyed operator: `slots` slots of state with one schema, and the logic over it."""

    name: str
    slots: int
    keys: tuple[str, ...]
    state: StateSchema
    body: Body


@dataclass(frozen=True)
class Leaf:
    """A stream that sinks read: an operator's output after some steps."""

    operator: int
    steps: tuple[Step, ...]
    schema: pa.Schema


@dataclass(frozen=True)
class Program:
    """All of a flow that its tasks need to know."""

    flow: str
    sources: tuple[Source, ...]
    operators: tuple[Operator, ...]
    leaves: tuple[Leaf, ...]
    store: str
    """The checkpoint's address, where lanes read and write segments."""

    def timed(self) -> bool:
        """Whether a watermark that moves can make this flow do something."""
        return any(operator.body.timed for operator in self.operators)
