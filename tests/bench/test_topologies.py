"""The study of StroMAX's topologies."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trimtab.bench.studies import topologies


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
