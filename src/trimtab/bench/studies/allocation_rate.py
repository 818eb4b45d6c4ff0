"""How fast topdown and tasklevel allocate, and what their options do to the gain (Top-down 7.1 and 7.2).

Fig. 4a: of three groups in a pipeline the third has three times the load of the others, and the traffic between the
last two shrinks from twice to once that of the first two. Fig. 4b: two groups, each with the load of two whole lanes,
on six lanes with 80 % to spare; the second gets up to seven times the tasks. Fig. 5: four groups of 100 tasks. The task
pairs of one group pair have no order in the paper, so in Fig. 4 `tasklevel` draws it; Fig. 4b is a mean over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from trimtab.bench.charts import chart
from trimtab.bench.figures import Figure, figure
from trimtab.planners.metrics import imc_gain
from trimtab.planners.plan import Plan, Planner
from trimtab.planners.snapshot import ClusterSnapshot
from trimtab.planners.tasklevel import TaskLevel
from trimtab.planners.topdown import TopDown
from trimtab.ports import SystemClock

LEAST_RATIO = 100
REPETITIONS = 15
PER_REPETITION = {"topdown": 50, "tasklevel": 1}
TASKS = {"topdown": [10**3, 10**4, 10**5, 10**6], "tasklevel": [200, 400, 800, 1600]}
QUICK_TASKS = {"topdown": [10**3, 10**4], "tasklevel": [100, 200]}
PER_LANE = 100
FACTORS = list(range(1, 8))
SHRINKING = [2.0, 1.8, 1.6, 1.4, 1.2, 1.01]
"""At 1 the pairs tie, and the first one wins under either priority."""
SEEDS = range(10)


class Rate(msgspec.Struct, frozen=True):
    """Allocations per second of a pipeline of four groups of 100 tasks on 8 lanes (Fig. 5)."""

    topdown: Figure
    tasklevel: Figure
    ratio: float
    least_ratio: float
    paper_topdown: float = 264.0


class Growth(msgspec.Struct, frozen=True):
    """Time of one plan by the number of tasks, at 100 tasks a lane."""

    tasks: list[int]
    seconds: list[float]
    exponent: float
    """Of the power of the number of tasks that the time grows with."""


class Priorities(msgspec.Struct, frozen=True):
    """Gain of tasklevel by priority, as the traffic of the second pair shrinks (Fig. 4a)."""

    shrinking: list[float]
    traffic: list[float]
    significance: list[float]
    fit_of_a_line: float
    """How much of the change by traffic a straight line explains, at most 1."""
    variation_by_significance: float
    """Criterion: at most 0.05."""


class TaskCounts(msgspec.Struct, frozen=True):
    """Gain by how many times more tasks the second group has (Fig. 4b)."""

    factors: list[int]
    topdown: list[float]
    tasklevel: list[float]
    variation_of_topdown: float
    """Criterion: at most 0.05."""
    tasklevel_at_last: float
    """Share of topdown's gain. Criterion: at most 0.8."""


class AllocationRate(msgspec.Struct, frozen=True):
    """The outcome of the study."""

    rate: Rate
    growth: dict[str, Growth]
    priorities: Priorities
    task_counts: TaskCounts


def run(progress: Callable[[str], None], quick: bool = False) -> AllocationRate:
    """Measure all of it."""
    rate = _rate(3 if quick else REPETITIONS, progress)
    growth = {}
    for name, tasks in (QUICK_TASKS if quick else TASKS).items():
        growth[name] = _growth(name, tasks, 1 if quick else 3, progress)
    return AllocationRate(rate, growth, _priorities(), _task_counts())


def draw(result: AllocationRate, path: Path) -> None:
    """Four panels: Fig. 5, running time, Fig. 4a, Fig. 4b."""
    with chart(path, 2, 2) as (rate, growth, priorities, counts):
        rate.bar(["topdown", "tasklevel"], [result.rate.topdown.median, result.rate.tasklevel.median], width=0.5)
        rate.set(
            yscale="log",
            ylim=(1, None),
            ylabel="allocations per second",
            title=f"4 groups of 100 tasks: {result.rate.ratio:.0f} times",
        )
        for name, each in result.growth.items():
            growth.loglog(each.tasks, each.seconds, marker="o", label=f"{name}: tasks^{each.exponent:.2f}")
        growth.set(xlabel="tasks", ylabel="seconds", title="Time of one allocation")
        shrunk = result.priorities
        priorities.plot(shrunk.shrinking, shrunk.traffic, marker="o", label="by traffic")
        priorities.plot(shrunk.shrinking, shrunk.significance, marker="o", label="by relative significance")
        priorities.set(
            xlabel="traffic of the second pair / first", ylabel="gain", ylim=(0, None), title="Priority (Fig. 4a)"
        )
        priorities.invert_xaxis()
        counts.plot(result.task_counts.factors, result.task_counts.topdown, marker="o", label="topdown")
        counts.plot(result.task_counts.factors, result.task_counts.tasklevel, marker="o", label="tasklevel")
        counts.set(
            xlabel="tasks of the second group / first", ylabel="gain", ylim=(0, None), title="Task count (Fig. 4b)"
        )
        for axes in (growth, priorities, counts):
            axes.legend()


