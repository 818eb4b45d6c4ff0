"""StroMAX's bootstrap and rebalance against even on the six topologies of its Fig. 4: what crosses between lanes.

From the paper: the shapes, 40 lanes with 10 task slots each, the task counts of log processing (10 for the spout, 50
for the rules, 30 each for index and counter), sentiment (8 and 20 each), and of word count, throughput test and
trending topics (5 for a spout, 20 for a bolt), which are also the three that run together when they are rebalanced.

Not in the paper, chosen here: 5 and 20 for the synthetic topology too, with three communication bolts (it doubles
words from bolt to bolt); how many tuples an operator emits for one (below); a spout's work for a tuple a quarter of a
bolt's; tuples of 10 KB in the throughput test, of 1 KB elsewhere; and that the tasks of a bolt differ (lognormal, sigma
0.3), and pairs of tasks in what they exchange (sigma 1): keys do. Where traffic is spread evenly it makes no difference
on these shapes whether neighbours weigh by load or by traffic.

Bootstrap knows task slots only and fills few lanes, whatever they then carry. Rebalance keeps capacities, so what it
can keep together depends on how full the lanes are. It is shown twice: with half of all capacity used, as in the
paper's set-up, and with as much load as fills one task slot per task on average, where it could fill as few lanes as
bootstrap does. Figures are means over seeds. The paper's own are processing times (-37 %, -39 %), not traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from trimtab.bench.charts import chart
from trimtab.planners.bootstrap import Bootstrap
from trimtab.planners.even import Even
from trimtab.planners.metrics import measure
from trimtab.planners.plan import Infeasible, Planner
from trimtab.planners.rebalance import Rebalance
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints, combine
from trimtab.ports import SystemClock, chance

LANES = 40
TASK_SLOTS = 10
HALF = 0.5
SPOUT_WORK = 0.25
SKEW = 0.3
PAIR_SKEW = 1.0

REFERENCE = {"word count": 0.80, "trending topics": 0.85, "log processing": 0.92, "sentiment": 0.91}
"""What bootstrap left between lanes when it was tried while the papers were read."""


@dataclass(frozen=True)
class Topology:
    """Operators as (name, tasks, tuples out for one in), the spout first; edges in the order of the flow."""

    name: str
    operators: tuple[tuple[str, int, float], ...]
    edges: tuple[tuple[int, int], ...]
    size: float = 1.0
    """Of a tuple."""

    def snapshot(self, use: float | None, seed: int) -> ClusterSnapshot:
        """The flow with `use` of all capacity taken, or with a task slot's load for every task on average."""
        rates, tasks = self._rates(), np.array([count for _, count, _ in self.operators])
        operator = np.repeat(np.arange(len(tasks)), tasks)
        keys = np.where(operator > 0, chance(seed).lognormal(0, SKEW, len(operator)), 1.0)
        keys /= np.bincount(operator, keys)[operator]
        work = rates * np.where(np.arange(len(tasks)) > 0, 1.0, SPOUT_WORK)
        load = work[operator] * keys
        total = len(operator) / TASK_SLOTS if use is None else use * LANES
        return ClusterSnapshot.of(
            load=100 * total * load / load.sum(),
            capacity=[100.0] * LANES,
            operator=operator,
            traffic=list(self._traffic(rates, operator, keys, seed)),
        )

    def bare(self) -> ClusterSnapshot:
        """The shape alone: as much flows between any two operators, and every task has one unit of load."""
        groups = [(start, end, 1.0) for start, end in self.edges]
        operator = np.repeat(np.arange(len(self.operators)), [count for _, count, _ in self.operators])
        return ClusterSnapshot.of(load=np.ones(len(operator)), capacity=[1.0] * LANES, operator=operator, groups=groups)

    def _rates(self) -> Floats:
        """Tuples into each operator for one from the outside."""
        rates = np.zeros(len(self.operators))
        rates[0] = 1.0
        for start, end in self.edges:
            rates[end] += rates[start] * self.operators[start][2]
        return rates

    def _traffic(self, rates: Floats, operator: Ints, keys: Floats, seed: int) -> Iterator[tuple[int, int, float]]:
        random = chance(seed + 1)
        for start, end in self.edges:
            ones, others = np.flatnonzero(operator == start), np.flatnonzero(operator == end)
            weights = np.outer(keys[ones], keys[others]) * random.lognormal(0, PAIR_SKEW, (len(ones), len(others)))
            weights *= rates[start] * self.operators[start][2] * self.size / weights.sum()
            for (one, other), weight in np.ndenumerate(weights):
                yield int(ones[one]), int(others[other]), weight


def _chain(count: int) -> tuple[tuple[int, int], ...]:
    return tuple((each, each + 1) for each in range(count - 1))


TOPOLOGIES = (
    Topology("word count", (("spout", 5, 1), ("split", 20, 2), ("count", 20, 0)), _chain(3)),
    Topology("throughput test", (("spout", 5, 1), ("identity", 20, 1), ("anchor", 20, 0)), _chain(3), size=10),
    Topology("trending topics", (("spout", 5, 1), ("prepare", 20, 1), ("rank", 20, 0.2), ("merge", 20, 0)), _chain(4)),
    Topology(
        "log processing",
        (("spout", 10, 1), ("rules", 50, 1), ("index", 30, 0), ("counter", 30, 0)),
        ((0, 1), (1, 2), (1, 3)),
    ),
    Topology(
        "sentiment",
        (
            *(("spout", 8, 1), ("sensitize", 20, 1), ("clean", 20, 1)),
            *(("positive", 20, 1), ("negative", 20, 1), ("join", 20, 0.5), ("score", 20, 0)),
        ),
        ((0, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5), (5, 6)),
    ),
    Topology("synthetic", (("spout", 5, 1), ("first", 20, 2), ("second", 20, 2), ("third", 20, 0)), _chain(4)),
)
TOGETHER = ("word count", "throughput test", "trending topics")


