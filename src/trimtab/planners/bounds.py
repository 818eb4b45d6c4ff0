"""What lanes may carry while traffic is gathered, so that balance is not paid for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trimtab.planners.arrangement import Arrangement
from trimtab.planners.metrics import TOLERANCE
from trimtab.planners.snapshot import ClusterSnapshot, Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class Bounds:
    """The least and the most load of every lane, and how uneven all of them may be together."""

    least: Floats
    most: Floats
    unevenness: float = np.inf
    """The sum of squared deviations from the mean, as shares of capacity, of the lanes that stay."""

    @classmethod
    def capacities(cls, snapshot: ClusterSnapshot) -> Bounds:
        return cls(np.zeros(snapshot.lanes), snapshot.capacity * (1 + TOLERANCE / 2))

    @classmethod
    def around_mean(cls, snapshot: ClusterSnapshot, distance: float, spread: float = np.inf) -> Bounds:
        """Every lane within so many points of the mean, and their standard deviation no more than so many.

        >>> bounds = Bounds.around_mean(ClusterSnapshot.of(load=[6, 4], capacity=[10, 10]), 20.0)
        >>> bounds.least.tolist(), bounds.most.tolist()
        ([3.0, 3.0], [7.0, 7.0])
        """
        ends = [(snapshot.mean + each) / 100 * snapshot.capacity for each in (-distance, distance)]
        least = np.where(snapshot.draining, 0.0, np.maximum(ends[0], 0.0))
        return cls(least, ends[1], len(snapshot.staying) * (spread / 100) ** 2)

    def at_most(self, loads: Floats) -> Bounds:
        return replace(self, most=np.minimum(self.most, loads))


class Scales:
    """Bounds held against an arrangement as it changes; where it is beyond them at first it may stay, but no further.

    >>> snapshot = ClusterSnapshot.of(load=[2, 2, 1], lane=[0, 1, 1], capacity=[10, 10])
    >>> scales = Scales(Arrangement(snapshot, snapshot.lane), Bounds.around_mean(snapshot, 5.0))
    >>> scales.allow(np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 0])).tolist()
    [True, False]
    """

    def __init__(self, arrangement: Arrangement, bounds: Bounds) -> None:
        snapshot = arrangement.snapshot
        self.arrangement = arrangement
        self.least = np.minimum(bounds.least, arrangement.loads)
        self.most = np.maximum(bounds.most, arrangement.loads)
        self.share = np.where(snapshot.draining, 0.0, 1 / snapshot.capacity)
        self.mean = np.where(snapshot.draining, 0.0, snapshot.mean / 100)
        self.unevenness = max(bounds.unevenness, self._uneven())

    def allow(self, shift: Floats, here: Ints, there: Ints) -> Flags:
        """Whether so much load, less than nothing for the other way, may go from one lane to another."""
        loads = self.arrangement.loads
        left, reached = loads[here] - shift, loads[there] + shift
        given = (left >= self.least[here]) & (left <= self.most[here])
        fits = given & (reached >= self.least[there]) & (reached <= self.most[there])
        if self.unevenness < np.inf:
            deviation = loads * self.share - self.mean
            off, on = shift * self.share[here], shift * self.share[there]
            growth = off * (off - 2 * deviation[here]) + on * (on + 2 * deviation[there])
            fits = fits & (self._uneven() + growth <= self.unevenness)
        return np.asarray(fits)

    def hold(self, lanes: list[int]) -> bool:
        """Whether these lanes, and all together, are within the bounds."""
        loads = self.arrangement.loads[lanes]
        inside = (loads >= self.least[lanes]).all() and (loads <= self.most[lanes]).all()
        return bool(inside and (self.unevenness == np.inf or self._uneven() <= self.unevenness))

    def lacking(self, here: int, there: int) -> tuple[float, float]:
        """The least and the most load that has to go from one lane to another for both to be within the bounds."""
        loads = self.arrangement.loads
        least = max(loads[here] - self.most[here], self.least[there] - loads[there])
        return float(least), float(min(loads[here] - self.least[here], self.most[there] - loads[there]))

    def _uneven(self) -> float:
        return float(((self.arrangement.loads * self.share - self.mean) ** 2).sum())
