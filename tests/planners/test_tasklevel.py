"""Task-level allocation: the order of pairs, the choice of lanes, fusion, and what holds for any problem."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planners.small_flows import check_plan, greatest_gain, small_flows
from tests.planners.test_topdown import figure_2

from trimtab.errors import ProblemError
from trimtab.planners.metrics import imc_gain, slots_by_operator, utilisation
from trimtab.planners.plan import Infeasible, Plan
from trimtab.planners.snapshot import ClusterSnapshot
from trimtab.planners.tasklevel import TaskLevel
from trimtab.planners.topdown import TopDown, refine_granularity


def planned(snapshot: ClusterSnapshot, planner: TaskLevel | None = None) -> np.ndarray:
    answer = (planner or TaskLevel()).plan(snapshot)
    assert isinstance(answer, Plan), answer
    return answer.lanes


def test_examples_1_and_2_fewer_links_than_topdown_and_none_of_the_second_pair() -> None:
    """The paper's 84 links come from one order of the pairs, so any number at most topdown's 100 will do."""
    for seed in range(5):
        counts = slots_by_operator(figure_2(), planned(figure_2(), TaskLevel(seed=seed)))
        assert 50 < counts[0] @ counts[1] <= 100
        assert counts[1] @ counts[2] < 10


def test_a_new_group_pair_begins_on_the_roomiest_lane_and_stays_there() -> None:
    flow = ClusterSnapshot.of(
        load=[1] * 8, operator=[0, 0, 1, 1, 2, 2, 3, 3], capacity=[7, 6], groups=[(0, 1, 9.0), (2, 3, 8.0)]
    )
    assert planned(flow).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_the_other_end_joins_the_lane_of_the_slot_that_is_placed() -> None:
    flow = ClusterSnapshot.of(load=[1, 1, 1], operator=[0, 1, 2], capacity=[3, 9], traffic=[(0, 1, 5.0), (1, 2, 4.0)])
    assert planned(flow).tolist() == [1, 1, 1]


def test_lanes_are_fused_when_one_can_hold_both() -> None:
    flow = ClusterSnapshot.of(
        load=[2, 2, 2, 2], operator=[0, 1, 2, 3], capacity=[10, 8], groups=[(0, 1, 9.0), (2, 3, 9.0), (1, 2, 1.0)]
    )
    assert planned(flow).tolist() == [0] * 4


def test_by_traffic_the_heaviest_pairs_come_first() -> None:
    flow = ClusterSnapshot.of(
        load=[30, 30, 90], operator=[0, 1, 2], capacity=[120, 90], groups=[(0, 1, 10.0), (1, 2, 12.0)]
    )
    assert planned(flow).tolist() == [0, 0, 1]
    assert planned(flow, TaskLevel("traffic")).tolist() == [1, 0, 0]


def test_the_seed_draws_the_order_of_equal_pairs() -> None:
    gains = {imc_gain(figure_2(), planned(figure_2(), TaskLevel(seed=seed))) for seed in range(8)}
    assert len(gains) > 1


def test_slots_without_a_partner_that_has_room_are_single_and_the_reason_says_so() -> None:
    flow = ClusterSnapshot.of(load=[5, 5], operator=[0, 1], capacity=[5, 5], groups=[(0, 1, 1.0)])
    answer = TaskLevel().plan(flow)
    assert isinstance(answer, Plan)
    assert all("fits beside none" in move.why for move in answer.moves(flow))


def test_a_cluster_that_is_too_small_says_which_slot_does_not_fit() -> None:
    answer = TaskLevel().plan(ClusterSnapshot.of(load=[3, 3, 3], capacity=[5, 5]))
    assert isinstance(answer, Infeasible)
    assert "load 3 fits on no lane" in answer.missing


@given(small_flows(), st.sampled_from([TaskLevel(), TaskLevel("traffic"), TaskLevel(seed=3)]))
def test_any_problem_is_planned_within_capacities_or_refused(flow: ClusterSnapshot, planner: TaskLevel) -> None:
    answer = planner.plan(flow)
    check_plan(flow, answer)
    if isinstance(answer, Plan):
        again = planner.plan(flow)
        assert isinstance(again, Plan) and np.array_equal(again.lanes, answer.lanes)
        best = greatest_gain(flow)
        assert best is not None and imc_gain(flow, answer.lanes) <= best + 1e-9


@given(st.integers(0, 2**32))
def test_slots_one_by_one_agree_with_topdown_where_every_operator_has_one(seed: int) -> None:
    """With one slot an operator and no fusion or split to differ in, both pop the same pairs."""
    rng = np.random.default_rng(seed)
    flow = ClusterSnapshot.of(
        load=rng.integers(1, 9, 4),
        operator=[0, 1, 2, 3],
        capacity=[100.0, 90.0],
        groups=[(0, 1, float(rng.integers(1, 50))), (2, 3, float(rng.integers(1, 50)))],
    )
    one, other = TaskLevel().plan(flow), TopDown().plan(flow)
    assert isinstance(one, Plan) and isinstance(other, Plan)
    assert np.array_equal(one.lanes, other.lanes)


def test_balance_keeps_lanes_near_the_mean() -> None:
    flow = ClusterSnapshot.of(load=[1] * 24, operator=[0] * 12 + [1] * 12, capacity=[30] * 3, groups=[(0, 1, 9.0)])
    assert utilisation(flow, planned(flow)).max() > 1.5 * flow.mean
    assert utilisation(flow, planned(flow, TaskLevel(balance=1.05))).max() <= 1.05 * flow.mean + 1e-6


def test_balance_that_cannot_be_kept_is_said() -> None:
    answer = TaskLevel(balance=1.1).plan(ClusterSnapshot.of(load=[9, 1], capacity=[10, 10]))
    assert isinstance(answer, Infeasible) and "options.balance" in answer.missing
    with pytest.raises(ProblemError, match=r"options\.balance"):
        TaskLevel(balance=1.0)


def test_a_flow_too_coarse_for_its_lanes_is_told_how_finely_to_divide_it() -> None:
    coarse = ClusterSnapshot.of(load=[60, 60, 60], operator=[0, 0, 1], capacity=[100, 100], groups=[(0, 1, 1.0)])
    answer = TaskLevel().plan(coarse)
    assert isinstance(answer, Infeasible)
    assert "6 of operator0, 3 of operator1, it would fit" in answer.missing
    assert isinstance(TaskLevel().plan(refine_granularity(coarse)), Plan)
    full = TaskLevel().plan(ClusterSnapshot.of(load=[90, 90, 90], capacity=[100, 100]))
    assert isinstance(full, Infeasible) and "would fit" not in full.missing
