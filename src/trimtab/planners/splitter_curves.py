"""Blocking-rate functions: what a lane is expected to block at every weight (Blocking rate 5.1).

From the raw data of a lane, its smoothed blocking at each weight it has had: monotone regression, then interpolation
between the weights seen and a straight line beyond the last; (0, 0) is assumed. A tilt per unit of weight on top keeps
the function from being flat: where several lanes never block, the greedy would give everything to the first.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from trimtab.planners.snapshot import Floats, Ints

UNITS = 1000
"""Weights are in thousandths: R in the paper."""


def regressed(weights: Ints, blocking: Floats) -> tuple[Ints, Floats]:
    """The data with (0, 0) in front, forced not to decrease. Weights ascend and are above 0.

    >>> regressed(np.array([300, 400, 500]), np.array([0.2, 0.6, 0.4]))[1].tolist()
    [0.0, 0.2, 0.5, 0.5]
    """
    values = np.concatenate([[0.0], blocking])
    return np.concatenate([[0], weights]), np.asarray(isotonic_regression(values).x)


def curve(weights: Ints, values: Floats, tilt: float) -> Floats:
    """The function over the weights 0 to 1000, from data that does not decrease.

    >>> half = curve(np.array([0, 500]), np.array([0.0, 0.2]), tilt=0.0)
    >>> half[[250, 500, 1000]].tolist()
    [0.1, 0.2, 0.4]
    """
    every = np.arange(UNITS + 1)
    inside = np.interp(every, weights, values)
    slope = (values[-1] - values[-2]) / (weights[-1] - weights[-2]) if len(weights) > 1 else 0.0
    beyond = np.maximum(every - weights[-1], 0) * slope
    return np.asarray(inside + beyond + tilt * every)


def knee(weights: Ints, values: Floats, least: float) -> int:
    """The first weight seen with real blocking, above `least`; the whole for a lane that never blocked."""
    blocked = np.flatnonzero(values > least)
    return int(weights[blocked[0]]) if blocked.size else UNITS
