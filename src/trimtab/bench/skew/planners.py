"""`hotspot`, `milp` and `auto` on the same skewed stream: epochs until it is level, moves, seconds of planning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession

from trimtab.bench.skew.cases import UNIFORM, Case, Setting, measured
from trimtab.bench.skew.contenders import Contender, trimtab
from trimtab.bench.skew.run import Series
from trimtab.bench.skew.service import Service
from trimtab.bench.skew.source import Input, Phase
from trimtab.bench.skew.verdict import ENOUGH, Outcome
from trimtab.control.settings import Control
from trimtab.planners.auto import Auto
from trimtab.planners.hotspot import Hotspot
from trimtab.planners.milp import Milp
from trimtab.planners.plan import Planner

SECONDS, QUICK = 50.0, 20.0
PLANNERS: dict[str, Planner] = {"hotspot": Hotspot(), "milp": Milp(), "auto": Auto()}


def run(spark: SparkSession, repetitions: int, quick: bool, progress: Callable[[str], None]) -> list[Case]:
    """One case."""
    setting = Setting("80 % on one of 3 lanes", 3, (Phase(0, 80, (0,)),), QUICK if quick else SECONDS)
    return [measured(spark, setting, contenders, criteria, repetitions, progress, balanced="hotspot")]


def contenders(input: Input, service: Service) -> list[Contender]:
    """Every planner with the same settings of control, and none."""
    planned = [trimtab(name, input, service, planner, Control()) for name, planner in PLANNERS.items()]
    return [trimtab("off", input, service), *planned]


def criteria(outcomes: Mapping[str, Outcome], runs: Mapping[str, Sequence[Series]]) -> dict[str, bool]:
    """The budget, for each."""
    even = outcomes[UNIFORM].throughput.median
    return {
        f"{name}: {ENOUGH} of uniform's throughput": outcomes[name].throughput.median >= ENOUGH * even
        for name in PLANNERS
    }
