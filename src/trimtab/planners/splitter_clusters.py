"""Lanes that behave alike: clusters of blocking-rate functions (Blocking rate 5.3).

One sample tells something about one lane only, so the more lanes there are, the less is known of each. Lanes on one
host fare alike; those with close functions share their data. The distance of two functions is the paper's: the largest
of the differences in the logarithms of the weight at which blocking begins, of the blocking there, and of the
blocking at the whole weight, the latter two scaled by alpha. So it is the Chebyshev distance of three features, and
clusters are formed by agglomeration. Linkage and cut are unpublished; ours are complete linkage, so that no two
lanes of a cluster are further apart than the cut.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from trimtab.planners.snapshot import Floats, Ints
from trimtab.planners.splitter_curves import UNITS


def alpha(tilt: float) -> float:
    """What puts logarithms of blocking on the scale of those of weights.

    >>> round(alpha(1e-6), 9)
    1.0
    """
    return math.log(UNITS) / abs(math.log(UNITS * tilt))


def features(curve: Floats, knee: int, tilt: float) -> Floats:
    """What the distance compares; functions have their tilt, so no blocking is 0."""
    return np.array([math.log(knee), alpha(tilt) * math.log(curve[knee]), alpha(tilt) * math.log(curve[UNITS])])


def agglomerate(points: Floats, cut: float) -> Ints:
    """The cluster of every lane: numbers from 0, in the order in which the lanes meet them.

    >>> agglomerate(np.array([[5.0, 0, 0], [0.1, 0, 0], [5.2, 0, 0], [0.0, 0, 0]]), cut=1.0).tolist()
    [0, 1, 0, 1]
    """
    found = fcluster(linkage(points, "complete", "chebyshev"), cut, "distance")
    _, first, number = np.unique(found, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[number])
