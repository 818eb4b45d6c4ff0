"""The study of random graphs at its quick size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trimtab.bench.studies.random_graphs import PAPER, QUICK, draw, planners, random_graph, run
from trimtab.planners.tasklevel import TaskLevel


def test_the_study_and_its_chart(tmp_path: Path) -> None:
    said: list[str] = []
    result = run(said.append, quick=True)
    assert result.graphs == QUICK and said[-1].endswith(f"{QUICK} of {QUICK}")
    assert {"naive", "tasklevel", "topdown"} <= result.shares.keys()
    assert all(0 < each.share <= 1 for each in result.shares.values())
    assert result.shares["topdown"].share > result.shares["topdown by traffic"].share
    for name in ("one.svg", "other.svg"):
        draw(result, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


def test_the_papers_task_level_is_the_one_by_traffic() -> None:
    compared = [planners()[name] for name in PAPER]
    assert TaskLevel(priority="traffic") in compared and TaskLevel() not in compared


@pytest.mark.parametrize("division", ["any", "drawn", "even"])
def test_graphs_are_of_the_class_of_the_paper(division: str) -> None:
    for seed in range(20):
        graph = random_graph(seed, division)
        assert len(graph) == 17 and graph.total == pytest.approx(500)
        assert 3 <= len(graph.operators) <= 7 and graph.sizes.min() >= 1
        assert (graph.groups.source < graph.groups.target).all()
        assert np.bincount(graph.groups.source).max() <= 3
        assert ((graph.groups.weight >= 5) & (graph.groups.weight <= 20)).all()
