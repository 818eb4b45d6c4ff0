"""The base class of a user's own keyed logic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import pyarrow as pa

from trimtab.lane.context import Context
from trimtab.lane.logic import KeyedState


class Logic(ABC):
    """Keyed logic over whole tables.

    `state` and `output` declare columns in Spark's DDL. State columns come on top of the key columns, and every key
    has one row of state at most. `on_rows` gets all columns of the input, rows of many keys at once, in the order in
    which they came; it may be called several times an epoch with any split of the rows, and must not depend on the
    split. A logic that defines `on_watermark(watermark, state, ctx)` is called once per lane whenever the watermark
    has moved. Neither may read a clock, and randomness comes from
    `ctx.seed`: an epoch that is replayed must come out the same.
    The object travels to the lanes, where every task of an epoch works with a shallow copy of it: attributes that it
    sets on itself are lost, and what its attributes hold is shared between epochs and must not be changed.
    """

    state: ClassVar[str]
    output: ClassVar[str]

    @abstractmethod
    def on_rows(self, rows: pa.Table, state: KeyedState, ctx: Context) -> pa.Table | None:
        """Work on rows of this lane's keys; return output rows, or None for none."""
