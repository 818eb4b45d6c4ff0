"""Large clusters: 10,000 slots on 100 lanes and 100,000 on 1,000, each planned once from a skewed placement.

Loads are lognormal, so that some slots weigh much more than others; lanes are 50 % full on average and the placement in
force is random. No plan can be closer to the mean than the heaviest slot lets it: that is the bound.

A second variant has traffic, every slot of one operator with its own of the other, and a budget of moves (`BUDGET` of
the slots), for what planners do with either. A third one has the traffic alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
from trimtab.planners.snapshot import ClusterSnapshot, Limits, Traffic
from trimtab.planners.topdown import TopDown
from trimtab.ports import SystemClock, chance

SIZES = ((10_000, 100), (100_000, 1_000))
QUICK = ((500, 10),)
LOAD = 50.0
REPETITIONS = 3
BUDGET = 0.05


class ScaleRow(msgspec.Struct, frozen=True):
    """One planner on one size: the median of the seconds, and what the plan is like."""

    slots: int
    lanes: int
    variant: str
    planner: str
    seconds: float
    slowest: float
    load_distance: float
    collocation: float
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
        for variant, (problem, contenders) in variants(snapshot).items():
            for planner, contender in contenders.items():
                progress(f"{name}, {variant}: {planner}")
                rows.append(_row(problem, variant, planner, contender))
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


def variants(snapshot: ClusterSnapshot) -> dict[str, tuple[ClusterSnapshot, dict[str, Planner]]]:
    """By name the problem and those who are to solve it."""
    talking = with_traffic(snapshot)
    gatherers: dict[str, Planner] = {"topdown": Live(TopDown(), objective="traffic"), "auto": Live(Auto())}
    return {
        "loads": (snapshot, planners()),
        "traffic and budget": (talking.within(Limits(max_moves=int(BUDGET * len(snapshot)))), gatherers),
        "traffic": (talking, gatherers),
    }


def with_traffic(snapshot: ClusterSnapshot, seed: int = 2) -> ClusterSnapshot:
    """The same as two operators, each slot of which has its partner in the other."""
    half = len(snapshot) // 2
    weights = chance(seed).lognormal(0, 1, half)
    return replace(
        snapshot,
        operators=("senders", "receivers"),
        operator=(np.arange(len(snapshot)) >= half).astype(np.int64),
        traffic=Traffic(np.arange(half), np.arange(half) + half, weights),
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


def _row(snapshot: ClusterSnapshot, variant: str, name: str, planner: Planner) -> ScaleRow:
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
        variant,
        name,
        round(float(np.median(seconds)), 4),
        round(max(seconds), 4),
        round(figures.load_distance, 6),
        round(figures.collocation, 4),
        figures.moves,
    )


def draw(result: ScaleResult, path: Path) -> None:
    """Seconds and load distance by planner and size, without traffic."""
    with chart(path, columns=2) as (left, right):
        for lanes in sorted({row.lanes for row in result.rows}):
            rows = [row for row in result.rows if row.lanes == lanes and row.variant == "loads"]
            label = f"{rows[0].slots:,} slots, {lanes:,} lanes"
            left.plot([row.planner for row in rows], [row.seconds for row in rows], "o", label=label)
            right.plot([row.planner for row in rows], [max(row.load_distance, 1e-6) for row in rows], "o", label=label)
        left.set_yscale("log")
        left.set_ylabel("seconds")
        left.legend(loc="lower right")
        right.set_yscale("log")
        right.set_ylabel("load distance, points")
