"""Sets of slots that are worth moving together: those on one lane that the heaviest pairs of their slots join."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components

from trimtab.planners.metrics import TOLERANCE
from trimtab.planners.snapshot import Ints

LARGEST = 32
"""Slots of a set; more of them hardly ever fit where they want to go."""

Pairs = tuple[Ints, Ints]


def heaviest_pairs(links: Any) -> Pairs:
    """Pairs of slots of which one exchanges more with no third slot, from a symmetric sparse array.

    >>> chain = sparse.csr_array([[0, 9, 0, 0], [9, 0, 1, 0], [0, 1, 0, 2], [0, 0, 2, 0]])
    >>> [ends.tolist() for ends in heaviest_pairs(chain)]
    [[0, 2], [1, 3]]
    """
    entries = links.tocoo()
    one, other = (each.astype(np.int64) for each in entries.coords)
    most = np.zeros(links.shape[0])
    np.maximum.at(most, one, entries.data)
    least = np.minimum(most[one], most[other]) * (1 - TOLERANCE)
    heavy = (one < other) & (entries.data >= least) & (entries.data > 0)
    return one[heavy], other[heavy]


def sets_inside_lanes(pairs: Pairs, lanes: Ints) -> Ints:
    """By slot the number of its set: slots of a lane that pairs join. What is too large falls into single slots.

    >>> sets_inside_lanes((np.array([0, 1, 2]), np.array([1, 2, 3])), np.array([0, 0, 1, 1])).tolist()
    [0, 0, 1, 1]
    """
    one, other = (ends[lanes[pairs[0]] == lanes[pairs[1]]] for ends in pairs)
    graph = sparse.csr_array((np.ones(len(one)), (one, other)), shape=(len(lanes),) * 2)
    count, label = connected_components(graph, directed=False)
    large = np.bincount(label, minlength=count)[label] > LARGEST
    _, label = np.unique(np.where(large, count + np.arange(len(lanes)), label), return_inverse=True)
    return label.astype(np.int64)


def by_label(label: Ints, count: int) -> list[Ints]:
    """For every label the places that have it, ascending."""
    order = np.argsort(label, kind="stable")
    return [np.asarray(part) for part in np.split(order, np.searchsorted(label[order], np.arange(1, count)))]
