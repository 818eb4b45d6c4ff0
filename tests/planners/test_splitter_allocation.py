"""Fox's greedy against brute force, and its rules for clusters."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.planners import splitter_allocation
from trimtab.planners.splitter_allocation import allocate
from trimtab.planners.splitter_curves import UNITS

SMALL = 12


def alone(lanes: int) -> list[np.ndarray]:
    return [np.array([lane]) for lane in range(lanes)]


@given(st.data())
@settings(max_examples=60)
def test_the_largest_blocking_is_the_least_there_is(data: st.DataObject) -> None:
    lanes = data.draw(st.integers(1, 3))
    steps = data.draw(
        st.lists(st.lists(st.integers(0, 5), min_size=SMALL, max_size=SMALL), min_size=lanes, max_size=lanes)
    )
    curves = np.concatenate([np.zeros((lanes, 1)), np.cumsum(steps, axis=1)], axis=1)
    now = np.array([SMALL // lanes] * lanes)
    now[0] += SMALL - now.sum()
    change = data.draw(st.integers(1, SMALL))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitter_allocation, "UNITS", SMALL)
        weights = allocate(curves, alone(lanes), now, change)
    assert weights.sum() == SMALL and (np.abs(weights - now) <= change).all()
    ranges = [range(max(each - change, 0), min(each + change, SMALL) + 1) for each in now.tolist()]
    best = min(
        max(curves[lane, weight] for lane, weight in enumerate(each)) for each in product(*ranges) if sum(each) == SMALL
    )
    assert max(curves[lane, weight] for lane, weight in enumerate(weights)) == best


def test_equal_functions_get_equal_weights() -> None:
    curves = np.tile(np.arange(UNITS + 1) * 1e-6, (7, 1))
    weights = allocate(curves, alone(7), np.array([1000, 0, 0, 0, 0, 0, 0]), UNITS)
    assert weights.max() - weights.min() <= 1


def test_lanes_of_a_cluster_share_their_weight_and_the_remainder_goes_to_those_that_have_most() -> None:
    curves = np.arange(UNITS + 1) * np.array([[1.0], [1e9]])
    now = np.array([100, 400, 200, 300, 0])
    weights = allocate(curves, [np.array([0, 1, 2]), np.array([3, 4])], now, UNITS)
    assert weights.tolist() == [333, 334, 333, 0, 0]


@given(st.lists(st.integers(0, 50), min_size=2, max_size=40), st.integers(1, 5), st.integers(1, 300))
def test_all_rows_are_given_out_whatever_the_clusters(parts: list[int], clusters: int, change: int) -> None:
    now = np.array(parts) * UNITS // max(sum(parts), 1)
    now[0] += UNITS - now.sum()
    number = np.arange(len(parts)) % clusters
    members = [np.flatnonzero(number == each) for each in range(min(clusters, len(parts)))]
    curves = np.arange(UNITS + 1) * np.arange(1, len(members) + 1)[:, None]
    weights = allocate(curves, members, now, change)
    assert weights.sum() == UNITS and (weights >= 0).all()
    for lanes in members:
        assert np.ptp(weights[lanes]) <= 1
        assert np.abs(weights[lanes] - now[lanes].mean()).max() <= change + 1
