"""Top-down allocation: the paper's examples, splitting, fusion, and what holds for any problem."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planners.small_flows import check_plan, greatest_gain, small_flows

from trimtab.errors import ProblemError
from trimtab.planners.metrics import imc_gain, lane_loads, slots_by_operator, utilisation
from trimtab.planners.plan import Infeasible, Plan
from trimtab.planners.snapshot import ClusterSnapshot
from trimtab.planners.topdown import TopDown, refine_granularity


def figure_2(lanes: int = 4) -> ClusterSnapshot:
    """Four groups of 40 % each, the second with twice the tasks; lanes have 40 % to spare. Pair weights count links."""
    sizes = [10, 20, 10, 10]
    return ClusterSnapshot.of(
        load=[40 / size for size in sizes for _ in range(size)],
        operator=np.repeat(np.arange(4), sizes),
        capacity=[40.0] * lanes,
        groups=[(0, 1, 200.0), (1, 2, 200.0), (2, 3, 20.0)],
    )


def planned(snapshot: ClusterSnapshot, planner: TopDown | None = None) -> np.ndarray:
    answer = (planner or TopDown()).plan(snapshot)
    assert isinstance(answer, Plan), answer
    return answer.lanes


def test_example_2_splits_the_first_pair_in_balance() -> None:
    counts = slots_by_operator(figure_2(), planned(figure_2()))
    first = np.flatnonzero(counts[0])
    assert counts[0, first].tolist() == [5, 5]
    assert counts[1, first].tolist() == [10, 10]
    assert counts[0] @ counts[1] == 100


def test_example_2_leaves_the_second_pair_apart_and_joins_the_third() -> None:
    counts = slots_by_operator(figure_2(), planned(figure_2()))
    assert counts[1] @ counts[2] == 0
    assert counts[2] @ counts[3] == 50


def test_a_pair_that_fits_goes_whole_to_the_roomiest_lane() -> None:
    flow = ClusterSnapshot.of(load=[5] * 8, operator=[0] * 4 + [1] * 4, capacity=[39, 41], groups=[(0, 1, 1)])
    assert planned(flow).tolist() == [1] * 8


def test_significance_prefers_traffic_per_load_and_traffic_the_most() -> None:
    flow = ClusterSnapshot.of(
        load=[30, 30, 90], operator=[0, 1, 2], capacity=[120, 90], groups=[(0, 1, 10.0), (1, 2, 12.0)]
    )
    assert planned(flow).tolist() == [0, 0, 1]
    assert planned(flow, TopDown("traffic")).tolist() == [1, 0, 0]


def test_the_traffic_of_both_directions_counts() -> None:
    flow = ClusterSnapshot.of(
        load=[3, 3, 3], operator=[0, 1, 2], capacity=[6, 6], groups=[(0, 1, 5.0), (1, 2, 4.0), (2, 1, 4.0)]
    )
    assert planned(flow).tolist() == [1, 0, 0]


def test_the_group_that_is_not_placed_follows_the_one_that_is() -> None:
    flow = ClusterSnapshot.of(
        load=[2] * 9, operator=[0] * 3 + [1] * 3 + [2] * 3, capacity=[16, 16], groups=[(0, 1, 9.0), (1, 2, 1.0)]
    )
    assert planned(flow).tolist() == [0] * 8 + [1]


def test_groups_on_two_lanes_are_fused_when_one_can_hold_both() -> None:
    """Two strong pairs go to two lanes; the weak pair between them brings the lanes together."""
    flow = ClusterSnapshot.of(
        load=[2, 2, 2, 2], operator=[0, 1, 2, 3], capacity=[10, 8], groups=[(0, 1, 9.0), (2, 3, 9.0), (1, 2, 1.0)]
    )
    assert planned(flow).tolist() == [0] * 4


def test_lanes_that_were_emptied_by_fusion_are_used_again() -> None:
    flow = ClusterSnapshot.of(
        load=[2, 2, 2, 2, 8],
        operator=[0, 1, 2, 3, 4],
        capacity=[10, 8],
        groups=[(0, 1, 9.0), (2, 3, 9.0), (1, 2, 5.0), (3, 4, 1.0)],
    )
    assert planned(flow).tolist() == [0, 0, 0, 0, 1]


def test_where_no_balanced_split_fits_the_ratio_shrinks() -> None:
    """One slot of the small group with all four of the large needs 14; lanes have 10, which takes two."""
    flow = ClusterSnapshot.of(load=[6, 2, 2, 2, 2], operator=[0, 1, 1, 1, 1], capacity=[10, 10], groups=[(0, 1, 8.0)])
    assert imc_gain(flow, planned(flow)) == 4.0


def test_balance_keeps_lanes_near_the_mean() -> None:
    rng = np.random.default_rng(1)
    flow = ClusterSnapshot.of(
        load=rng.uniform(1, 1.2, 300),
        operator=np.repeat([0, 1, 2], 100),
        capacity=[100.0] * 10,
        groups=[(0, 1, 5.0), (1, 2, 5.0)],
    )
    assert utilisation(flow, planned(flow)).max() > 95
    assert utilisation(flow, planned(flow, TopDown(balance=1.05))).max() <= 1.05 * flow.mean + 1e-6


def test_balance_that_cannot_be_kept_is_said() -> None:
    flow = ClusterSnapshot.of(load=[5, 1], capacity=[10, 10])
    answer = TopDown(balance=1.1).plan(flow)
    assert isinstance(answer, Infeasible)
    assert "Slot 0 with load 5" in answer.missing
    assert "more than 1.1 times the mean" in answer.missing


def test_unlike_slots_keep_capacities_and_heavy_ones_are_placed_with_their_like() -> None:
    rng = np.random.default_rng(3)
    load = rng.zipf(1.6, 400).clip(max=200).astype(float)
    flow = ClusterSnapshot.of(
        load=load,
        operator=np.arange(400) % 4,
        capacity=np.full(12, load.sum() / 10),
        groups=[(0, 1, 5.0), (1, 2, 5.0), (2, 3, 5.0)],
    )
    for margin in (None, 0.1, 0.5):
        check_plan(flow, TopDown(margin=margin).plan(flow))
        assert isinstance(TopDown(margin=margin).plan(flow), Plan)


def test_subgroups_of_like_slots_gain_more_where_loads_are_skewed() -> None:
    load = np.random.default_rng(0).lognormal(0, 1, 1000)
    flow = ClusterSnapshot.of(
        load=load, operator=np.arange(1000) % 2, capacity=[load.sum() / 16] * 20, groups=[(0, 1, 100.0)]
    )
    assert imc_gain(flow, planned(flow)) > 1.5 * imc_gain(flow, planned(flow, TopDown(margin=None)))


def test_stronger_lanes_take_more() -> None:
    flow = ClusterSnapshot.of(load=[10] * 5, capacity=[10, 40], operator=[0] * 5)
    assert lane_loads(flow, planned(flow)).tolist() == [10, 40]


def test_reasons_name_the_partner() -> None:
    flow = ClusterSnapshot.of(load=[1, 1, 1], operator=[0, 1, 2], capacity=[5], lane=[-1, -1, -1], groups=[(0, 1, 2.0)])
    answer = TopDown().plan(flow)
    assert isinstance(answer, Plan)
    why = [move.why for move in answer.moves(flow)]
    assert "operator1" in why[0] and "operator0" in why[1] and "no partner" in why[2]
    assert len(answer.reasons) == 3 and dict(answer.reasons)[2] == why[2]
    assert answer.reasons.get(3) is None


@pytest.mark.parametrize("options", [{"balance": 1.0}, {"balance": np.inf}, {"margin": 0.0}, {"margin": np.nan}])
def test_options_that_make_no_sense_are_refused_by_name(options: dict[str, float]) -> None:
    with pytest.raises(ProblemError, match=rf"^options\.{next(iter(options))} is .*: it has to be"):
        TopDown(**options)


def test_a_cluster_that_is_too_small_says_which_slot_does_not_fit() -> None:
    answer = TopDown().plan(ClusterSnapshot.of(load=[3, 3, 3], capacity=[5, 5]))
    assert isinstance(answer, Infeasible)
    assert "load 3 fits on no lane: the most that one has left is 2" in answer.missing


@given(
    small_flows(),
    st.sampled_from([TopDown(), TopDown("traffic"), TopDown(margin=None), TopDown(balance=1.5), TopDown(margin=0.01)]),
)
def test_any_problem_is_planned_within_capacities_or_refused(flow: ClusterSnapshot, planner: TopDown) -> None:
    before = flow.lane.copy(), flow.load.copy()
    answer = planner.plan(flow)
    check_plan(flow, answer)
    assert np.array_equal(before[0], flow.lane) and np.array_equal(before[1], flow.load)
    if isinstance(answer, Plan):
        again = planner.plan(flow)
        assert isinstance(again, Plan) and np.array_equal(again.lanes, answer.lanes)
        best = greatest_gain(flow)
        assert best is not None and imc_gain(flow, answer.lanes) <= best + 1e-9


@given(small_flows(), st.sampled_from([0.25, 4.0]))
def test_scaling_loads_and_capacities_alike_changes_nothing(flow: ClusterSnapshot, factor: float) -> None:
    scaled = ClusterSnapshot.of(
        load=flow.load * factor,
        capacity=flow.capacity * factor,
        operator=flow.operator,
        draining=flow.draining,
        groups=list(zip(flow.groups.source, flow.groups.target, flow.groups.weight, strict=True)),
        traffic=list(zip(flow.traffic.source, flow.traffic.target, flow.traffic.weight, strict=True)),
    )
    one, other = TopDown().plan(flow), TopDown().plan(scaled)
    assert type(one) is type(other)
    if isinstance(one, Plan) and isinstance(other, Plan):
        assert np.array_equal(one.lanes, other.lanes)


def test_a_flow_too_coarse_for_its_lanes_is_told_how_finely_to_divide_it() -> None:
    coarse = ClusterSnapshot.of(load=[60, 60, 60], operator=[0, 0, 1], capacity=[100, 100], groups=[(0, 1, 1.0)])
    answer = TopDown().plan(coarse)
    assert isinstance(answer, Infeasible)
    assert "6 of operator0, 3 of operator1, it would fit" in answer.missing
    assert isinstance(TopDown().plan(refine_granularity(coarse)), Plan)
    full = TopDown().plan(ClusterSnapshot.of(load=[90, 90, 90], capacity=[100, 100]))
    assert isinstance(full, Infeasible) and "would fit" not in full.missing
