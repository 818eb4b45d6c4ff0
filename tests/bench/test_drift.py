"""The study of drifting loads, at quick size."""

from __future__ import annotations

from pathlib import Path

from trimtab.bench.studies import drift


def test_the_quick_study_has_the_papers_order_and_draws_itself(tmp_path: Path) -> None:
    said: list[str] = []
    result = drift.run(said.append, quick=True)
    assert said and set(result.series) == {"milp", "flux", "hotspot", "auto", "potc_slots", "potc"}
    assert all(len(series.load_distance) == result.periods for series in result.series.values())
    assert result.series["milp"].largest < 1
    assert result.series["milp"].median < result.series["flux"].median < result.series["potc"].median
    assert max(result.series["milp"].moves) <= result.budget and max(result.series["auto"].moves) <= result.budget
    drift.draw(result, tmp_path / "drift.svg")
    first = (tmp_path / "drift.svg").read_bytes()
    drift.draw(result, tmp_path / "drift.svg")
    assert first == (tmp_path / "drift.svg").read_bytes()


def test_a_planner_holds_only_if_it_does_in_all_seeds() -> None:
    series = dict.fromkeys(("milp", "auto", "flux", "potc"), drift._series([0.5], [0], [0.0]))
    largest = {"milp": {"1": 0.5, "2": 0.6}, "auto": {"1": 0.5, "2": 1.2}}
    held = drift.criteria(series, largest)
    assert held["milp below 1 at every period"] and not held["auto below 1 at every period"]


def test_loads_stay_about_three_quarters_of_capacity() -> None:
    means = [each.mean for each in drift.drifting(50)]
    assert min(means) > 70 and max(means) < 85
