"""The study of StroMAX's topologies."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trimtab.bench.studies import topologies


def test_a_scheduler_without_any_plan_is_not_lower_than_even() -> None:
    even, none = topologies.Share(0.9, 5, 50), topologies._mean([None, None])
    for shares, lower in (({}, True), ({"rebalance": none}, False)):
        case = topologies.TopologyCase(
            "made up", 9, {"even": even, "bootstrap": topologies.Share(0.8, 2, 90), **shares}
        )
        assert topologies.lower_than_even(case) == lower


def test_bootstrap_leaves_what_it_should_between_lanes_and_a_chart_is_drawn(tmp_path: Path) -> None:
    seen: list[str] = []
    result = topologies.run(seen.append, quick=True)
    assert [case.topology for case in result.cases] == seen and len(seen) == 7
    assert result.lower_than_even
    assert result.largest_difference <= 0.01
    assert all(0 <= share.between <= 1 for case in result.cases for share in case.shares.values())
    msgspec.json.encode(result)
    topologies.draw(result, one := tmp_path / "one.svg")
    topologies.draw(result, other := tmp_path / "other.svg")
    assert one.read_bytes() == other.read_bytes()
