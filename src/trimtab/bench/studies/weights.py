"""The splitter of ordered regions on a model of one: Blocking rate Fig. 5 and 8 to 13, judged as docs/papers.md says.

Everything here is computed on `region_model`, nothing is measured on Spark. A worker that is not loaded has capacity 1.
Where the paper's workload stops scaling, at 8 workers with tuples of 1,000 multiplies, the splitter is the bottleneck:
so it sends 8 there, and as much more as tuples are dearer, 80 at 10,000 and 480 at 60,000. Load is removed after an
eighth of the rows, as in the paper; how long the paper's runs were is not said, here they take Oracle* 600 s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from trimtab.bench.charts import chart
from trimtab.bench.studies.region_model import Region, Trace, balanced, even, oracle
from trimtab.planners.snapshot import Floats, Ints
from trimtab.planners.splitter import Splitter
from trimtab.ports import SystemClock

SECONDS = 600
QUICK, QUICK_CLUSTERS = 160, 40
"""Seconds of a quick run, and of the one with 64 lanes in it."""
SETTLED = 15
"""Seconds within which the paper's splitter found the loaded lane."""
FAST = 65 / 35
HOST_SLOTS = {"fast": 16, "slow": 8}
CLASSES = (20, 20, 24)
CAPACITIES = (0.01, 0.2, 1.0)


class Criterion(msgspec.Struct, frozen=True):
    """A figure of the paper, what we have, what is wanted, and whether it is met."""

    figure: str
    what: str
    ours: float
    wanted: str
    met: bool | None = None
    """None for a figure without a criterion."""


class Comparison(msgspec.Struct, frozen=True):
    """Times until all rows are through, and the throughput of the last eighth; all over those of Oracle*."""

    lanes: int
    load: int
    removed: bool
    workers_limit: bool
    """Whether the workers are the bottleneck when nothing is loaded, and not the splitter."""
    round_robin: float
    static: float
    adaptive: float
    final_static: float
    final_adaptive: float


class WeightsResult(msgspec.Struct, frozen=True):
    """Labelled: a model."""

    model: bool
    criteria: list[Criterion]
    comparisons: list[Comparison]
    placements: dict[int, dict[str, float]]
    """By number of workers, the final throughput of the paper's four placements on a fast and a slow host."""
    removal: list[list[int]]
    """Weights by second, for the chart."""
    hosts: list[list[int]]
    classes: list[list[float]]
    """Mean weight of the lanes of each class by second, with 64 lanes."""
    milliseconds_a_step: float
    """With 64 lanes."""


def run(progress: Callable[[str], None], quick: bool = False) -> WeightsResult:
    """All of it; quick leaves out the larger regions."""
    seconds, many = (QUICK, QUICK_CLUSTERS) if quick else (SECONDS, SECONDS)
    progress("fixed weights")
    criteria = _fixed()
    progress("load removed, equal lanes, unlike hosts")
    removal, hosts = _removal(seconds, 8), _hosts(seconds)
    criteria += _three_lanes(removal, _removal(seconds, 80), _equal(seconds), hosts)
    progress("placements")
    placements = {lanes: _placements(lanes, seconds) for lanes in ((8,) if quick else (8, 16, 24))}
    criteria.append(_best_placement(placements))
    comparisons = []
    for lanes, load, speed in _sizes(quick):
        for removed in (False, True):
            progress(f"{lanes} lanes, half of them {load} times slower{', for a while' if removed else ''}")
            comparisons.append(_compare(lanes, load, speed, removed, seconds))
    criteria += _compared(comparisons)
    progress("64 lanes in three classes")
    clustered, step = _clusters(many, Splitter())
    printed, _ = _clusters(many, Splitter(brisk=sum(CLASSES)))
    criteria += [*_clustered(clustered), *_faded_as_printed(printed)]
    means = np.array(clustered.weights) @ _membership() / np.array(CLASSES)
    return WeightsResult(
        True, criteria, comparisons, placements, removal.weights, hosts.weights, means.round(2).tolist(), round(step, 3)
    )


