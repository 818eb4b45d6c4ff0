"""The order in which one-pass planners see the slots: upstream before downstream (StroMAX 3.2, Algorithm 1).

The paper sorts the graph of tasks and leaves every tie open. Tasks of one operator have the same neighbours wherever
traffic is spread over all of them, so the operators are sorted, ties among them go by chance from a seed, and the slots
of an operator follow in their own order. Traffic inside an operator orders nothing.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from trimtab.planners.plan import Infeasible
from trimtab.planners.snapshot import ClusterSnapshot, Flags, Ints
from trimtab.ports import chance


def linearise(snapshot: ClusterSnapshot, seed: int = 0) -> Ints | Infeasible:
    """All slots, every operator behind those that feed it; refused, by name, where operators feed each other in a ring.

    >>> flow = ClusterSnapshot.of(load=[1, 1, 1], capacity=[9], operator=[1, 0, 1], groups=[(0, 1, 8.0)])
    >>> linearise(flow).tolist()
    [1, 0, 2]
    """
    feeds = operator_edges(snapshot)
    ranks = chance(seed).permutation(len(feeds))
    order = _topological(feeds, ranks)
    if len(order) < len(feeds):
        names = " -> ".join(snapshot.operators[each] for each in _ring(feeds, order))
        return Infeasible(
            f"Operators feed each other in a ring, which leaves no order to place their slots in: {names}."
        )
    place = np.empty(len(feeds), np.int64)
    place[order] = np.arange(len(feeds))
    return np.argsort(place[snapshot.operator], kind="stable")


def operator_edges(snapshot: ClusterSnapshot) -> Flags:
    """Which operator feeds which other, however little flows."""
    feeds = np.zeros((len(snapshot.operators),) * 2, np.bool_)
    feeds[snapshot.groups.source, snapshot.groups.target] = True
    feeds[snapshot.operator[snapshot.traffic.source], snapshot.operator[snapshot.traffic.target]] = True
    np.fill_diagonal(feeds, False)
    return feeds


def _topological(feeds: Flags, ranks: Ints) -> list[int]:
    """Operators as they come free, first come, first served; those behind a ring never do."""
    waiting = feeds.sum(axis=0)
    ready = deque(sorted(np.flatnonzero(waiting == 0).tolist(), key=ranks.__getitem__))
    order: list[int] = []
    while ready:
        order.append(operator := ready.popleft())
        waiting[feeds[operator]] -= 1
        freed = np.flatnonzero(feeds[operator] & (waiting == 0)).tolist()
        ready.extend(sorted(freed, key=ranks.__getitem__))
    return order


def _ring(feeds: Flags, order: list[int]) -> list[int]:
    """One ring among the operators that never came free, its first one at both ends."""
    stuck = np.ones(len(feeds), np.bool_)
    stuck[order] = False
    path = [int(np.flatnonzero(stuck)[0])]
    while path.count(path[-1]) == 1:
        # Whoever is stuck has a feeder that is stuck: walking upstream must come back to where it has been.
        path.append(int(np.flatnonzero(feeds[:, path[-1]] & stuck)[0]))
    return path[path.index(path[-1]) :][::-1]
