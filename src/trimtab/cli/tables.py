"""Results as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table

from trimtab.bench.figures import Figure
from trimtab.bench.floor import FloorResult
from trimtab.bench.growth import GrowthResult
from trimtab.bench.keyed import KeyedCase


def keyed_table(cases: Sequence[KeyedCase]) -> Table:
    """Contenders by rows per second, one block per number of keys."""
    table = Table("keys", "contender", "seconds per epoch", "rows/s", "trimtab is")
    for case in cases:
        for name, seconds in case.seconds.items():
            ratio = case.rows_per_s["trimtab"] / case.rows_per_s[name]
            table.add_row(f"{case.keys:,}", name, str(seconds), f"{case.rows_per_s[name]:,}", f"{ratio:.2f}x")
    table.caption = spread(each for case in cases for each in case.seconds.values())
    return table


def floor_table(result: FloorResult) -> Table:
    """Both contenders, then the parts of their triggers and Trimtab's own steps."""
    table = Table("", "seconds", title=f"{result.rows} rows an epoch on {result.lanes} lanes: {result.ratio}x")
    for name, seconds in result.seconds.items():
        table.add_row(name, str(seconds))
    for part, durations in result.parts.items():
        table.add_row(f"  {part}", ", ".join(f"{name} {duration:.4f}" for name, duration in durations.items()))
    for step, duration in result.steps.items():
        table.add_row(f"  of trimtab: {step}", f"{duration:.4f}")
    table.caption = spread(result.seconds.values())
    return table


def growth_table(result: GrowthResult) -> Table:
    """Sizes by contender."""
    table = Table("keys held", "contender", "seconds per epoch", "p99", "bytes per epoch")
    for case in result.cases:
        for name, seconds in case.seconds.items():
            written = str(case.bytes_per_epoch) if name == "trimtab" else ""
            table.add_row(f"{case.keys:,}", name, str(seconds), f"{case.p99[name]:.3g}", written)
    figures = spread(each for case in result.cases for each in case.seconds.values())
    table.caption = f"{figures}\ngreatest against smallest: median {result.median_ratio}, p99 {result.p99_ratio}"
    return table


def spread(figures: Iterable[Figure]) -> str:
    """What the figures of a table are, and how often everything was measured.

    >>> spread([Figure(2.0, 1.0, 3.0, samples=6, repetitions=3), Figure(2.0, 1.0, 3.0, samples=36, repetitions=3)])
    'median (middle half) of 6 or 36 epochs in 3 repetitions'
    """
    listed = list(figures)
    samples = " or ".join(map(str, sorted({each.samples for each in listed})))
    repetitions = " or ".join(map(str, sorted({each.repetitions for each in listed})))
    return f"median (middle half) of {samples} epochs in {repetitions} repetitions"
