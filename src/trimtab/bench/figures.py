"""Figures with their spread."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np


class Figure(msgspec.Struct, frozen=True):
    """A measured quantity: the median, the middle half, and of how many samples in how many repetitions."""

    median: float
    low: float
    high: float
    samples: int
    repetitions: int

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.low:.3g}-{self.high:.3g})"


def figure(repetitions: Sequence[Sequence[float]]) -> Figure:
    """The figure of some repetitions.

    >>> figure([[1.0, 2.0], [3.0]]).median
    2.0
    """
    samples = np.array([sample for repetition in repetitions for sample in repetition])
    low, median, high = np.percentile(samples, [25, 50, 75]).tolist()
    return Figure(round(median, 6), round(low, 6), round(high, 6), len(samples), len(repetitions))


def percentile(repetitions: Sequence[Sequence[float]], rank: float) -> float:
    """A percentile over all samples."""
    return round(float(np.percentile([sample for each in repetitions for sample in each], rank)), 6)
