"""A case of a study: one input, several contenders, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
from pyspark.sql import SparkSession

from trimtab.bench.skew.contenders import Contender, trimtab
from trimtab.bench.skew.run import Series, interleaved
from trimtab.bench.skew.service import Service, Waiting
from trimtab.bench.skew.source import Input, Phase, keys_for
from trimtab.bench.skew.verdict import Outcome, outcome, settles

SERVICE_SECONDS = 0.001
"""What a row costs: much against Spark's own cost of a row, so that lanes are what is loaded."""
EMULATED = Waiting(SERVICE_SECONDS)
UNIFORM = "uniform"
"""The contender without skew and without balancing, against which others are measured."""


@dataclass(frozen=True)
class Setting:
    """The lanes, the load and the skew of a case. A lane can take 1 / SERVICE_SECONDS rows per second.

    `load` is what uniform input would ask of every lane, as a share of that; `cap` how many seconds' worth of rows an
    epoch takes at most. `window` is that of the contender which the settling time is taken from.
    """

    name: str
    lanes: int
    phases: tuple[Phase, ...]
    seconds: float
    service: Service = EMULATED
    load: float = 0.8
    cap: float = 3.0
    window: int = 5

    @property
    def rate(self) -> int:
        """Rows per second."""
        return round(self.load * self.lanes / SERVICE_SECONDS)

    def input(self, spark: SparkSession) -> Input:
        return Input(self.rate, round(self.cap * self.rate), self.lanes, keys_for(spark, self.lanes), self.phases)

    def brief(self, seconds: float) -> Setting:
        """The same for so long, to see whether all works."""
        return replace(self, seconds=seconds)


class Case(msgspec.Struct, frozen=True):
    """Every contender's runs on one setting. `since` is when each repetition ought to have settled."""

    name: str
    service: str
    lanes: int
    rate: int
    lane_capacity: float
    rows_per_epoch_at_most: int
    seconds: float
    window: int
    phases: tuple[Phase, ...]
    since: list[float]
    outcomes: dict[str, Outcome]
    holds: dict[str, bool]
    runs: dict[str, list[Series]]


Contenders = Callable[[Input, Service], Sequence[Contender]]
Criteria = Callable[[Mapping[str, Outcome], Mapping[str, Sequence[Series]]], dict[str, bool]]


def measured(
    spark: SparkSession,
    setting: Setting,
    contenders: Contenders,
    criteria: Criteria,
    repetitions: int,
    progress: Callable[[str], None],
    balanced: str = "",
) -> Case:
    """Run a case. `balanced` is the contender that says when the case has settled; without one all of a run counts."""
    input = setting.input(spark)
    even = trimtab(UNIFORM, msgspec.structs.replace(input, phases=(Phase(0),)), setting.service)
    all_of_them = [*contenders(input, setting.service), even]
    runs = interleaved(
        spark, all_of_them, setting.seconds, repetitions, lambda text: progress(f"{setting.name}: {text}")
    )
    since = (
        [settles(run, setting.window, setting.seconds) for run in runs[balanced]] if balanced else [0.0] * repetitions
    )
    pace = [run.pace(when) for run, when in zip(runs[UNIFORM], since, strict=True)]
    outcomes = {name: outcome(each, since, pace, setting.window) for name, each in runs.items()}
    return Case(
        setting.name,
        setting.service.label,
        setting.lanes,
        setting.rate,
        1 / SERVICE_SECONDS,
        input.cap,
        setting.seconds,
        setting.window,
        setting.phases,
        since,
        outcomes,
        criteria(outcomes, runs),
        runs,
    )
