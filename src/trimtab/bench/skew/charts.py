"""A study as a chart: latency, throughput and the busiest lane over time, a row of charts for every case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trimtab.bench.charts import chart
from trimtab.bench.skew.cases import Case
from trimtab.bench.skew.run import Series
from trimtab.bench.skew.source import Phase

COLUMNS = 3


def draw(cases: Sequence[Case], path: Path) -> None:
    """Every case, with the first run of every contender."""
    with chart(path, rows=len(cases), columns=COLUMNS) as axes:
        for place, case in enumerate(cases):
            _case(case, axes[place * COLUMNS : (place + 1) * COLUMNS])


def _case(case: Case, axes: Sequence[Any]) -> None:
    late, pace, busiest = axes
    for name, runs in case.runs.items():
        run = runs[0]
        [line] = late.plot(run.end, run.latency, label=name)
        pace.plot(run.end[1:], _pace(run), color=line.get_color())
        busiest.plot(run.end[: len(run.peak_load)], run.peak_load, color=line.get_color())
        for moved in run.moved_at:
            late.axvline(moved, color=line.get_color(), linewidth=0.8, linestyle=":")
    late.set_title(f"{case.name}: {case.service}", loc="left")
    late.set_ylabel("latency, s (dotted: slots move)")
    late.legend()
    pace.axhline(case.rate, color="grey", linewidth=0.8, linestyle=":")
    pace.set_ylabel("rows/s (dotted: arriving)")
    pace.set_ylim(bottom=0)
    busiest.set_ylabel("busiest lane / mean of lanes")
    for axis in axes:
        axis.set_xlabel("seconds since the first row")
        _shade(axis, case.phases)


def _pace(run: Series) -> list[float]:
    """Rows per second of every epoch but the first, from the end of the one before."""
    return [rows / (end - before) for rows, before, end in zip(run.rows[1:], run.end, run.end[1:], strict=False)]


def _shade(axis: Any, phases: Sequence[Phase]) -> None:
    """Where one phase gives way to another."""
    start = 0.0
    for phase in phases[:-1]:
        if phase.hot:
            axis.axvspan(
                start, start + phase.seconds, color="grey", alpha=0.06 + 0.06 * (phase.hot[0] % 2), linewidth=0
            )
        start += phase.seconds