def _fixed() -> list[Criterion]:
    """Two equal lanes under weights that stay: Fig. 5."""
    levels, spread = [], []
    for share in (800, 700, 600):
        region, weights = Region(np.ones(2), 8.0), np.array([share, 1000 - share])
        rates = np.array([region.blocking(weights)[0] for _ in range(100)])
        levels.append(float(rates.mean()))
        spread.append(float(rates.std() / rates.mean()))
    region = Region(np.ones(2), 8.0)
    leaders = [int(region.blocking(np.array([500, 500])).argmax()) for _ in range(100)]
    changes = int(np.count_nonzero(np.diff(leaders)))
    ordered = levels[0] > levels[1] > levels[2]
    return [
        _criterion("5", "blocking at 80 % over that at 60 %", levels[0] / levels[2], "above 1, in order", ordered),
        _criterion("5", "coefficient of variation", max(spread), "below 0.1", max(spread) < 0.1),
        _criterion("5", "changes of leader at 50 %", changes, "at least 1", changes > 0),
    ]


def _removal(seconds: int, speed: float) -> Trace:
    """One of three lanes is 100 times slower, until an eighth of the time has gone: Fig. 8."""
    loaded, free = np.array([0.01, 1.0, 1.0]), np.ones(3)
    region = Region(loaded, speed)
    return balanced(region, Splitter(), seconds, lambda second, _: loaded if second < seconds // 8 else free)


def _equal(seconds: int) -> Trace:
    return balanced(Region(np.ones(3), 80.0), Splitter(), seconds)


def _hosts(seconds: int) -> Trace:
    return balanced(Region(np.array([FAST, 1.0]), 160.0), Splitter(), seconds)


def _three_lanes(removal: Trace, dear: Trace, equal: Trace, hosts: Trace) -> list[Criterion]:
    criteria = []
    for name, trace in (("8", removal), ("8, dear tuples", dear)):
        most = max(weights[0] for weights in trace.weights[SETTLED : len(trace.weights) // 8]) / 10
        criteria.append(_criterion(name, "% on the loaded lane after 15 s", most, "at most 3", most <= 3))
        off = _off(trace, [100 / 3] * 3)
        criteria.append(_criterion(name, "points from even in the last quarter", off, "at most 5", off <= 5))
    off = _off(equal, [100 / 3] * 3)
    criteria.append(_criterion("8", "points from even, equal lanes", off, "at most 5", off <= 5))
    off = _off(hosts, [65, 35])
    criteria.append(_criterion("11", "points from 65/35", off, "at most 5", off <= 5))
    return criteria


def _off(trace: Trace, wanted: Sequence[float]) -> float:
    """Percentage points that 95 % of the last quarter stays within; the rest may be single seconds of exploration."""
    last = np.array(trace.weights[-len(trace.weights) // 4 :]) / 10
    return float(np.percentile(np.abs(last - np.array(wanted)).max(axis=1), 95))


def _placements(lanes: int, seconds: int) -> dict[str, float]:
    """Final throughput: hosts serve so many workers at full speed and share themselves out among more."""
    half = lanes // 2
    fast, slow = _host("fast", lanes), _host("slow", lanes)
    # As in the paper, the last one puts 16 of 24 on the fast host.
    most = max(half, min(HOST_SLOTS["fast"], lanes - HOST_SLOTS["slow"]))
    mixed = np.concatenate([_host("fast", half), _host("slow", lanes - half)])
    chosen = np.concatenate([_host("fast", most), _host("slow", lanes - most)])
    balance = balanced(Region(chosen, 160.0), Splitter(), seconds)
    return {
        "all fast": round(Region(fast, 160.0).throughput(even(lanes)), 2),
        "all slow": round(Region(slow, 160.0).throughput(even(lanes)), 2),
        "round robin": round(Region(mixed, 160.0).throughput(even(lanes)), 2),
        "balanced": round(float(np.mean(balance.throughput[-seconds // 4 :])), 2),
    }


def _host(kind: str, workers: int) -> Floats:
    speed = FAST if kind == "fast" else 1.0
    return np.full(workers, speed * min(1.0, HOST_SLOTS[kind] / max(workers, 1)))


def _best_placement(placements: dict[int, dict[str, float]]) -> Criterion:
    """At 8 and 16 the fast host alone is best; with 24 workers the slow one adds to it, if balanced."""
    order = {lanes: sorted(each, key=each.__getitem__)[-1] for lanes, each in placements.items()}
    wanted = {8: "all fast", 16: "all fast", 24: "balanced"}
    met = all(order[lanes] == wanted[lanes] for lanes in order)
    last = placements[max(placements)]
    gain = last["balanced"] / last["round robin"]
    return _criterion("11", "balanced over round robin, most workers", gain, "best placement as in the paper", met)


def _sizes(quick: bool) -> list[tuple[int, int, float]]:
    if quick:
        return [(4, 100, 80.0)]
    medium = [(lanes, 10, 8.0) for lanes in (2, 4, 8, 16)]
    heavy = [(lanes, 100, 80.0) for lanes in (2, 4, 8, 16)]
    return [*medium, *heavy, *((lanes, 100, 480.0) for lanes in (32, 64))]


def _compare(lanes: int, load: int, speed: float, removed: bool, seconds: int) -> Comparison:
    """Half of the lanes are slower, for good or for the first eighth of the rows: Fig. 9, 10, 13."""
    loaded = np.where(np.arange(lanes) < lanes // 2, 1 / load, 1.0)
    free = np.ones(lanes) if removed else loaded
    before, after = (Region(each, speed).throughput(oracle(each)) for each in (loaded, free))
    rows = seconds / (0.125 / before + 0.875 / after)
    change = partial(_capacity, loaded, free, rows / 8)
    robin = [Region(each, speed).throughput(even(lanes)) for each in (loaded, free)]
    runs = [
        balanced(Region(loaded, speed), splitter, round(1.8 * seconds), change)
        for splitter in (Splitter(decay=0.0), Splitter())
    ]
    finals = [float(np.mean(each.throughput[-seconds // 8 :])) / after for each in runs]
    return Comparison(
        lanes,
        load,
        removed,
        workers_limit=bool(free.sum() <= speed),
        round_robin=round((0.125 * rows / robin[0] + 0.875 * rows / robin[1]) / seconds, 3),
        static=round(runs[0].seconds_for(rows) / seconds, 3),
        adaptive=round(runs[1].seconds_for(rows) / seconds, 3),
        final_static=round(finals[0], 3),
        final_adaptive=round(finals[1], 3),
    )


def _capacity(loaded: Floats, free: Floats, until: float, second: int, done: float) -> Floats:
    return loaded if done < until else free


def _compared(comparisons: list[Comparison]) -> list[Criterion]:
    slowest = max(each.adaptive for each in comparisons)
    criteria = [_criterion("9, 10, 13", "adaptive over Oracle*, worst", slowest, "at most 1.8", slowest <= 1.8)]
    fixed = [each for each in comparisons if each.workers_limit and not each.removed]
    off = max(abs(each.round_robin / ((each.load + 1) / 2) - 1) for each in fixed)
    criteria.append(_criterion("9, 10", "round robin against (s + 1) / 2, worst", off, "within 0.2", off <= 0.2))
    removed = [each for each in comparisons if each.workers_limit and each.removed]
    gain = min(each.final_adaptive / each.final_static for each in removed)
    criteria.append(_criterion("9, 10, 13", "final adaptive over static, least", gain, "at least 1.5", gain >= 1.5))
    if large := [each for each in comparisons if each.lanes >= 32]:
        gain = min(each.round_robin / each.adaptive for each in large)
        criteria.append(_criterion("13", "adaptive over round robin, 32 and 64", gain, "at least 5", gain >= 5))
    return criteria


def _membership() -> Ints:
    return np.repeat(np.eye(len(CLASSES), dtype=np.int64), CLASSES, axis=0)


def _clusters(seconds: int, splitter: Splitter) -> tuple[Trace, float]:
    """20 lanes 100 times slower, 20 of them 5 times, 24 free: Fig. 12; and milliseconds a step."""
    clock = SystemClock()
    capacity, start = np.repeat(CAPACITIES, CLASSES), clock.monotonic()
    trace = balanced(Region(capacity, 480.0), splitter, seconds)
    return trace, 1000 * (clock.monotonic() - start) / seconds


def _clustered(trace: Trace) -> list[Criterion]:
    pure, share = _last_quarter(trace)
    means = np.array(trace.weights[-len(trace.weights) // 4 :]).mean(axis=0) @ _membership() / np.array(CLASSES) / 10
    return [
        _criterion("12", "share of the last quarter in which every cluster is pure", pure, "1", pure == 1),
        _criterion("12", "throughput of the last quarter over the ideal", share, "no criterion"),
        *(
            _criterion("12", f"mean weight in %, {name}", float(mean), f"ideal {ideal}")
            for name, mean, ideal in zip(("100x", "5x", "free"), means, (0.035, 0.71, 3.55), strict=True)
        ),
    ]


def _faded_as_printed(trace: Trace) -> list[Criterion]:
    """The same where data fades by 10 % a step with 64 lanes too."""
    pure, share = _last_quarter(trace)
    return [
        _criterion(
            "12, fading as printed", "share of the last quarter in which every cluster is pure", pure, "see above"
        ),
        _criterion("12, fading as printed", "throughput of the last quarter over the ideal", share, "see above"),
    ]


def _last_quarter(trace: Trace) -> tuple[float, float]:
    """How much of it had pure clusters only, and its throughput over the ideal."""
    last = len(trace.clusters) // 4
    pure = float(np.mean([_pure(np.array(clusters)) for clusters in trace.clusters[-last:]]))
    ideal = float(np.repeat(CAPACITIES, CLASSES).sum())
    return pure, float(np.mean(trace.throughput[-last:])) / ideal


def _pure(clusters: Ints) -> bool:
    kinds = np.repeat(np.arange(len(CLASSES)), CLASSES)
    return all(len(np.unique(kinds[clusters == each])) == 1 for each in np.unique(clusters))


def _criterion(figure: str, what: str, ours: float, wanted: str, met: bool | None = None) -> Criterion:
    return Criterion(figure, what, round(ours, 3), wanted, met)


def draw(result: WeightsResult, path: Path) -> None:
    """Weights over time in three experiments, and times against Oracle*."""
    series = (
        ("model: 3 lanes, one 100x slower at first", result.removal, ("loaded", "free", "free")),
        ("model: a fast and a slow host", result.hosts, ("fast", "slow")),
        ("model: 64 lanes, mean weight by class", result.classes, ("100x", "5x", "free")),
    )
    with chart(path, rows=2, columns=2) as panels:
        for axes, (title, weights, labels) in zip(panels, series, strict=False):
            for lane, label in zip(np.array(weights).T, labels, strict=True):
                axes.plot(lane / 10, label=label, linewidth=1)
            axes.set(title=title, xlabel="second", ylabel="% of rows")
            axes.legend()
        _draw_times(panels[3], result.comparisons)


def _draw_times(axes: Any, comparisons: list[Comparison]) -> None:
    labels = [f"{each.lanes}\n{each.load}x{'*' if each.removed else ''}" for each in comparisons]
    for name in ("round_robin", "static", "adaptive"):
        axes.plot(labels, [getattr(each, name) for each in comparisons], "o", label=name.replace("_", " "))
    axes.axhline(1, color="grey", linewidth=1)
    axes.set(title="model: time over that of Oracle* (*: load removed)", yscale="log", xlabel="lanes, load")
    axes.tick_params(axis="x", labelsize=6)
    axes.legend()
