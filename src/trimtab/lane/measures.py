"""What a lane measures of its own work, and whose it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trimtab.lane.packing import Header
from trimtab.ports import Clock
from trimtab.state.order import Ints
from trimtab.state.records import RunRef, SegmentRecord
from trimtab.vocab import LaneId, OperatorId, SlotMeasures

Floats = npt.NDArray[np.float64]
Amounts = tuple[Sequence[int], Sequence[float]]
"""Slots, and how much of something each has."""


class Stopwatch:
    """Seconds from lap to lap."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock.monotonic()

    def lap(self) -> float:
        now = self._clock.monotonic()
        self._last, seconds = now, now - self._last
        return seconds


@dataclass(frozen=True)
class SlotCounts:
    """The slots of some packed rows: from how many rows of the source each comes, how many travel, and where to."""

    slots: Ints
    rows: Ints
    work: Ints
    lanes: npt.NDArray[np.integer]

    @classmethod
    def of(cls, slots: Ints, counts: Ints | None, routing: npt.NDArray[np.integer]) -> SlotCounts:
        """`counts` is how many rows went into each packed one, or None for one each.

        >>> counted = SlotCounts.of(np.array([2, 0, 2]), np.array([5, 1, 1]), np.array([0, 1, 1]))
        >>> counted.on(1)
        ([2], [6], [2])
        """
        work = np.bincount(slots, minlength=len(routing))
        rows = work if counts is None else np.bincount(slots, counts, len(routing)).astype(np.int64)
        present = np.flatnonzero(work)
        return cls(present, rows[present], work[present], routing[present])

    def on(self, lane: LaneId) -> tuple[list[int], list[int], list[int]]:
        """The slots of a lane with both counts."""
        here = self.lanes == lane
        return self.slots[here].tolist(), self.rows[here].tolist(), self.work[here].tolist()


@dataclass(frozen=True)
class Activation:
    """What an operator put out and wrote in one hop, and the seconds that its logic and its writing took.

    The steps behind an operator count as its logic.
    """

    output: pa.Table | None
    segment: SegmentRecord | None
    busy: float
    write: float

    def longer(self, seconds: float) -> Activation:
        """With more time in its logic."""
        return replace(self, busy=self.busy + seconds)


def held_rows(runs: Sequence[RunRef], owned: Ints) -> Amounts:
    """The rows of state that some slots hold.

    >>> held_rows([RunRef("a", [0, 2], [0, 3], [3, 7]), RunRef("b", [2], [0], [1])], np.array([1, 2]))
    ([2, 2], [4.0, 1.0])
    """
    slots, rows = _joined([run.slots for run in runs]), _joined([np.subtract(run.stops, run.starts) for run in runs])
    here = np.isin(slots, owned)
    return slots[here].tolist(), rows[here].astype(np.float64).tolist()


def slot_measures(
    operator: OperatorId, payloads: Sequence[tuple[Header, pa.Table]], activation: Activation, held: Amounts = ([], [])
) -> SlotMeasures:
    """An operator's time by slot: that of its logic in proportion to rows that arrived, of its writing to rows written.

    Logic works on all slots at once, so nothing else can tell them apart. Where no rows came, `held` are the rows of
    state that it worked on.
    """
    segment = activation.segment
    written = [] if segment is None else segment.slots
    slots = np.unique(_joined([*(header.slots for header, _ in payloads), written, held[0]]))
    rows = _summed(slots, [(header.slots, header.slot_rows) for header, _ in payloads])
    work = _summed(slots, [(header.slots, header.slot_work) for header, _ in payloads])
    weight = [(header.slots, _shares(header.slot_work) * table.nbytes) for header, table in payloads]
    busy = activation.busy * _shares(work if work.any() else _summed(slots, [held]))
    if segment is not None:
        busy += activation.write * _shares(_summed(slots, [(written, np.diff(segment.offsets).tolist())]))
    return SlotMeasures(
        operator,
        slots.tolist(),
        rows.astype(np.int64).tolist(),
        work.astype(np.int64).tolist(),
        _summed(slots, weight).astype(np.int64).tolist(),
        np.round(busy, 7).tolist(),
    )


def _summed(slots: Ints, parts: Sequence[tuple[Sequence[int], Sequence[float] | Floats]]) -> Floats:
    """Amounts of some slots, added up by slot."""
    where = np.searchsorted(slots, _joined([which for which, _ in parts]))
    amounts = [np.asarray(amount, np.float64) for _, amount in parts]
    return np.bincount(where, np.concatenate([np.zeros(0), *amounts]), len(slots)).astype(np.float64)


def _shares(amounts: Sequence[float] | Floats) -> Floats:
    """Amounts as shares of their sum; all zero where there is nothing."""
    array = np.asarray(amounts, np.float64)
    return array / (array.sum() or 1.0)


def _joined(parts: Sequence[Sequence[int] | Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *(np.asarray(part, np.int64) for part in parts)])