def pipeline(groups: int, tasks: int, lanes: int, use: float = 0.8) -> ClusterSnapshot:
    """Equal groups in a row with equal traffic, that use a share of the lanes.

    >>> pipeline(groups=4, tasks=100, lanes=8).mean
    80.0
    """
    count = groups * tasks
    return ClusterSnapshot.of(
        load=np.full(count, 100.0 * lanes * use / count),
        operator=np.repeat(np.arange(groups), tasks),
        capacity=[100.0] * lanes,
        groups=[(group, group + 1, 10.0) for group in range(groups - 1)],
    )


def three_groups(second: float) -> ClusterSnapshot:
    """Fig. 4a: the traffic between the second and the third group is so many times that of the first two."""
    return ClusterSnapshot.of(
        load=[5.0] * 20 + [15.0] * 10,
        operator=[0] * 10 + [1] * 10 + [2] * 10,
        capacity=[100.0] * 4,
        groups=[(0, 1, 10.0), (1, 2, 10.0 * second)],
    )


def two_groups(factor: int) -> ClusterSnapshot:
    """Fig. 4b: the second group has so many times the tasks of the first, and the same load."""
    return ClusterSnapshot.of(
        load=[20.0] * 10 + [20.0 / factor] * (10 * factor),
        operator=[0] * 10 + [1] * (10 * factor),
        capacity=[80.0] * 6,
        groups=[(0, 1, 100.0)],
    )


def _rate(repetitions: int, progress: Callable[[str], None]) -> Rate:
    planners: dict[str, Planner] = {"topdown": TopDown(), "tasklevel": TaskLevel()}
    snapshot = pipeline(groups=4, tasks=100, lanes=8)
    rates: dict[str, list[list[float]]] = {name: [] for name in planners}
    for repetition in range(repetitions):
        for name, planner in planners.items():
            seconds = [_seconds(planner, snapshot) for _ in range(PER_REPETITION[name])]
            rates[name].append([1 / each for each in seconds])
        progress(f"allocation rate: {repetition + 1} of {repetitions}")
    topdown, tasklevel = figure(rates["topdown"]), figure(rates["tasklevel"])
    return Rate(topdown, tasklevel, round(topdown.median / tasklevel.median, 1), LEAST_RATIO)


def _growth(name: str, counts: Sequence[int], repetitions: int, progress: Callable[[str], None]) -> Growth:
    planner: Planner = TopDown() if name == "topdown" else TaskLevel()
    seconds = []
    for count in counts:
        snapshot = pipeline(groups=4, tasks=count // 4, lanes=max(count // PER_LANE, 1))
        seconds.append(float(np.median([_seconds(planner, snapshot) for _ in range(repetitions)])))
        progress(f"{name}: {count} tasks in {seconds[-1]:.4f} s")
    exponent = float(np.polyfit(np.log(counts), np.log(seconds), 1)[0])
    return Growth(list(counts), [round(each, 6) for each in seconds], round(exponent, 3))


def _seconds(planner: Planner, snapshot: ClusterSnapshot) -> float:
    """The time of one plan, from a snapshot of which nothing has been worked out yet."""
    clock, fresh = SystemClock(), snapshot.at(snapshot.lane)
    start = clock.monotonic()
    planner.plan(fresh)
    return clock.monotonic() - start


def _priorities() -> Priorities:
    by_traffic = [_gain(TaskLevel("traffic", seed=0), three_groups(each)) for each in SHRINKING]
    by_significance = [_gain(TaskLevel("significance", seed=0), three_groups(each)) for each in SHRINKING]
    line = float(np.corrcoef(SHRINKING, by_traffic)[0, 1]) ** 2
    return Priorities(SHRINKING, by_traffic, by_significance, round(line, 4), _variation(by_significance))


def _task_counts() -> TaskCounts:
    topdown = [_gain(TopDown(), two_groups(factor)) for factor in FACTORS]
    tasklevel = [
        round(float(np.mean([_gain(TaskLevel(seed=seed), two_groups(factor)) for seed in SEEDS])), 3)
        for factor in FACTORS
    ]
    return TaskCounts(FACTORS, topdown, tasklevel, _variation(topdown), round(tasklevel[-1] / topdown[-1], 3))


def _gain(planner: Planner, snapshot: ClusterSnapshot) -> float:
    answer = planner.plan(snapshot)
    return round(imc_gain(snapshot, answer.lanes), 3) if isinstance(answer, Plan) else 0.0


def _variation(values: Sequence[float]) -> float:
    """The largest distance from the first value, as a share of it."""
    return round(max(abs(value / values[0] - 1) for value in values), 4)