class Share(msgspec.Struct, frozen=True):
    """Traffic between lanes as a share of all, lanes used, and the most loaded lane in percent of its capacity."""

    between: float
    lanes_used: float
    max_load: float
    infeasible: int = 0
    """Of the seeds, how many got no plan; the other figures are means over those that did."""


class TopologyCase(msgspec.Struct, frozen=True):
    """One topology: by scheduler its figures."""

    topology: str
    tasks: int
    shares: dict[str, Share]
    bare: float | None = None
    """What bootstrap leaves between lanes where as much flows between any two operators."""
    reference: float | None = None
    """The same where it was tried while the papers were read."""


class TopologiesResult(msgspec.Struct, frozen=True):
    """All six, and the three that run together as one global graph."""

    cases: list[TopologyCase]
    lower_than_even: bool
    """Whether bootstrap and rebalance leave less between lanes than even does, and find a plan, on all topologies."""
    largest_difference: float
    """Between `bare` and its reference."""
    seconds: float


def run(progress: Callable[[str], None], quick: bool = False) -> TopologiesResult:
    """Place every topology by every scheduler."""
    clock = SystemClock()
    start, seeds = clock.monotonic(), range(1 if quick else 5)
    cases = []
    for topology in TOPOLOGIES:
        progress(topology.name)
        bare = _mean([_share(topology.bare(), Bootstrap(TASK_SLOTS, seed)) for seed in seeds]).between
        tasks, shares = _shares([topology], seeds)
        cases.append(TopologyCase(topology.name, tasks, shares, bare, REFERENCE.get(topology.name)))
    progress("three together")
    cases.append(
        TopologyCase("three together", *_shares([each for each in TOPOLOGIES if each.name in TOGETHER], seeds))
    )
    differences = [abs(case.bare - case.reference) for case in cases if case.bare and case.reference]
    lower = all(lower_than_even(case) for case in cases)
    return TopologiesResult(cases, lower, round(max(differences), 3), round(clock.monotonic() - start, 3))


def lower_than_even(case: TopologyCase) -> bool:
    """Whether all others leave less between lanes; one that has no plan on any seed leaves everything."""
    return all(share.between < case.shares["even"].between for name, share in case.shares.items() if name != "even")


def _shares(flows: Sequence[Topology], seeds: Sequence[int]) -> tuple[int, dict[str, Share]]:
    """How many tasks there are; by scheduler, the mean of its figures over the seeds."""
    half = [combine([each.snapshot(HALF / len(flows), seed) for each in flows]) for seed in seeds]
    by_slots = [combine([each.snapshot(None, seed) for each in flows]) for seed in seeds]
    kinds: dict[str, tuple[list[ClusterSnapshot], Callable[[int], Planner]]] = {
        "even": (half, lambda seed: Even()),
        "bootstrap": (half, lambda seed: Bootstrap(TASK_SLOTS, seed)),
        "rebalance by load": (half, lambda seed: Rebalance("load", seed)),
        "rebalance by traffic": (half, lambda seed: Rebalance("traffic", seed)),
        "rebalance by load (slots)": (by_slots, lambda seed: Rebalance("load", seed)),
        "rebalance by traffic (slots)": (by_slots, lambda seed: Rebalance("traffic", seed)),
    }
    figures = {
        name: _mean([_share(snapshot, kind(seed)) for seed, snapshot in zip(seeds, snapshots, strict=True)])
        for name, (snapshots, kind) in kinds.items()
    }
    return len(half[0]), figures


def _share(snapshot: ClusterSnapshot, planner: Planner) -> Share | None:
    plan = planner.plan(snapshot)
    if isinstance(plan, Infeasible):
        return None
    figures = measure(snapshot, plan.lanes)
    return Share(1 - figures.collocation, len(np.unique(plan.lanes)), figures.max_load)


def _mean(shares: Sequence[Share | None]) -> Share:
    found = [share for share in shares if share is not None]
    if not found:
        return Share(1.0, 0.0, 0.0, len(shares))
    return Share(
        between=round(float(np.mean([each.between for each in found])), 3),
        lanes_used=round(float(np.mean([each.lanes_used for each in found])), 1),
        max_load=round(float(np.mean([each.max_load for each in found])), 1),
        infeasible=len(shares) - len(found),
    )


def draw(result: TopologiesResult, path: Path) -> None:
    """Bars by topology: what crosses between lanes."""
    names = list(result.cases[0].shares)
    width = 0.8 / len(names)
    with chart(path, width=11, height=4.5) as axes:
        for place, name in enumerate(names):
            heights = [case.shares[name].between for case in result.cases]
            axes.bar(np.arange(len(heights)) + (place - len(names) / 2 + 0.5) * width, heights, width, label=name)
        axes.set_xticks(range(len(result.cases)), [case.topology for case in result.cases])
        axes.set(ylabel="share of traffic between lanes", title=f"Six topologies on {LANES} lanes")
        axes.legend(fontsize=8, ncols=3, loc="lower center")
