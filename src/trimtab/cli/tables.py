"""Results as tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

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
    return table


def floor_table(result: FloorResult) -> Table:
    """Both contenders, then Trimtab's steps."""
    table = Table("", "seconds", title=f"{result.rows} rows an epoch on {result.lanes} lanes: {result.ratio}x")
    for name, seconds in result.seconds.items():
        table.add_row(name, str(seconds))
    for step, duration in result.steps.items():
        table.add_row(f"  of trimtab: {step}", f"{duration:.4f}")
    return table


def growth_table(result: GrowthResult) -> Table:
    """Sizes by contender."""
    table = Table("keys held", "contender", "seconds per epoch", "p99", "bytes per epoch")
    for case in result.cases:
        for name, seconds in case.seconds.items():
            written = str(case.bytes_per_epoch) if name == "trimtab" else ""
            table.add_row(f"{case.keys:,}", name, str(seconds), f"{case.p99[name]:.3g}", written)
    table.caption = f"greatest against smallest: median {result.median_ratio}, p99 {result.p99_ratio}"
    return table
