"""Slots leave lanes that carry too much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import ProblemError
from trimtab.planners.departures import Departures
from trimtab.planners.metrics import lane_loads
from trimtab.planners.nearness import Nearness
from trimtab.planners.plan import Plan
from trimtab.planners.reassign import Reassign
from trimtab.planners.snapshot import ClusterSnapshot
from trimtab.ports import chance


def planned(snapshot: ClusterSnapshot, threshold: float = 0.12) -> Plan:
    plan = Reassign(threshold).plan(snapshot)
    assert isinstance(plan, Plan)
    return plan


def random_cluster(seed: int, **more: object) -> ClusterSnapshot:
    random = chance(seed)
    return ClusterSnapshot.of(
        load=random.integers(0, 9, 20),
        capacity=random.integers(20, 60, 4),
        lane=random.integers(0, 4, 20),
        operator=np.sort(random.integers(0, 3, 20)),
        groups=[(0, 1, 12.0), (1, 2, 6.0)],
        **more,
    )


def test_lanes_within_the_threshold_keep_everything() -> None:
    snapshot = ClusterSnapshot.of(load=[56, 44], capacity=[100, 100], lane=[0, 1], traffic=[(0, 1, 9.0)])
    assert planned(snapshot).lanes.tolist() == [0, 1]


def test_the_slot_that_exchanges_most_with_others_goes_first_and_to_its_partner() -> None:
    snapshot = ClusterSnapshot.of(
        load=[4, 4, 4, 2, 2], capacity=[20] * 3, lane=[0, 0, 0, 1, 2], traffic=[(0, 3, 1.0), (1, 4, 9.0), (1, 0, 99.0)]
    )
    plan = planned(snapshot, threshold=0.6)
    assert plan.lanes.tolist() == [0, 2, 0, 1, 2]
    assert "exchanged 9 with lane 2" in plan.reasons[1]


def test_a_partner_that_would_be_overloaded_is_passed_over() -> None:
    snapshot = ClusterSnapshot.of(
        load=[4, 4, 4, 5, 1], capacity=[20] * 3, lane=[0, 0, 0, 1, 2], traffic=[(1, 3, 9.0), (1, 4, 1.0)]
    )
    assert planned(snapshot).lanes[1] == 2


def test_a_slot_without_traffic_goes_to_the_least_loaded_lane() -> None:
    snapshot = ClusterSnapshot.of(load=[5, 5, 3, 1], capacity=[20] * 3, lane=[0, 0, 1, 2])
    plan = planned(snapshot, threshold=0.3)
    assert plan.lanes.tolist() == [2, 0, 1, 2] and "least loaded" in plan.reasons[0]


@given(st.integers(0, 1000))
@settings(max_examples=80)
def test_no_lane_gets_overloaded_and_none_is_left_so_that_could_be_helped(seed: int) -> None:
    snapshot = random_cluster(seed)
    plan = planned(snapshot)
    bound = 1.12 * snapshot.mean / 100 * snapshot.capacity * (1 + 1e-9)
    before, after = lane_loads(snapshot, snapshot.lane), lane_loads(snapshot, plan.lanes)
    assert (after <= np.maximum(bound, before)).all()
    for slot in np.flatnonzero((snapshot.load > 0) & (after > bound)[plan.lanes]):
        assert (after + snapshot.load[slot] > bound)[np.arange(4) != plan.lanes[slot]].all()


@given(st.integers(0, 200))
@settings(max_examples=40)
def test_draining_lanes_are_emptied_whatever_the_bounds(seed: int) -> None:
    plan = planned(random_cluster(seed, draining=[True, False, True, False]))
    assert not np.isin(plan.lanes, [0, 2]).any()


def test_slots_without_a_lane_are_placed_by_their_traffic() -> None:
    snapshot = ClusterSnapshot.of(load=[2, 2, 1], capacity=[9, 9], lane=[0, 1, -1], traffic=[(1, 2, 3.0)])
    plan = planned(snapshot, threshold=0.5)
    assert plan.lanes.tolist() == [0, 1, 1]
    assert plan.reasons[2] == "it had no lane, and the slot exchanged 3 with lane 1"


def test_a_ring_of_operators_is_no_obstacle() -> None:
    snapshot = ClusterSnapshot.of(
        load=[3, 3], capacity=[9, 9], lane=[0, 0], operator=[0, 1], groups=[(0, 1, 1), (1, 0, 1)]
    )
    assert sorted(planned(snapshot).lanes.tolist()) == [0, 1]


def test_options_are_checked() -> None:
    with pytest.raises(ProblemError, match=r"options\.threshold is -1"):
        Reassign(threshold=-1)


@given(st.integers(0, 10_000))
def test_slots_leave_in_the_order_of_what_they_exchange_with_others_by_then(seed: int) -> None:
    random = chance(seed)
    pairs = {(int(one), int(other)) for one, other in random.integers(0, 20, (30, 2)) if one < other}
    snapshot = random_cluster(seed, traffic=[(*pair, float(random.integers(1, 5))) for pair in sorted(pairs)])
    near = Nearness.by_traffic(snapshot)
    for slot, lane in enumerate(snapshot.lane.tolist()):
        near.put(slot, lane)
    left = np.flatnonzero(snapshot.lane == 0)
    departures = Departures(near, left, 0)
    while left.size:
        exchanged = [float(np.delete(near.of(slot), 0).sum()) for slot in left.tolist()]
        expected = left[np.isclose(exchanged, max(exchanged))][0]
        assert departures.next() == expected
        if random.random() < 0.7:
            near.put(int(expected), int(random.integers(1, 4)))
            departures.left(int(expected))
        left = left[left != expected]
    assert departures.next() is None
