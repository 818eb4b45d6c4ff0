"""Large clusters: 10,000 slots on 100 lanes and 100,000 on 1,000, each planned once from a skewed placement.

Loads are lognormal, so that some slots weigh much more than others; lanes are 50 % full on average and the placement in
force is random. No plan can be closer to the mean than the heaviest slot lets it: that is the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from trimtab.bench.charts import chart
from trimtab.planners.auto import Auto
from trimtab.planners.flux import Flux
from trimtab.planners.hotspot import Hotspot
from trimtab.planners.live import Live
from trimtab.planners.metrics import measure
from trimtab.planners.milp import Milp
from trimtab.planners.plan import Plan, Planner
from trimtab.planners.snapshot import ClusterSnapshot
from trimtab.planners.topdown import TopDown
from trimtab.ports import SystemClock, chance

SIZES = ((10_000, 100), (100_000, 1_000))
QUICK = ((500, 10),)
LOAD = 50.0
REPETITIONS = 3


class ScaleRow(msgspec.Struct, frozen=True):
    """One planner on one size: the median of the seconds, and what the plan is like."""

    slots: int
    lanes: int
    planner: str
    seconds: float
    slowest: float
    load_distance: float
    moves: int


class ScaleResult(msgspec.Struct, frozen=True):
    """All planners on all sizes; what the placement in force has, and what no plan can go below."""

    rows: list[ScaleRow]
    start: dict[str, float]
    bound: dict[str, float]
    repetitions: int


def run(progress: Callable[[str], None], quick: bool = False) -> ScaleResult:
    """Measure every planner on every size."""
    rows: list[ScaleRow] = []
    start, bound = {}, {}
    for slots, lanes in QUICK if quick else SIZES:
        snapshot = skewed(slots, lanes)
        name = f"{slots} slots on {lanes} lanes"
        start[name] = round(measure(snapshot, snapshot.lane).load_distance, 4)
        bound[name] = round(lower_bound(snapshot), 4)
        for planner in planners():
            progress(f"{name}: {planner}")
            rows.append(_row(snapshot, planner, planners()[planner]))
    return ScaleResult(rows, start, bound, REPETITIONS)


def skewed(slots: int, lanes: int, seed: int = 1) -> ClusterSnapshot:
    """Lognormal loads, placed at random."""
    random = chance(seed)
    load = random.lognormal(0, 1, slots)
    return ClusterSnapshot.of(
        load=load * LOAD * lanes / load.sum(),
        capacity=[100.0] * lanes,
        lane=random.integers(0, lanes, slots),
        state=np.ones(slots),
    )


def planners() -> dict[str, Planner]:
    """Those that balance, live. Top-down allocation without traffic is placing by weight alone."""
    return {
        "milp": Live(Milp()),
        "flux": Live(Flux()),
        "hotspot": Live(Hotspot()),
        "topdown": Live(TopDown(balance=1.05), objective="balance"),
        "auto": Live(Auto()),
    }


def lower_bound(snapshot: ClusterSnapshot) -> float:
    """The heaviest slot is on some lane, which it takes above the mean by this much at least."""
    heaviest = 100 * float((snapshot.load.max() / snapshot.capacity).min())
    return max(0.0, heaviest - snapshot.mean)


def _row(snapshot: ClusterSnapshot, name: str, planner: Planner) -> ScaleRow:
    clock, seconds = SystemClock(), []
    for _ in range(REPETITIONS):
        start = clock.monotonic()
        plan = planner.plan(snapshot)
        seconds.append(clock.monotonic() - start)
    assert isinstance(plan, Plan), plan
    figures = measure(snapshot, plan.lanes)
    return ScaleRow(
        len(snapshot),
        snapshot.lanes,
        name,
        round(float(np.median(seconds)), 4),
        round(max(seconds), 4),
        round(figures.load_distance, 6),
        figures.moves,
    )


def draw(result: ScaleResult, path: Path) -> None:
    """Seconds and load distance by planner and size."""
    with chart(path, columns=2) as (left, right):
        for lanes in sorted({row.lanes for row in result.rows}):
            rows = [row for row in result.rows if row.lanes == lanes]
            label = f"{rows[0].slots:,} slots, {lanes:,} lanes"
            left.plot([row.planner for row in rows], [row.seconds for row in rows], "o", label=label)
            right.plot([row.planner for row in rows], [max(row.load_distance, 1e-6) for row in rows], "o", label=label)
        left.set_yscale("log")
        left.set_ylabel("seconds")
        left.legend()
        right.set_yscale("log")
        right.set_ylabel("load distance, points")
