"""Whether plans help: what each promised against what was measured some epochs later; and when to leave off."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trimtab.planners.snapshot import Floats
from trimtab.vocab import Epoch, Expected

ENOUGH = 0.1
"""A plan helped if the unevenness fell by this share of what it promised."""
DOUBLINGS = 5


@dataclass(frozen=True)
class Trial:
    """A plan that was applied and whose effect is being measured: the unevenness before it and in every epoch since."""

    epoch: Epoch
    expected: Expected
    before: float
    judged: bool = True
    measured: tuple[float, ...] = ()

    def seen(self, unevenness: float) -> Trial:
        """With one more epoch."""
        return replace(self, measured=(*self.measured, unevenness))

    @property
    def after(self) -> float:
        """The unevenness since; the median, because single epochs are noisy."""
        return float(np.median(self.measured)) if self.measured else self.before

    @property
    def helped(self) -> bool:
        before, after = self.expected.uneven_before, self.expected.uneven_after
        promised = 1 - after / before if before else 0.0
        return self.before - self.after >= ENOUGH * promised * self.before

    @property
    def figures(self) -> dict[str, float]:
        """Unevenness as expected and as measured."""
        return {
            "expected_before": round(self.expected.uneven_before, 2),
            "expected_after": round(self.expected.uneven_after, 2),
            "measured_before": round(self.before, 2),
            "measured_after": round(self.after, 2),
        }


@dataclass(frozen=True)
class Confidence:
    """How much a planner is trusted: after `patience` plans in a row that did not help, planning pauses.

    Each pause is twice as long as the one before, up to `2 ** DOUBLINGS` times the first.

    >>> doubtful = Confidence(patience=2, period=5).after(False, 10).after(False, 20)
    >>> doubtful.paused_until, doubtful.after(True, 40).failures
    (30, 0)
    """

    patience: int
    period: int
    failures: int = 0
    pauses: int = 0
    paused_until: Epoch = -1

    def after(self, helped: bool, epoch: Epoch) -> Confidence:
        """With the outcome of one more plan."""
        if helped:
            return replace(self, failures=0, pauses=0)
        if self.failures + 1 < self.patience:
            return replace(self, failures=self.failures + 1)
        until = epoch + self.period * self.patience * 2 ** min(self.pauses, DOUBLINGS)
        return replace(self, failures=0, pauses=self.pauses + 1, paused_until=until)


def unevenness(loads: Floats) -> float:
    """The standard deviation of loads in percent of their mean.

    >>> unevenness(np.array([30.0, 10.0]))
    50.0
    """
    mean = float(loads.mean()) if loads.size else 0.0
    return 100 * float(loads.std()) / mean if mean else 0.0
