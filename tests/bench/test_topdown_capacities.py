"""The study of lane capacities at its quick size."""

from __future__ import annotations

from pathlib import Path

from trimtab.bench.studies.topdown_capacities import draw, run


def test_the_study_and_its_chart(tmp_path: Path) -> None:
    result = run(lambda text: None, quick=True)
    assert result.keys() == {"trending topics", "bargain detection"}
    assert all(sweep.converge for sweep in result.values())
    draw(result, tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").stat().st_size > 0
