"""The naive algorithm: pairs by traffic, lanes one after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from tests.planners.small_flows import check_plan, small_flows

from trimtab.planners.naive import Naive
from trimtab.planners.plan import Infeasible, Plan
from trimtab.planners.snapshot import ClusterSnapshot


def planned(snapshot: ClusterSnapshot) -> np.ndarray:
    answer = Naive().plan(snapshot)
    assert isinstance(answer, Plan), answer
    return answer.lanes


def test_the_largest_lane_is_filled_before_the_next() -> None:
    flow = ClusterSnapshot.of(
        load=[1] * 8, capacity=[4, 6], traffic=[(0, 1, 9.0), (2, 3, 8.0), (4, 5, 7.0), (6, 7, 6.0)]
    )
    assert planned(flow).tolist() == [1] * 6 + [0] * 2


def test_the_second_slot_of_a_pair_joins_the_first() -> None:
    flow = ClusterSnapshot.of(load=[1, 1, 1, 9], capacity=[10, 10], traffic=[(0, 1, 9.0), (1, 2, 1.0), (2, 3, 5.0)])
    assert planned(flow).tolist() == [0, 0, 1, 1]


def test_a_pair_that_fits_nowhere_is_broken_up() -> None:
    flow = ClusterSnapshot.of(load=[5, 4], capacity=[5, 5], traffic=[(0, 1, 9.0)])
    answer = Naive().plan(flow)
    assert isinstance(answer, Plan)
    assert answer.lanes.tolist() == [0, 1]
    assert all("none of its partners" in move.why for move in answer.moves(flow))


def test_a_cluster_that_is_too_small_says_which_slot_does_not_fit() -> None:
    answer = Naive().plan(ClusterSnapshot.of(load=[1, 6], capacity=[5, 5]))
    assert isinstance(answer, Infeasible)
    assert "Slot 1 with load 6" in answer.missing


@given(small_flows())
def test_any_problem_is_planned_within_capacities_or_refused(flow: ClusterSnapshot) -> None:
    check_plan(flow, Naive().plan(flow))
