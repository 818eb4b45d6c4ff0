"""What a row costs on the lane that it reaches: time that is waited, or work that is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from trimtab.flow.logic import Logic
from trimtab.lane.context import Context
from trimtab.lane.logic import KeyedState
from trimtab.ports import SystemClock

NUMBERS = 4096
"""How many integers a turn of real work multiplies."""


class Service(Protocol):
    """What some rows cost."""

    @property
    def label(self) -> str:
        """What the time is made of, for every title."""

    def serve(self, rows: int) -> None: ...


@dataclass(frozen=True)
class Waiting:
    """Every row waits; lanes wait beside one another however few cores there are."""

    seconds: float
    label = "service time emulated by waiting"

    def serve(self, rows: int) -> None:
        time.sleep(rows * self.seconds)


@dataclass(frozen=True)
class Working:
    """Every row multiplies integers, so many turns of `NUMBERS` each."""

    turns: int
    label = "real work"

    def serve(self, rows: int) -> None:
        numbers = np.ones(NUMBERS, np.int64)
        for _ in range(rows * self.turns):
            np.multiply(numbers, 3, out=numbers)


def working(seconds: float) -> Working:
    """Work that takes this process about so long per row, by trial."""
    clock, trial = SystemClock(), Working(50_000)
    took = []
    for _ in range(5):
        start = clock.monotonic()
        trial.serve(1)
        took.append(clock.monotonic() - start)
    return Working(max(1, round(seconds * trial.turns / float(np.median(took)))))


class Totals(Logic):
    """The running total of every auction, on whole tables, with service time for every row that arrived."""

    state = "total long"
    output = "auction long, total long"

    def __init__(self, service: Service) -> None:
        self._service = service

    def on_rows(self, rows: pa.Table, state: KeyedState, ctx: Context) -> pa.Table:
        self._service.serve(rows.num_rows)
        sums = rows.group_by("auction", use_threads=False).aggregate([("price", "sum")])
        before = pc.fill_null(state.get(sums)["total"], 0)
        totals = pa.table({"auction": sums["auction"], "total": pc.add(before, sums["price_sum"])})
        state.put(totals)
        return totals


class TotalsByKey(StatefulProcessor):
    """The same for `transformWithStateInPandas`, as one would write it: a key at a time."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._total = handle.getValueState("total", "total long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        (total,) = self._total.get() or (0,)
        for frame in rows:
            self._service.serve(len(frame))
            total += int(frame["price"].sum())
        self._total.update((total,))
        yield pd.DataFrame({"auction": [key[0]], "total": [total]})

    def close(self) -> None:
        pass
