"""The random graphs of Top-down 7.3: how much of the optimal gain each planner reaches.

The generator follows the text: 17 tasks in 3 to 7 groups, 500 % of load in proportion to the tasks within a factor,
edges to later groups, 5 to 20 MB/s each, 8 lanes of 100 %. How the tasks are divided is not said, and decides as much
as the algorithm: here every division is equally likely, and two other draws are reported beside it. The paper's optimum
of 13.15 MB/s a graph is met by none of them; shares are what can be compared. A graph that is refused gains nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, get_args

import msgspec
import numpy as np

from trimtab.bench.charts import chart
from trimtab.planners.auto import Auto
from trimtab.planners.metrics import imc_gain
from trimtab.planners.naive import Naive
from trimtab.planners.optimal import Optimal
from trimtab.planners.plan import Plan, Planner
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints
from trimtab.planners.tasklevel import TaskLevel
from trimtab.planners.topdown import TopDown
from trimtab.ports import Chance, chance

Division = Literal["any", "drawn", "even"]
"""How tasks are divided over groups: all divisions equally likely, task by task at random, or as evenly as can be."""

GRAPHS = 2000
OTHERS = 500
QUICK = 6
CHUNK = 20
TASKS = 17
LANES = [100.0] * 8
LOAD = 500.0
GROUPS = (3, 7)
FANOUT = [0.70, 0.25, 0.05]
TRAFFIC = (5.0, 20.0)
UNEVEN = (0.5, 1.5)
"""The load of a task against the other groups' is drawn from here."""

PAPER = {"tasklevel by traffic": 0.859, "topdown": 0.931}
"""Section 7 orders task pairs by their traffic; significance is the top-down algorithm's own."""
BUDGETS = {"topdown": 0.931, "auto": 0.99}


Gains = dict[str, float]


class Share(msgspec.Struct, frozen=True):
    """What one planner reaches on all graphs together."""

    share: float
    """Of the optimal gain; graphs that it refuses count as 0."""
    share_where_placed: float
    """The same over the graphs that it places."""
    lowest: float
    """The 5th percentile of its share by graph."""
    refused: int


class RandomGraphs(msgspec.Struct, frozen=True):
    """The outcome of the study."""

    graphs: int
    impossible: int
    """Graphs that even the optimum cannot place; they are left out."""
    optimal_gain: float
    """MB/s for each graph in the mean."""
    shares: dict[str, Share]
    paper: dict[str, float]
    budgets: dict[str, float]
    divisions: dict[str, dict[str, float]]
    """The shares by how the tasks are divided over the groups; the last two over fewer graphs."""


def run(progress: Callable[[str], None], quick: bool = False, processes: int = 2) -> RandomGraphs:
    """Plan all graphs with all planners."""
    workers = 1 if quick else processes
    rows = _gains("any", QUICK if quick else GRAPHS, workers, progress)
    divisions = {}
    for division in get_args(Division):
        others = rows if division == "any" else _gains(division, QUICK if quick else OTHERS, workers, progress)
        divisions[division] = {name: each.share for name, each in _shares(others).items()}
    optimal = np.array([row["optimal"] for row in rows])
    return RandomGraphs(
        graphs=len(rows),
        impossible=int(np.isnan(optimal).sum()),
        optimal_gain=round(float(np.nanmean(optimal)), 3),
        shares=_shares(rows),
        paper=PAPER,
        budgets=BUDGETS,
        divisions=divisions,
    )


def draw(result: RandomGraphs, path: Path) -> None:
    """Shares of the optimum by planner, beside the paper's."""
    names = [*result.shares][::-1]
    known = [place for place, name in enumerate(names) if name in result.paper]
    paper = [100 * result.paper[names[place]] for place in known]
    with chart(path) as axes:
        axes.barh(names, [100 * result.shares[name].share for name in names], label="measured")
        axes.scatter(paper, known, marker="|", s=600, color="black", label="paper", zorder=3)
        axes.set(xlabel="% of the optimal gain", xlim=(0, 105))
        axes.set_title(f"{result.graphs} random graphs of 17 tasks on 8 lanes")
        axes.legend(loc="lower left")


