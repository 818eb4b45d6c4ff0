"""The study of ALBIC and COLA, at quick size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trimtab.bench.studies import collocation
from trimtab.planners.albic import Albic


def test_the_quick_study_collocates_and_draws_itself(tmp_path: Path) -> None:
    result = collocation.run(lambda text: None, quick=True)
    ours, theirs = result.series["albic"], result.series["cola"]
    assert theirs.factor == [1.0] * result.periods
    assert ours.factor == sorted(ours.factor) and ours.factor[-1] > ours.factor[0]
    assert max(ours.moves) <= collocation.BUDGET < min(theirs.moves) / 10
    assert ours.load_index[-1] < ours.load_index[0] <= 100.5
    collocation.draw(result, tmp_path / "collocation.svg")
    assert (tmp_path / "collocation.svg").stat().st_size > 0


def test_sensitivity_is_that_of_the_planner_as_it_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    one = collocation.follow(collocation.albic(rounds=0), collocation.job(1), 1)
    monkeypatch.setattr(collocation, "follow", lambda planner, *_: asked.append(planner) or one)
    monkeypatch.setattr(collocation, "PERIODS", 1)
    collocation.run(lambda text: None)
    rounds = {each.rounds for each in asked if isinstance(each, Albic)}
    assert len(asked) > 10 and rounds == {collocation.ROUNDS}


def test_collocating_all_pairs_halves_the_load() -> None:
    work = collocation.job(1)
    apart = work.snapshot(0, work.start)
    together = work.snapshot(0, np.tile(work.start[: collocation.EACH], 3))
    assert together.mean / apart.mean == pytest.approx(0.5, abs=0.05)
