"""Placement from the shape of the flow alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import ProblemError
from trimtab.planners.bootstrap import Bootstrap
from trimtab.planners.metrics import measure
from trimtab.planners.nearness import Nearness
from trimtab.planners.plan import Infeasible, Plan
from trimtab.planners.snapshot import ClusterSnapshot, Ints


def chain(tasks: list[int], lanes: int, loads: float = 1.0, **more: object) -> ClusterSnapshot:
    """Operators in a row, as much traffic between any two."""
    operator = np.repeat(np.arange(len(tasks)), tasks)
    groups = [(each, each + 1, 1.0) for each in range(len(tasks) - 1)]
    load = np.full(len(operator), loads)
    return ClusterSnapshot.of(load, [10.0] * lanes, operator=operator, groups=groups, **more)


def lanes_of(planner: Bootstrap, snapshot: ClusterSnapshot) -> Ints:
    plan = planner.plan(snapshot)
    assert isinstance(plan, Plan), plan.missing
    return plan.lanes


@given(st.lists(st.integers(1, 8), min_size=1, max_size=4), st.integers(1, 6), st.integers(0, 3))
def test_every_lane_takes_its_share_at_most(tasks: list[int], lanes: int, seed: int) -> None:
    counts = np.bincount(lanes_of(Bootstrap(seed=seed), chain(tasks, lanes)), minlength=lanes)
    assert counts.sum() == sum(tasks) and counts.max() <= -(-sum(tasks) // lanes)


def test_each_slot_goes_where_equation_5_is_greatest() -> None:
    """By hand: a source on one lane draws its consumers until idleness and full lanes win."""
    snapshot = chain([1, 4], lanes=2)
    lanes = lanes_of(Bootstrap(tasks_per_lane=3), snapshot)
    source = lanes[0]
    assert lanes.tolist() == [source, source, source, 1 - source, 1 - source]


@pytest.mark.parametrize(("tasks", "between"), [([5, 20, 20], 0.80), ([5, 20, 20, 20], 0.85)])
def test_word_count_and_trending_topics_on_the_papers_cluster(tasks: list[int], between: float) -> None:
    snapshot = chain(tasks, lanes=40)
    lanes = lanes_of(Bootstrap(tasks_per_lane=10), snapshot)
    assert 1 - measure(snapshot, lanes).collocation == pytest.approx(between, abs=0.005)


def test_loads_and_present_lanes_play_no_part() -> None:
    idle, busy = chain([2, 6], 4, loads=0.0), chain([2, 6], 4, loads=50.0, lane=[0] * 8)
    assert np.array_equal(lanes_of(Bootstrap(), idle), lanes_of(Bootstrap(), busy))


def test_a_pair_that_is_named_twice_is_one_neighbour() -> None:
    groups, traffic = [(0, 1, 1.0)], [(0, 1, 9.0), (1, 0, 2.0), (1, 2, 0.0), (2, 1, 1.0)]
    snapshot = ClusterSnapshot.of([1] * 3, [1, 1], operator=[0, 1, 1], groups=groups, traffic=traffic)
    near = Nearness.by_neighbours(snapshot, np.ones(3))
    for slot in range(3):
        near.put(slot, 0)
    assert [near.of(slot).tolist() for slot in range(3)] == [[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]]


def test_larger_lanes_take_more() -> None:
    snapshot = ClusterSnapshot.of(load=[1] * 8, capacity=[30, 10])
    assert np.bincount(lanes_of(Bootstrap(), snapshot)).tolist() == [6, 2]


def test_draining_lanes_stay_empty() -> None:
    snapshot = chain([2, 6], 3, draining=[False, True, False])
    assert 1 not in lanes_of(Bootstrap(), snapshot)


def test_too_few_task_slots_are_refused_with_figures() -> None:
    refused = Bootstrap(tasks_per_lane=2).plan(chain([3, 3], 2))
    assert isinstance(refused, Infeasible)
    assert "6 slots" in refused.missing and "take 4" in refused.missing


def test_options_are_checked() -> None:
    with pytest.raises(ProblemError, match=r"options\.tasks_per_lane is 0"):
        Bootstrap(tasks_per_lane=0)
