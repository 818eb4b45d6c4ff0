"""Weights that keep the largest expected blocking least: minimax separable resource allocation (Blocking rate 5.2).

Fox's greedy: from the lower bounds on, the next unit always goes where one more costs least; with functions that do
not decrease this is exact. The lanes of a cluster share one function and one weight, so a step of a cluster takes as
many units as it has lanes. When the cluster whose turn it is has more lanes than there are units left, as many of its
lanes get one more, those with the largest weights now first, so that the remainder does not wander.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from trimtab.planners.snapshot import Floats, Ints
from trimtab.planners.splitter_curves import UNITS


def allocate(curves: Floats, clusters: Sequence[Ints], now: Ints, change: int) -> Ints:
    """The weights of all lanes, 1000 together; by cluster its function and its lanes.

    No weight of a cluster differs from the mean of its lanes' weights `now` by more than `change`, but for rounding.

    >>> steep, gentle = np.arange(1001) * 0.003, np.arange(1001) * 0.001
    >>> allocate(np.array([steep, gentle]), [np.array([0]), np.array([1])], np.array([500, 500]), 1000).tolist()
    [250, 750]
    """
    mean = np.array([now[lanes].mean() for lanes in clusters])
    lower = np.maximum(np.floor(mean) - change, 0).astype(np.int64)
    upper = np.minimum(np.ceil(mean) + change, UNITS).astype(np.int64)
    level, extra, which = _greedy(curves, lower, upper, np.array([len(lanes) for lanes in clusters]))
    weights = np.zeros(len(now), np.int64)
    for lanes, each in zip(clusters, level, strict=True):
        weights[lanes] = each
    if extra:
        lanes = clusters[which]
        weights[lanes[np.argsort(-now[lanes], kind="stable")[:extra]]] += 1
    return weights


def _greedy(curves: Floats, lower: Ints, upper: Ints, sizes: Ints) -> tuple[list[int], int, int]:
    """By cluster the weight of its lanes; then how many lanes of which cluster get one more."""
    level, left = lower.tolist(), UNITS - int(lower @ sizes)
    queue = [(curves[each, level[each] + 1], level[each], each) for each in np.flatnonzero(lower < upper).tolist()]
    heapify(queue)
    while left and queue:
        *_, each = heappop(queue)
        if sizes[each] > left:
            return level, left, each
        level[each] += 1
        left -= int(sizes[each])
        if level[each] < upper[each]:
            heappush(queue, (curves[each, level[each] + 1], level[each], each))
    return level, 0, 0
