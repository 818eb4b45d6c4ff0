"""Hotspots that move (AutoFlow, Fig. 7): 50 % of the rows on one of three lanes, then by chance on another; 80 %
on each in turn.

Slots are hot by the lane on which they began, wherever they are now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession

from trimtab.bench.skew.cases import Case, Setting, measured
from trimtab.bench.skew.contenders import Contender, trimtab
from trimtab.bench.skew.run import Series
from trimtab.bench.skew.service import Service
from trimtab.bench.skew.source import Input, Phase
from trimtab.bench.skew.verdict import Outcome
from trimtab.control.settings import Control
from trimtab.planners.hotspot import Hotspot
from trimtab.ports import chance

LANES, EVERY, SECONDS, QUICK = 3, 8.0, 80.0, 20.0
WINDOW, LOAD, CAP = 2, 0.7, 2.0


def run(spark: SparkSession, repetitions: int, quick: bool, progress: Callable[[str], None]) -> list[Case]:
    """Both movements; a quick run has the first alone."""
    names = {"50 % that moves by chance": by_chance(50), "80 % in turn": in_turn(80)}
    cases = [
        Setting(f"{name}, every {EVERY:.0f} s", LANES, phases, SECONDS, load=LOAD, cap=CAP, window=WINDOW)
        for name, phases in names.items()
    ]
    chosen = [cases[0].brief(QUICK)] if quick else cases
    return [measured(spark, each, contenders, criteria, repetitions, progress) for each in chosen]


def in_turn(share: int) -> tuple[Phase, ...]:
    """Every lane has its turn."""
    return tuple(Phase(EVERY, share, (turn % LANES,)) for turn in range(round(SECONDS / EVERY)))


def by_chance(share: int, seed: int = 1) -> tuple[Phase, ...]:
    """Always another lane than before, the same ones in every run."""
    random, lane, phases = chance(seed), 0, []
    for _ in range(round(SECONDS / EVERY)):
        lane = (lane + int(random.integers(1, LANES))) % LANES
        phases.append(Phase(EVERY, share, (lane,)))
    return tuple(phases)


def contenders(input: Input, service: Service) -> list[Contender]:
    """Off and on, with a short window."""
    planner = Hotspot(window=WINDOW)
    return [trimtab("off", input, service), trimtab("on", input, service, planner, Control(window=WINDOW))]


def criteria(outcomes: Mapping[str, Outcome], runs: Mapping[str, Sequence[Series]]) -> dict[str, bool]:
    """A residue is allowed."""
    off, on = outcomes["off"], outcomes["on"]
    return {
        "the peak of latency is lower": on.latency_peak.median < off.latency_peak.median,
        "latency at the end is lower": on.latency_end.median < off.latency_end.median,
    }
