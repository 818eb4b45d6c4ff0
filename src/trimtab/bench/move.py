"""`trimtab bench move`: what it costs an epoch that a part of a large state moves to another lane.

Slots change places in pairs, as many from one lane to the other as back, so that the lanes stay level and only the
moving itself makes a difference. Epochs without moves in between are what it is compared with.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from pyspark.sql import SparkSession

from trimtab.bench.charts import chart
from trimtab.bench.figures import Figure, figure
from trimtab.bench.growth import ROWS, touches
from trimtab.control.history import History
from trimtab.control.measure import FULL
from trimtab.control.settings import Control
from trimtab.errors import TrimtabError
from trimtab.flow import sinks
from trimtab.flow.aggregates import count, sum
from trimtab.ports import SystemClock
from trimtab.spark.flow import Flow
from trimtab.spark.run import Run

OPERATOR, SLOTS, LANES = "totals", 256, 2
SHARES = (0.01, 0.1, 0.5)
SETTLING = 8
"""Epochs after the last new key that are left out."""
QUIET = 4
"""Epochs between moves."""
BUDGET = 1.2
"""What an epoch that moves a tenth of the state may take, as a multiple of one without moves."""
PATIENCE = 300.0


class MoveCase(msgspec.Struct, frozen=True):
    """Epochs that began with the move of `slots` slots, `share` of the state, and the epochs right after them."""

    share: float
    slots: int
    seconds: Figure
    next_seconds: Figure
    ratio: float
    next_ratio: float


class MoveResult(msgspec.Struct, frozen=True):
    """`quiet` are epochs that neither moved anything nor came right after a move. `epochs` has all of the first run."""

    keys: int
    rows_per_epoch: int
    state_bytes: int
    quiet: Figure
    cases: list[MoveCase]
    holds: dict[str, bool]
    epochs: list[float]
    moved: dict[int, int]
    """By place in `epochs`, how many slots moved."""


class _Epochs(msgspec.Struct, frozen=True):
    """One run after the filling: seconds by epoch, and how many slots moved by place."""

    seconds: list[float]
    moved: dict[int, int]
    state_bytes: int

    def of(self, slots: int, later: int = 0) -> list[float]:
        """Epochs that moved so many slots, or that came so many later."""
        places = [place + later for place, number in self.moved.items() if number == slots]
        return [self.seconds[place] for place in places if place < len(self.seconds)]

    @property
    def quiet(self) -> list[float]:
        disturbed = {place + later for place in self.moved for later in (0, 1)}
        return [seconds for place, seconds in enumerate(self.seconds) if place not in disturbed]


def move(spark: SparkSession, keys: int, turns: int, repetitions: int, progress: Callable[[str], None]) -> MoveResult:
    """Measure; in every turn each share of the state moves once."""
    runs = []
    for repetition in range(repetitions):
        progress(f"{keys:,} keys, {turns} turns, repetition {repetition + 1} of {repetitions}")
        runs.append(_run(spark, keys, turns))
    quiet = figure([run.quiet for run in runs])
    cases = [_case(share, runs, quiet) for share in SHARES]
    tenth = next(case for case in cases if case.share == 0.1)
    holds = {f"at most {BUDGET} times as long when a tenth of the state moves": tenth.ratio <= BUDGET}
    first = runs[0]
    return MoveResult(keys, ROWS, first.state_bytes, quiet, cases, holds, first.seconds, first.moved)


def exchanged(share: float) -> tuple[list[int], list[int]]:
    """The slots of either lane, of a fresh routing, that change places so that `share` of all moves.

    No slot is in two shares, so that each has all of its slots to move whatever the others did.

    >>> exchanged(0.01)
    ([0, 2], [1, 3])
    """
    pairs = [int(np.ceil(each * SLOTS / LANES)) for each in SHARES]
    place = SHARES.index(share)
    start, end = (LANES * int(np.sum(pairs[:stop])) for stop in (place, place + 1))
    return list(range(start, end, LANES)), list(range(start + 1, end, LANES))


def _case(share: float, runs: Sequence[_Epochs], quiet: Figure) -> MoveCase:
    slots = LANES * len(exchanged(share)[0])
    seconds, following = figure([run.of(slots) for run in runs]), figure([run.of(slots, later=1) for run in runs])
    ratios = (round(each.median / quiet.median, 3) for each in (seconds, following))
    return MoveCase(share, slots, seconds, following, *ratios)


def _run(spark: SparkSession, keys: int, turns: int) -> _Epochs:
    folder = tempfile.mkdtemp(prefix="trimtab-bench-")
    flow = Flow("move")
    totals = flow.source(touches(spark, keys, LANES)).key_by("auction", slots=SLOTS, name=OPERATOR)
    totals.aggregate(total=sum("price"), bids=count()).sink(sinks.noop())
    try:
        run = flow.start(spark, str(Path(folder) / "checkpoint"), lanes=LANES)
        try:
            return _measured(run, -(-keys // ROWS) + SETTLING, turns)
        finally:
            run.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(run: Run, filling: int, turns: int) -> _Epochs:
    wait_for(run, filling)
    for turn in range(turns):
        for share in SHARES:
            for lane, slots in enumerate(exchanged(share)):
                # Odd turns bring back what even ones exchanged.
                run.move(OPERATOR, slots, (lane + 1 + turn) % LANES)
            wait_for(run, newest(run.history()) + 2 + QUIET)
    history = run.history()
    measures = [measure for measure in history.measures if measure.epoch >= filling]
    moved = {epoch - filling: len(message.moves) for epoch, message in history.messages}
    return _Epochs([measure.seconds for measure in measures], moved, state_bytes(run))


def state_bytes(run: Run) -> int:
    """Bytes of state held, from what planners are shown of the lanes' memory."""
    snapshot = run.snapshot()
    percent = snapshot.loads[:, snapshot.resources.index("memory")].sum()
    return round(float(percent) / FULL * Control().memory_per_lane)


def wait_for(run: Run, epoch: int) -> None:
    """Until an epoch is measured."""
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE
    while newest(run.history()) < epoch:
        if run.await_termination(0.02) or clock.monotonic() > deadline:
            raise TrimtabError(f"Epoch {epoch} did not come; the newest is {newest(run.history())}.")


def newest(history: History) -> int:
    """The newest epoch that was measured."""
    return history.measures[-1].epoch if history.measures else -1


def draw(result: MoveResult, path: Path) -> None:
    """Every epoch of the first run, and the ratios."""
    with chart(path, columns=2) as (left, right):
        left.plot(result.epochs, color="grey", linewidth=0.8, label="no move")
        for case in result.cases:
            places = [place for place, slots in result.moved.items() if slots == case.slots]
            left.plot(places, [result.epochs[place] for place in places], "o", label=f"{case.share:.0%} of the state")
        left.set_title(f"{result.keys:,} keys, {result.rows_per_epoch:,} rows an epoch", loc="left")
        left.set_xlabel("epochs since the state was filled")
        left.set_ylabel("seconds")
        left.set_ylim(bottom=0)
        left.legend()
        names = [f"{case.share:.0%}" for case in result.cases]
        right.bar(names, [case.ratio for case in result.cases], color="grey")
        right.axhline(BUDGET, linewidth=0.8, linestyle=":", color="black")
        right.set_xlabel("share of the state that moves")
        right.set_ylabel("epoch / median epoch without moves")
