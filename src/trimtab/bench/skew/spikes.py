"""A spike of 20 s and one of 10 s on one lane of three (AutoFlow, Fig. 6), with a long and with a short window.

A window as long as the spike sees it when it is over.
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

BEFORE, SECONDS, QUICK = 15.0, 60.0, 20.0
LONG, SHORT = 10, 2
LOAD, CAP = 0.6, 2.0
"""Less load and shorter epochs than elsewhere, so that several epochs fit into a spike."""


def run(spark: SparkSession, repetitions: int, quick: bool, progress: Callable[[str], None]) -> list[Case]:
    """Both spikes; a quick run cuts the longer one short."""
    settings = [setting(20)] if quick else [setting(20), setting(10)]
    chosen = [each.brief(QUICK) for each in settings] if quick else settings
    return [measured(spark, each, contenders, criteria_of(each), repetitions, progress) for each in chosen]


def setting(seconds: int) -> Setting:
    """Even, then 80 % on one lane for so long, then even again."""
    phases = Phase(BEFORE), Phase(seconds, 80, (0,)), Phase(0)
    return Setting(f"a spike of {seconds} s", 3, phases, SECONDS, load=LOAD, cap=CAP, window=SHORT)


def contenders(input: Input, service: Service) -> list[Contender]:
    """Off, and both windows; uniform input for comparison comes by itself."""
    return [
        trimtab("off", input, service),
        *(
            trimtab(f"window {window}", input, service, Hotspot(window=window), Control(window=window))
            for window in (LONG, SHORT)
        ),
    ]


def criteria_of(
    setting: Setting,
) -> Callable[[Mapping[str, Outcome], Mapping[str, Sequence[Series]]], dict[str, bool]]:
    """A long spike's peak is halved at least; a short one's is lower."""

    def criteria(outcomes: Mapping[str, Outcome], runs: Mapping[str, Sequence[Series]]) -> dict[str, bool]:
        off, short, long = (outcomes[name].latency_peak.median for name in ("off", f"window {SHORT}", f"window {LONG}"))
        longer = setting.phases[1].seconds >= 20
        wanted = {"the short window at least halves the peak": short <= off / 2} if longer else {}
        return {**wanted, "the short window lowers the peak": short < off, "more than the long one": short < long}

    return criteria
