"""Shares of an ordered region's lanes from their blocking rates."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import ProblemError
from trimtab.planners.splitter import Splitter, SplitterState
from trimtab.planners.splitter_clusters import agglomerate, alpha, features
from trimtab.planners.splitter_curves import UNITS, curve, knee, regressed


def run(splitter: Splitter, capacity: list[float], samples: int, state: SplitterState | None = None) -> SplitterState:
    """A region whose slowest lane alone blocks."""
    state = state or splitter.start(len(capacity))
    for _ in range(samples):
        state = splitter.observe(state, blocking(state, capacity))
    return state


def blocking(state: SplitterState, capacity: list[float], speed: float = 8.0) -> list[float]:
    paces = [weight / UNITS / each for weight, each in zip(state.weights, capacity, strict=True)]
    slowest = max(range(len(paces)), key=paces.__getitem__)
    return [max(0.0, 1 - 1 / paces[lane] / speed) if lane == slowest else 0.0 for lane in range(len(paces))]


def test_a_lane_that_is_100_times_slower_has_next_to_nothing_within_15_samples() -> None:
    splitter = Splitter()
    state = run(splitter, [0.01, 1, 1], 15)
    for _ in range(60):
        assert state.weights[0] <= 30
        state = run(splitter, [0.01, 1, 1], 1, state)


def test_it_gets_its_share_again_when_the_load_is_gone() -> None:
    splitter = Splitter()
    state = run(splitter, [1, 1, 1], 300, run(splitter, [0.01, 1, 1], 60))
    assert max(abs(weight - UNITS / 3) for weight in state.weights) <= 50


def test_without_decay_it_never_finds_out() -> None:
    splitter = Splitter(decay=0)
    state = run(splitter, [1, 1, 1], 300, run(splitter, [0.01, 1, 1], 60))
    assert state.weights[0] <= 30


def test_equal_lanes_end_even_and_unlike_ones_in_proportion() -> None:
    assert run(Splitter(), [1, 1], 60).weights == pytest.approx([500, 500], abs=50)
    assert run(Splitter(), [1.3, 0.7], 60).weights == pytest.approx([650, 350], abs=50)


def test_a_region_that_never_blocks_stays_even() -> None:
    splitter = Splitter()
    state = splitter.start(3)
    for _ in range(20):
        state = splitter.observe(state, [0.0, 0.0, 0.0])
    assert sorted(state.weights) == [333, 333, 334]


@given(st.integers(1, 24), st.data())
@settings(max_examples=25)
def test_weights_always_give_out_everything_and_change_by_a_tenth_at_most(lanes: int, data: st.DataObject) -> None:
    splitter, rates = Splitter(), st.lists(st.floats(0, 1), min_size=lanes, max_size=lanes)
    state = splitter.start(lanes)
    for _ in range(5):
        after = splitter.observe(state, data.draw(rates))
        assert sum(after.weights) == UNITS and min(after.weights) >= 0
        if lanes <= splitter.most_alone:
            assert max(abs(a - b) for a, b in zip(state.weights, after.weights, strict=True)) <= 100
        state = after


def test_the_state_survives_a_restart_and_is_not_changed_by_a_sample() -> None:
    splitter = Splitter()
    state = run(splitter, [0.2] * 4 + [1.0] * 16, 30)
    stored = msgspec.json.encode(state)
    again = msgspec.json.decode(stored, type=SplitterState)
    rates = blocking(state, [0.2] * 4 + [1.0] * 16)
    assert splitter.observe(again, rates) == splitter.observe(state, rates)
    assert msgspec.json.encode(state) == stored


def test_many_lanes_form_clusters_of_their_kind() -> None:
    capacity = [0.05] * 8 + [1.0] * 12
    state = run(Splitter(), capacity, 150)
    slow, fast = set(state.clusters[:8]), set(state.clusters[8:])
    assert not slow & fast and len(slow | fast) < 20
    assert max(state.weights[:8]) < min(state.weights[8:])


def test_one_lane_has_everything() -> None:
    assert run(Splitter(), [0.1], 3).weights == [UNITS]


def test_more_lanes_than_units_are_served_too() -> None:
    splitter = Splitter()
    assert sum(splitter.observe(splitter.start(1001), [0.0] * 1001).weights) == UNITS


@given(st.lists(st.tuples(st.integers(1, UNITS), st.floats(0, 1)), unique_by=lambda each: each[0], max_size=20))
def test_functions_rise_from_zero_and_meet_data_that_was_in_order(points: list[tuple[int, float]]) -> None:
    weights, values = (
        np.array(sorted(each[0] for each in points), np.int64),
        np.array(sorted(each[1] for each in points)),
    )
    function = curve(*regressed(weights, values), tilt=1e-6)
    assert function[0] == 0 and (np.diff(function) > 0).all()
    assert function[weights] == pytest.approx(values + weights * 1e-6)


def test_a_line_through_one_observation() -> None:
    function = curve(*regressed(np.array([200]), np.array([0.4])), tilt=0.0)
    assert function[[100, 200, 400]].tolist() == pytest.approx([0.2, 0.4, 0.8])


def test_the_knee_is_the_first_weight_that_blocked() -> None:
    weights, values = regressed(np.array([100, 300, 500]), np.array([0.0, 0.2, 0.9]))
    assert knee(weights, values, 1e-3) == 300
    assert knee(*regressed(np.array([100]), np.array([0.0])), 1e-3) == UNITS


def test_the_distance_is_the_papers() -> None:
    tilt, curves, points = 1e-6, [], []
    for at, value in ((100, 0.2), (200, 0.9)):
        weights, values = regressed(np.array([at]), np.array([value]))
        curves.append(curve(weights, values, tilt))
        points.append(features(curves[-1], knee(weights, values, 1e-3), tilt))
    scale = math.log(UNITS) / abs(math.log(UNITS * tilt))
    wanted = max(
        abs(math.log(100 / 200)),
        scale * abs(math.log(curves[0][100] / curves[1][200])),
        scale * abs(math.log(curves[0][UNITS] / curves[1][UNITS])),
    )
    assert agglomerate(np.array(points), wanted * 1.01).tolist() == [0, 0]
    assert agglomerate(np.array(points), wanted * 0.99).tolist() == [0, 1]
    assert alpha(tilt) == pytest.approx(1)


def test_no_two_lanes_of_a_cluster_are_further_apart_than_the_cut() -> None:
    points = np.linspace(0, 5, 40)[:, None] * np.ones(3)
    clusters = agglomerate(points, 1.0)
    for each in np.unique(clusters):
        assert np.ptp(points[clusters == each, 0]) <= 1.0
    assert clusters[0] == 0 and set(clusters.tolist()) == set(range(clusters.max() + 1))


@pytest.mark.parametrize("wrong", [{"smoothing": 0}, {"change": 0}, {"tilt": 0.001}, {"decay": 1}, {"cut": 0}])
def test_options_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ProblemError, match=rf"options\.{next(iter(wrong))} is "):
        Splitter(**wrong)


def test_observations_are_checked() -> None:
    splitter = Splitter()
    with pytest.raises(ProblemError, match="there are 2 lanes"):
        splitter.observe(splitter.start(2), [0.0])
    with pytest.raises(ProblemError, match=r"blocking\[1\] is nan"):
        splitter.observe(splitter.start(2), [0.0, math.nan])
