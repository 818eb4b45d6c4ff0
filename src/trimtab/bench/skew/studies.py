"""The studies of skewed streams by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

from pyspark.sql import SparkSession

from trimtab.bench.skew import fixed, moving, planners, spikes
from trimtab.bench.skew.cases import Case
from trimtab.bench.skew.charts import draw

STUDIES: dict[str, ModuleType] = {"fixed": fixed, "spikes": spikes, "moving": moving, "planners": planners}
TASK_SLOTS = 6
"""Of the local session: one for every lane of the largest case, and one over."""


def skew(
    spark: SparkSession,
    names: Iterable[str],
    repetitions: int,
    quick: bool,
    charts: Path | None,
    progress: Callable[[str], None],
) -> dict[str, list[Case]]:
    """Run some studies; charts go to a folder, one `skew_<study>.svg` each, if one is given."""
    results: dict[str, list[Case]] = {}
    for name in names:
        results[name] = STUDIES[name].run(
            spark, repetitions, quick, lambda text, name=name: progress(f"{name}: {text}")
        )
        if charts is not None:
            draw(results[name], charts / f"skew_{name}.svg")
    return results