def random_graph(seed: int, division: Division = "any") -> ClusterSnapshot:
    """One graph of the class of section 7.3.

    >>> graph = random_graph(7)
    >>> len(graph), round(graph.total), graph.lanes
    (17, 500, 8)
    """
    draw = chance(seed)
    count = int(draw.integers(GROUPS[0], GROUPS[1], endpoint=True))
    sizes = _divided(draw, count, division)
    loads = sizes * draw.uniform(*UNEVEN, count)
    loads *= LOAD / loads.sum()
    operator = np.repeat(np.arange(count), sizes)
    return ClusterSnapshot.of(
        load=(loads / sizes)[operator], operator=operator, capacity=LANES, groups=list(_edges(draw, count))
    )


def planners() -> dict[str, Planner]:
    """Whom to compare."""
    return {
        "naive": Naive(),
        "tasklevel": TaskLevel(),
        "tasklevel, drawn order": TaskLevel(seed=0),
        "tasklevel by traffic": TaskLevel(priority="traffic"),
        "topdown by traffic": TopDown(priority="traffic"),
        "topdown": TopDown(),
        "auto": Auto(objective="traffic"),
    }


def _edges(draw: Chance, count: int) -> Iterator[tuple[int, int, float]]:
    """From every group but the last to some of the later ones."""
    for source in range(count - 1):
        fanout = min(int(draw.choice([1, 2, 3], p=FANOUT)), count - 1 - source)
        for target in draw.choice(np.arange(source + 1, count), fanout, replace=False).tolist():
            yield source, target, float(draw.uniform(*TRAFFIC))


def _divided(draw: Chance, groups: int, division: Division) -> Ints:
    """The number of tasks of every group, at least one each."""
    if division == "even":
        return np.bincount(np.arange(TASKS) % groups)
    if division == "drawn":
        return 1 + draw.multinomial(TASKS - groups, [1 / groups] * groups)
    cuts = np.sort(draw.choice(np.arange(1, TASKS), groups - 1, replace=False))
    return np.diff(np.concatenate([[0], cuts, [TASKS]]))


def _gains(division: Division, graphs: int, processes: int, progress: Callable[[str], None]) -> list[Gains]:
    """The gain of every planner by graph; NaN where it refuses."""
    parts = [range(start, min(start + CHUNK, graphs)) for start in range(0, graphs, CHUNK)]
    rows: list[Gains] = []
    with ProcessPoolExecutor(processes, get_context("spawn")) if processes > 1 else nullcontext() as pool:
        for chunk in (pool.map if pool else map)(partial(_chunk, division), parts):
            rows += chunk
            progress(f"random graphs, tasks divided {division}: {len(rows)} of {graphs}")
    return rows


def _chunk(division: Division, seeds: range) -> list[Gains]:
    compared = {"optimal": Optimal()} | planners()
    graphs = [random_graph(seed, division) for seed in seeds]
    return [{name: _gain(planner, graph) for name, planner in compared.items()} for graph in graphs]


def _gain(planner: Planner, graph: ClusterSnapshot) -> float:
    answer = planner.plan(graph)
    return imc_gain(graph, answer.lanes) if isinstance(answer, Plan) else np.nan


def _shares(rows: list[Gains]) -> dict[str, Share]:
    """By planner, over the graphs that can be placed at all."""
    gains = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    optimal = gains.pop("optimal")
    possible = ~np.isnan(optimal)
    return {name: _share(each[possible], optimal[possible]) for name, each in gains.items()}


def _share(gain: Floats, optimal: Floats) -> Share:
    placed = ~np.isnan(gain)
    each = np.where(placed, gain, 0) / optimal
    return Share(
        share=round(float(gain[placed].sum() / optimal.sum()), 4),
        share_where_placed=round(float(gain[placed].sum() / optimal[placed].sum()), 4),
        lowest=round(float(np.percentile(each, 5)), 4),
        refused=int((~placed).sum()),
    )
