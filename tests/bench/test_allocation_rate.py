"""The study of allocation rates at its quick size."""

from __future__ import annotations

from pathlib import Path

from trimtab.bench.studies.allocation_rate import draw, run


def test_the_study_and_its_chart(tmp_path: Path) -> None:
    said: list[str] = []
    result = run(said.append, quick=True)
    assert said
    assert result.rate.ratio > 1
    assert result.growth.keys() == {"topdown", "tasklevel"}
    assert result.priorities.fit_of_a_line > 0.99
    assert result.priorities.variation_by_significance <= 0.05
    assert result.task_counts.variation_of_topdown <= 0.05
    assert result.task_counts.tasklevel_at_last <= 0.8
    draw(result, tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").stat().st_size > 0
