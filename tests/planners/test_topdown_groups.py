"""Groups of like slots, the traffic between them, and finer tasks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from tests.planners.small_flows import small_flows

from trimtab.planners.plan import Infeasible, Plan
from trimtab.planners.snapshot import ClusterSnapshot
from trimtab.planners.topdown import TopDown
from trimtab.planners.topdown_groups import group_traffic, like_slots, refine_granularity


def test_slots_within_the_margin_of_the_heaviest_stay_together() -> None:
    flow = ClusterSnapshot.of(load=[10, 9.2, 5, 4.6, 0, 9.9], capacity=[99])
    groups = like_slots(flow, 0.1)
    assert groups.group[[0, 1, 5]].tolist() == [0, 0, 0]
    assert 0 not in groups.group[2:5]
    assert groups.group[4] not in groups.group[:4]


def test_a_few_key_values_make_a_few_groups() -> None:
    flow = ClusterSnapshot.of(load=np.tile([1.0, 5.0, 25.0], 100), operator=[0] * 300, capacity=[9999])
    groups = like_slots(flow, 0.25)
    assert groups.size.tolist() == [100, 100, 100]
    assert groups.load.tolist() == [2500, 500, 100]


@given(small_flows())
def test_slots_of_a_group_differ_by_less_than_the_margin(flow: ClusterSnapshot) -> None:
    groups = like_slots(flow, 0.25)
    for number in np.unique(groups.group).tolist():
        members = np.flatnonzero(groups.group == number)
        loads = flow.load[members]
        assert len(members) == groups.size[number]
        assert (flow.operator[members] == groups.operator[number]).all()
        assert loads.max() <= 1.25 * loads.min() * (1 + 1e-6)


@given(small_flows())
def test_traffic_is_the_same_by_groups_but_for_what_stays_inside_one(flow: ClusterSnapshot) -> None:
    groups = like_slots(flow, 0.25)
    traffic = group_traffic(flow, groups)
    pairs = flow.pairs
    apart = groups.group[pairs.source] != groups.group[pairs.target]
    assert traffic.total() == pytest.approx(float(pairs.weight[apart].sum()))
    assert (traffic.source < traffic.target).all()


def test_finer_tasks_fit_where_coarse_ones_do_not() -> None:
    coarse = ClusterSnapshot.of(
        load=[60, 60, 60, 60], operator=[0, 0, 1, 1], capacity=[100, 100, 50], groups=[(0, 1, 8.0)], state=[1, 2, 3, 4]
    )
    assert isinstance(TopDown().plan(coarse), Infeasible)
    fine = refine_granularity(coarse)
    assert fine.sizes.tolist() == [12, 12]
    assert fine.total == pytest.approx(coarse.total)
    assert fine.state.sum() == 10
    assert fine.total_traffic == 8
    assert isinstance(TopDown().plan(fine), Plan)


@given(small_flows(draining=False))
def test_refining_places_whatever_the_lanes_can_hold(flow: ClusterSnapshot) -> None:
    """Loads and capacities of these problems are whole multiples of a hundredth of a lane, or nearly."""
    fine = refine_granularity(flow)
    assert fine.total == pytest.approx(flow.total)
    if flow.total <= 0.9 * flow.capacity.sum():
        assert isinstance(TopDown().plan(fine), Plan)


def test_refining_keeps_single_traffic_between_operators_and_those_without_load() -> None:
    coarse = ClusterSnapshot.of(load=[0, 0, 4], operator=[0, 0, 1], capacity=[8], traffic=[(0, 1, 2.0), (1, 2, 3.0)])
    fine = refine_granularity(coarse)
    assert fine.sizes.tolist() == [1, 1]
    assert fine.operator_traffic.tolist() == [[0, 3], [0, 0]]


def test_refining_an_empty_cluster() -> None:
    assert len(refine_granularity(ClusterSnapshot.of(load=[], capacity=[8]))) == 0
