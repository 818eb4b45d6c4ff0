"""A short run of the skewed stream on Spark."""

from __future__ import annotations

from pyspark.sql import SparkSession

from trimtab.bench.skew.contenders import trimtab
from trimtab.bench.skew.run import observe
from trimtab.bench.skew.service import Waiting
from trimtab.bench.skew.source import Input, Phase, keys_for
from trimtab.control.settings import Control
from trimtab.planners.hotspot import Hotspot


def test_every_row_that_came_is_in_an_epoch_and_what_moved_is_told(spark: SparkSession) -> None:
    input = Input(400, 400, 2, keys_for(spark, 2), (Phase(0, 80, (0,)),))
    contender = trimtab("on", input, Waiting(0.002), Hotspot(window=1), Control(window=1))
    series = observe(spark, contender, seconds=3)
    assert series.end[-1] >= 3 and series.end == sorted(series.end)
    assert max(series.rows) <= input.cap and sum(series.rows) <= series.end[-1] * input.rate
    assert all(0 < mean <= worst for mean, worst in zip(series.latency, series.worst, strict=True))
    assert len(series.peak_load) == len(series.end) and max(series.peak_load) > 1.3
    # How many epochs there are is the machine's business, and so is whether a plan is made in time.
    assert len(series.moved) == len(series.moved_at) and len(contender.runs) == len(contender.planners) == 1
