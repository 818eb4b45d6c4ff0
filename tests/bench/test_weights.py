"""The study of the splitter on a model, and the model."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from trimtab.bench.studies import weights
from trimtab.bench.studies.region_model import Region, Trace, even, oracle


def test_what_holds_at_quick_size_and_a_chart_is_drawn(tmp_path: Path) -> None:
    result = weights.run(lambda _: None, quick=True)
    assert result.model
    failed = {each.what for each in result.criteria if each.met is False}
    # Recovery and clusters take longer than a quick run.
    assert failed <= {
        "points from even in the last quarter",
        "share of the last quarter in which every cluster is pure",
    }
    msgspec.json.encode(result)
    weights.draw(result, one := tmp_path / "one.svg")
    weights.draw(result, other := tmp_path / "other.svg")
    assert one.read_bytes() == other.read_bytes()


def test_the_slowest_lane_sets_the_pace_and_the_splitter_waits_for_the_rest() -> None:
    region = Region(np.array([1.0, 0.25]), speed=4.0)
    assert region.throughput(np.array([500, 500])) == 0.5
    assert region.throughput(np.array([800, 200])) == 1.25
    blocking = region.blocking(np.array([500, 500]))
    assert blocking[0] == 0 and blocking[1] == pytest.approx(1 - 0.5 / 4, abs=0.01)


def test_a_splitter_that_is_the_bottleneck_does_not_wait() -> None:
    region = Region(np.array([9.0, 9.0]), speed=1.0)
    assert region.throughput(even(2)) == 1.0 and not region.blocking(even(2)).any()


def test_the_oracle_knows_that_a_unit_is_too_much_for_a_very_slow_lane() -> None:
    assert oracle(np.repeat([0.01, 1.0], 32))[:32].max() == 0


def test_time_for_rows_is_interpolated() -> None:
    assert Trace(throughput=[1.0, 2.0, 2.0]).seconds_for(2.0) == 1.5
    assert Trace(throughput=[1.0, 2.0]).seconds_for(7.0) == 4.0
