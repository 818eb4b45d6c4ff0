"""ALBIC against COLA (ALBIC, Fig. 3): 20 lanes, three operators of 100 slots, 120 periods.

The first operator sends to the second one to one, so that all of it can be collocated; the second sends to the third by
another key, evenly to all. A slot's load is its work plus serialisation: `SERIALISE` for every unit of traffic that it
sends to or gets from another lane. From the start, where about 1 in 20 pairs is collocated by chance, to all pairs
collocated, the load falls to about half, as in the paper. Loads drift as in the study of that name, and planners see
the loads of the period before, measured under the placement of then.

A migration costs `MIGRATE` points, half on either lane, in the period after; this makes COLA's load index what it is,
here as in the paper. On Spark moves are nearly free, and no such gap is to be expected there. Load distance is given
twice: right after the moves with the loads that were planned with, as in the paper, and as the following period shows
it, with what collocation has saved and without the charge for moving. Equal budgets: ALBIC has `BUDGET` moves a period;
COLA, which is blind to the present, has none. `cola_at_once` is COLA with a better partition than recursive cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from trimtab.bench.charts import chart
from trimtab.planners.albic import Albic
from trimtab.planners.cola import Cola
from trimtab.planners.metrics import imc_gain, load_distance, load_index, measure
from trimtab.planners.plan import Plan, Planner
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints
from trimtab.ports import chance

LANES, EACH = 20, 100
PERIODS, BUDGET = 120, 10
WORK = 1.8
"""Mean points of a slot's work."""
SERIALISE = 3.0
"""Points per unit of traffic, at either end."""
ONWARD = 0.1
"""Traffic from the second operator to the third, per slot; from the first to the second it is 1."""
MIGRATE = 1.05
SPREAD, STEP, PULL = 0.2, 0.03, 0.05

ROUNDS = 3
PATIENT = 60.0
"""Rounds and seconds of the solver, so that it stops by rounds on any machine."""

SENSITIVITY: dict[str, list[float]] = {
    "score_factor": [1.1, 1.5, 50.0, 150.0],
    "max_partition_load": [2.0, 10.0, 40.0],
    "max_load_distance": [1.0, 5.0, 20.0],
    "pairs_per_call": [1, 2, 4],
}


class CollocationSeries(msgspec.Struct, frozen=True):
    """A planner's figures by period, and how it stands at the end (over the last tenth of the periods)."""

    factor: list[float]
    """Collocated traffic over all that could be collocated."""
    factor_of_all: list[float]
    load_distance: list[float]
    """As planned."""
    seen_distance: list[float]
    """With the loads of the next period."""
    load_index: list[float]
    """With the charge for moving; the load at the start is 100."""
    moves: list[int]
    final_factor: float
    final_index: float
    median_moves: float


class CollocationResult(msgspec.Struct, frozen=True):
    """Both planners, ALBIC under other options, and whether the figure's shape is the paper's."""

    periods: int
    mean_load: float
    series: dict[str, CollocationSeries]
    sensitivity: dict[str, dict[str, CollocationSeries]]
    lower_distance: dict[str, dict[str, float]]
    """In which share of the periods ALBIC's load distance is below the others', as planned and as seen."""
    paper: dict[str, str]
    holds: dict[str, bool]


@dataclass(frozen=True, eq=False)
class Job:
    """What the three operators work and send in every period."""

    start: Ints
    work: Floats
    """By period and slot."""
    sent: Floats
    """From every slot of the first operator to its mate in the second, by period."""

    def snapshot(self, period: int, lanes: Ints) -> ClusterSnapshot:
        """What the period measures under a placement."""
        sent = self.sent[period]
        pairs = [(slot, slot + EACH, float(each)) for slot, each in enumerate(sent)]
        base = ClusterSnapshot.of(
            load=self.work[period],
            lane=lanes,
            capacity=[100.0] * LANES,
            operator=np.repeat(np.arange(3), EACH),
            state=np.ones(3 * EACH),
            traffic=pairs,
            groups=[(1, 2, ONWARD * EACH)],
            max_moves=BUDGET,
        )
        return replace(base, loads=(base.load + SERIALISE * _crossing(base, sent))[:, None])


def _crossing(snapshot: ClusterSnapshot, sent: Floats) -> Floats:
    """By slot, the traffic to and from other lanes."""
    first, second, third = snapshot.lane.reshape(3, EACH)
    paired = np.where(first != second, sent, 0.0)
    each = ONWARD / EACH
    apart = second[:, None] != third[None, :]
    return np.concatenate([paired, paired + each * apart.sum(axis=1), each * apart.sum(axis=0)])


def job(periods: int, seed: int = 1) -> Job:
    """Slots at random on the lanes; what they work and send drifts."""
    random = chance(seed)
    start = random.permutation(np.arange(3 * EACH) % LANES)
    drift = np.array(list(_drift(4 * EACH, periods + 1, seed + 1)))
    return Job(start, WORK * drift[:, : 3 * EACH], drift[:, 3 * EACH :])


