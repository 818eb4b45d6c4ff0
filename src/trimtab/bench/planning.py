"""`trimtab bench planners`: the studies of the planners, each with a chart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from trimtab.bench.studies import (
    allocation_rate,
    collocation,
    drift,
    random_graphs,
    scale,
    topdown_capacities,
    topologies,
    weights,
)

STUDIES: dict[str, ModuleType] = {
    "random_graphs": random_graphs,
    "allocation_rate": allocation_rate,
    "topdown_capacities": topdown_capacities,
    "drift": drift,
    "collocation": collocation,
    "scale": scale,
    "topologies": topologies,
    "weights": weights,
}


def planning(names: Iterable[str], quick: bool, charts: Path | None, progress: Callable[[str], None]) -> dict[str, Any]:
    """Run some studies; charts go to a folder, one `<study>.svg` each, if one is given."""
    results = {}
    for name in names:
        study = STUDIES[name]
        results[name] = study.run(lambda text, name=name: progress(f"{name}: {text}"), quick=quick)
        if charts is not None:
            study.draw(results[name], charts / f"{name}.svg")
    return results
