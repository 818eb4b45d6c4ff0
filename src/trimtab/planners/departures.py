"""In which order slots leave a lane: the one that exchanges the most with other lanes first (StroMAX Algorithm 2).

What leaves makes its neighbours more remote, so the order changes as slots go. Traffic between whole operators is the
same for all slots of one: every operator has a heap of its slots by single traffic alone, and only the tops of the
heaps are compared. A slot that becomes more remote is entered again, and its old entry is skipped. So a lane of n slots
costs about n times the number of operators, and not n squared.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from trimtab.planners.metrics import TOLERANCE
from trimtab.planners.nearness import Nearness
from trimtab.planners.snapshot import Ints

Entry = tuple[int, int]
"""How little a slot exchanges, in steps so that rounding decides nothing, and its number: the least comes first."""


class Departures:
    """Slots of a lane that may leave it, each at most once.

    >>> import numpy as np
    >>> from trimtab.planners.snapshot import ClusterSnapshot
    >>> near = Nearness.by_traffic(ClusterSnapshot.of(load=[1] * 3, capacity=[9, 9], traffic=[(0, 2, 5.0)]))
    >>> for slot in range(3):
    ...     near.put(slot, 0)
    >>> order = Departures(near, np.arange(2), 0)
    >>> near.put(2, 1)
    >>> order.left(2)
    >>> order.next(), order.next(), order.next()
    (0, 1, None)
    """

    def __init__(self, near: Nearness, slots: Ints, lane: int) -> None:
        self._near, self._lane = near, lane
        self._step = TOLERANCE * (max(near.links.data.max(initial=0.0), near.between.max(initial=0.0)) or 1.0)
        self._single = dict(zip(slots.tolist(), near.remote_singly(slots, lane).tolist(), strict=True))
        self._heaps: dict[int, list[Entry]] = {}
        for slot, operator in zip(slots.tolist(), near.operator[slots].tolist(), strict=True):
            self._heaps.setdefault(operator, []).append(self._entry(slot))
        for heap in self._heaps.values():
            heapify(heap)

    def next(self) -> int | None:
        """The most remote slot that has not been asked for yet; the lower number of two alike."""
        by_operator = self._near.remote_by_operator(self._lane)
        tops = []
        for operator, heap in self._heaps.items():
            while heap and self._outdated(heap[0]):
                heappop(heap)
            if heap:
                tops.append(self._entry(heap[0][1], float(by_operator[operator])))
        if not tops:
            return None
        slot = min(tops)[1]
        del self._single[slot]
        return slot

    def left(self, slot: int) -> None:
        """A slot is on another lane now."""
        for other, weight in zip(*(each.tolist() for each in self._near.neighbours(slot)), strict=True):
            if weight and other in self._single:
                self._single[other] += weight
                heappush(self._heaps[int(self._near.operator[other])], self._entry(other))

    def _entry(self, slot: int, more: float = 0.0) -> Entry:
        return -round((self._single[slot] + more) / self._step), slot

    def _outdated(self, entry: Entry) -> bool:
        return entry[1] not in self._single or entry != self._entry(entry[1])