def _drift(count: int, periods: int, seed: int) -> Iterator[Floats]:
    """Factors around 1."""
    random = chance(seed)
    home = random.normal(0, SPREAD, count)
    size = home.copy()
    for _ in range(periods):
        size = size + PULL * (home - size) + random.normal(0, STEP, count)
        yield np.exp(size)


def run(progress: Callable[[str], None], quick: bool = False) -> CollocationResult:
    """Both planners, then ALBIC with one option changed at a time."""
    periods = 5 if quick else PERIODS
    work = job(periods)
    planners: dict[str, Planner] = {"albic": albic(), "cola": Cola(), "cola_at_once": Cola(recursive=False)}
    series = {}
    for name, planner in planners.items():
        progress(f"{name}, {periods} periods")
        series[name] = follow(planner, work, periods)
    sensitivity: dict[str, dict[str, CollocationSeries]] = {}
    for option, values in {} if quick else SENSITIVITY.items():
        progress(f"albic with {option} in {values}")
        sensitivity[option] = {str(value): follow(albic(**{option: value}), work, periods) for value in values}
    ours, others = series["albic"], {name: each for name, each in series.items() if name != "albic"}
    lower = {name: _lower(ours, each) for name, each in others.items()}
    mean = work.snapshot(0, work.start).mean
    paper = {"albic": "COLA's factor over time, load index 50, 10 moves", "cola": "load index 75, close to 300 moves"}
    return CollocationResult(
        periods, round(mean, 3), series, sensitivity, lower, paper, criteria(ours, series["cola"], lower["cola"])
    )


def criteria(albic: CollocationSeries, cola: CollocationSeries, lower: dict[str, float]) -> dict[str, bool]:
    """What docs/papers.md asks of the figure's shape."""
    return {
        "ALBIC's factor at least 0.95 of COLA's": albic.final_factor >= 0.95 * cola.final_factor,
        "lower load distance in 90 % of periods, as planned": lower["planned"] >= 0.9,
        "lower load distance in 90 % of periods, as seen": lower["seen"] >= 0.9,
        "ALBIC's load index at most 60": albic.final_index <= 60,
        "COLA moves at least ten times as much": cola.median_moves >= 10 * albic.median_moves,
    }


def albic(**options: Any) -> Albic:
    return Albic(**{"rounds": ROUNDS, "time_limit": PATIENT, **options})


def _lower(one: CollocationSeries, other: CollocationSeries) -> dict[str, float]:
    return {
        "planned": _below(one.load_distance, other.load_distance),
        "seen": _below(one.seen_distance, other.seen_distance),
    }


def _below(one: list[float], other: list[float]) -> float:
    return round(float(np.mean(np.array(one) < np.array(other))), 4)


def follow(planner: Planner, work: Job, periods: int) -> CollocationSeries:
    """One planner from the common start: measure a period, plan, move, and look at the next period."""
    lanes, start = work.start, work.snapshot(0, work.start)
    rows: list[tuple[float, ...]] = []
    for period in range(periods):
        snapshot = work.snapshot(period, lanes)
        plan = planner.plan(snapshot)
        assert isinstance(plan, Plan), plan
        planned, lanes = measure(snapshot, plan.lanes), plan.lanes
        after = work.snapshot(period + 1, lanes)
        paired = imc_gain(replace(after, groups=ClusterSnapshot.of([], [1]).groups), lanes)
        index = load_index(after, start) + 100 * MIGRATE * planned.moves / LANES / start.mean
        figures = paired / after.traffic.total(), measure(after, lanes).collocation
        rows.append((*figures, planned.load_distance, load_distance(after, lanes), index, planned.moves))
    return _series(rows)


def _series(rows: list[tuple[float, ...]]) -> CollocationSeries:
    factor, of_all, planned, seen, index, moves = ([round(each, 4) for each in row] for row in zip(*rows, strict=True))
    last = slice(-max(1, len(rows) // 10), None)
    return CollocationSeries(
        factor=factor,
        factor_of_all=of_all,
        load_distance=planned,
        seen_distance=seen,
        load_index=index,
        moves=[int(each) for each in moves],
        final_factor=round(float(np.mean(factor[last])), 4),
        final_index=round(float(np.mean(index[last])), 4),
        median_moves=float(np.median(moves)),
    )


def draw(result: CollocationResult, path: Path) -> None:
    """The four parts of Fig. 3."""
    parts = {
        "factor": "collocation factor",
        "load_distance": f"load distance, points (mean load {result.mean_load:.0f} at first)",
        "load_index": "load index, %",
        "moves": "moves",
    }
    with chart(path, rows=2, columns=2) as axes:
        for axis, (name, label) in zip(axes, parts.items(), strict=True):
            for planner, series in result.series.items():
                axis.plot(range(1, result.periods + 1), getattr(series, name), label=planner)
            axis.set_xlabel("period")
            axis.set_ylabel(label)
            axis.legend()
