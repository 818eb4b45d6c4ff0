"""A skew that stays (AutoFlow, Fig. 5): 50 and 80 % on one lane of three, 60 and 80 % on two lanes of five.

Uniform input loads every lane to 0.8 of what it can take, so only hot lanes are overloaded: 1.2 and 1.92 times on three
lanes, 1.2 and 1.6 times on five. There lanes only wait, with a task slot each, however few cores there are. With real
work there are as many lanes as cores, and less load, because Spark needs the cores as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from pyspark.sql import SparkSession

from trimtab.bench.skew.cases import SERVICE_SECONDS, UNIFORM, Case, Setting, measured
from trimtab.bench.skew.contenders import Contender, native_behind_stage, trimtab, tws_pandas
from trimtab.bench.skew.run import Series
from trimtab.bench.skew.service import Service, working
from trimtab.bench.skew.source import Input, Phase
from trimtab.bench.skew.verdict import ENOUGH, FLAT, GRACE, LEVEL, Outcome, rises
from trimtab.control.settings import Control
from trimtab.planners.hotspot import Hotspot

SECONDS, QUICK = 50.0, 20.0
REAL_LOAD = 0.6


def settings() -> list[Setting]:
    """All cases."""

    def emulated(lanes: int, share: int, *hot: int) -> Setting:
        where = "one" if len(hot) == 1 else "two"
        return Setting(f"{share} % on {where} of {lanes} lanes", lanes, (Phase(0, share, hot),), SECONDS)

    real = Setting("80 % on one of 2 lanes", 2, (Phase(0, 80, (0,)),), SECONDS, working(SERVICE_SECONDS), REAL_LOAD)
    return [emulated(3, 50, 0), emulated(3, 80, 0), emulated(5, 60, 0, 1), emulated(5, 80, 0, 1), real]


def run(spark: SparkSession, repetitions: int, quick: bool, progress: Callable[[str], None]) -> list[Case]:
    """Every case; a quick run has one of waiting and the one of work."""
    every = settings()
    chosen = [each.brief(QUICK) for each in (every[0], every[-1])] if quick else every
    return [measured(spark, each, contenders, criteria, repetitions, progress, balanced="on") for each in chosen]


def contenders(input: Input, service: Service) -> list[Contender]:
    """Balancing off and on, and what plain Spark makes of the same rows."""
    return [
        trimtab("off", input, service),
        trimtab("on", input, service, Hotspot(), Control()),
        tws_pandas("transformWithStateInPandas", input, service),
        native_behind_stage("mapInArrow + groupBy.agg", input, service),
    ]


def criteria(outcomes: Mapping[str, Outcome], runs: Mapping[str, Sequence[Series]]) -> dict[str, bool]:
    """What makes it AutoFlow's Fig. 5, and what the budget asks for."""
    on, even = outcomes["on"], outcomes[UNIFORM]
    assert on.busiest_lane is not None
    soon = f"{GRACE} epochs after the first full window"
    return {
        "off: latency rises throughout": all(chain(map(rises, runs["off"]))),
        f"on: latency is level {soon}": on.slope.median <= FLAT,
        f"on: the busiest lane has at most {LEVEL} of the mean {soon}": on.busiest_lane.median <= LEVEL,
        f"on: {ENOUGH} of uniform's throughput {soon}": on.throughput.median >= ENOUGH * even.throughput.median,
    }
