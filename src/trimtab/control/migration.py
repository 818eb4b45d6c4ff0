"""What it costs to move state, learnt from the moves that were measured: seconds = alpha x bytes (ALBIC III-B)."""

from __future__ import annotations

from dataclasses import dataclass

USUAL = 1e-9
"""Seconds per byte before any move was measured: what reading from a fast disk takes."""
BELIEF = 1e8
"""That much as if so many bytes had been moved at the usual cost."""


@dataclass(frozen=True)
class MigrationCost:
    """The best fit of `seconds = alpha * bytes` to the moves so far; lighter moves say less.

    >>> MigrationCost().after(10**9, 4.0).alpha > 3e-9
    True
    """

    products: float = USUAL * BELIEF**2
    squares: float = BELIEF**2

    @property
    def alpha(self) -> float:
        """Seconds per byte."""
        return self.products / self.squares

    def after(self, moved: float, seconds: float) -> MigrationCost:
        """With one more epoch, which moved so many bytes and took so much longer than others."""
        return MigrationCost(self.products + moved * max(seconds, 0.0), self.squares + moved**2)
