"""Gain by lane capacity on the two real topologies of Top-down 7.4 (Fig. 6 to 8).

Only the shapes of the topologies and their total traffic (143 and 790 MB/s) survive in print; loads, task counts and
the division of the traffic are ours, so the shape of the curves is what can be compared. Storm deals its tasks out to
as many lanes as the load needs at that capacity; the others have more lanes than they need and gather on few. What
tasklevel reaches depends on the order of task pairs, which the paper leaves open: both orders are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from trimtab.bench.charts import chart
from trimtab.planners.even import Even
from trimtab.planners.metrics import imc_gain
from trimtab.planners.plan import Plan, Planner
from trimtab.planners.snapshot import ClusterSnapshot
from trimtab.planners.tasklevel import TaskLevel
from trimtab.planners.topdown import TopDown

STEPS = 20
QUICK_STEPS = 6
LANES = 40
LEAST = 15
"""The smallest capacity is this part of the load."""
SPARE = 1.1
"""Storm's lanes have this many times the capacity that the load needs."""


@dataclass(frozen=True)
class Topology:
    """Groups with their load in percent of a core and tasks, and edges with their traffic in MB/s."""

    loads: list[float]
    tasks: list[int]
    edges: list[tuple[int, int, float]]


TOPOLOGIES = {
    "trending topics": Topology(
        loads=[200, 400, 300, 60], tasks=[10, 20, 15, 3], edges=[(0, 1, 90.0), (1, 2, 45.0), (2, 3, 8.0)]
    ),
    "bargain detection": Topology(
        loads=[120, 200, 300, 500, 150, 30],
        tasks=[6, 10, 15, 20, 10, 2],
        edges=[(0, 2, 250.0), (1, 3, 300.0), (2, 3, 160.0), (3, 4, 70.0), (4, 5, 10.0)],
    ),
}
PLANNERS: dict[str, Planner] = {
    "storm": Even(),
    "tasklevel": TaskLevel("traffic"),
    "tasklevel, drawn order": TaskLevel("traffic", seed=0),
    "topdown by traffic": TopDown("traffic"),
    "topdown": TopDown(),
}


class Sweep(msgspec.Struct, frozen=True):
    """One topology."""

    capacities: list[float]
    """In percent of a core."""
    gains: dict[str, list[float | None]]
    """MB/s by planner and capacity; None where it refuses."""
    topdown_not_below: dict[str, float]
    """By planner, the share of the capacities at which topdown gains no less. Criterion: at least 0.8."""
    tasklevel_not_below_storm: float
    """Criterion: at least 0.8."""
    converge: bool
    """Whether all keep all traffic in the end."""


def run(progress: Callable[[str], None], quick: bool = False) -> dict[str, Sweep]:
    """Sweep the capacity for each topology."""
    sweeps = {}
    for name, topology in TOPOLOGIES.items():
        sweeps[name] = _sweep(topology, QUICK_STEPS if quick else STEPS)
        progress(f"capacities: {name}")
    return sweeps


def draw(result: dict[str, Sweep], path: Path) -> None:
    """A panel for each topology."""
    with chart(path, 1, len(result)) as panels:
        for axes, (name, sweep) in zip(panels, result.items(), strict=True):
            for planner, gains in sweep.gains.items():
                axes.plot(
                    sweep.capacities, [np.nan if gain is None else gain for gain in gains], marker=".", label=planner
                )
            axes.set(xlabel="capacity of a lane, % of a core", ylabel="gain, MB/s", ylim=(0, None), title=name)
            axes.legend()


def cluster(topology: Topology, lanes: int, capacity: float) -> ClusterSnapshot:
    """The topology before so many empty lanes."""
    tasks = np.array(topology.tasks)
    operator = np.repeat(np.arange(len(tasks)), tasks)
    return ClusterSnapshot.of(
        load=(np.array(topology.loads) / tasks)[operator],
        operator=operator,
        capacity=[capacity] * lanes,
        groups=topology.edges,
    )


def _sweep(topology: Topology, steps: int) -> Sweep:
    total = sum(topology.loads)
    capacities = np.geomspace(total / LEAST, total, steps).round(1).tolist()
    gains = {
        name: [_gain(planner, topology, capacity, name == "storm") for capacity in capacities]
        for name, planner in PLANNERS.items()
    }
    every = sum(edge[2] for edge in topology.edges)
    return Sweep(
        capacities,
        gains,
        topdown_not_below={name: _not_below(gains["topdown"], gains[name]) for name in gains if name != "topdown"},
        tasklevel_not_below_storm=_not_below(gains["tasklevel"], gains["storm"]),
        converge=all(each[-1] is not None and np.isclose(each[-1], every) for each in gains.values()),
    )


def _not_below(gains: list[float | None], others: list[float | None]) -> float:
    """The share of places at which the first is no less; a refusal is less than any gain."""
    pairs = list(zip(gains, others, strict=True))
    return round(sum((gain or 0) >= (other or 0) - 1e-6 for gain, other in pairs) / len(pairs), 3)


def _gain(planner: Planner, topology: Topology, capacity: float, only_needed: bool) -> float | None:
    total = sum(topology.loads)
    lanes = 1 if capacity >= total else int(np.ceil(total * SPARE / capacity))
    snapshot = cluster(topology, lanes if only_needed else LANES, capacity)
    answer = planner.plan(snapshot)
    return round(imc_gain(snapshot, answer.lanes), 3) if isinstance(answer, Plan) else None
