"""Slots of the hottest lane for half the gap to the coldest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import ProblemError
from trimtab.planners.hotspot import Hotspot
from trimtab.planners.live import Live
from trimtab.planners.metrics import lane_loads
from trimtab.planners.plan import Plan
from trimtab.planners.snapshot import ClusterSnapshot

counts = st.lists(st.integers(0, 100), min_size=1, max_size=30)


def planned(snapshot: ClusterSnapshot, **options: float) -> Plan:
    plan = Hotspot(**options).plan(snapshot)
    assert isinstance(plan, Plan)
    return plan


def printed(count: dict[int, list[tuple[int, int]]], factor: float) -> list[int]:
    """Algorithm 3 as printed, with the guards for idle lanes and idle slots."""
    total = {lane: sum(number for _, number in slots) for lane, slots in count.items()}
    most, least = max(total, key=total.__getitem__), min(total, key=total.__getitem__)
    gap, taken = (total[most] - total[least]) / 2, []
    if not total[most] or 2 * gap / total[most] < factor:
        return []
    slots = sorted(count[most], key=lambda each: (-each[1], each[0]))
    while gap > 0 and slots:
        slot, number = slots.pop(0)
        if 0 < number <= gap:
            taken.append(slot)
            gap -= number
    return taken


@given(counts, st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_it_moves_what_the_papers_algorithm_moves(load: list[int], factor: float) -> None:
    lane = [slot % 3 if slot % 2 else 0 for slot in range(len(load))]
    snapshot = ClusterSnapshot.of(load=load, capacity=[10] * 3, lane=lane)
    slots = {each: [(slot, load[slot]) for slot in range(len(load)) if lane[slot] == each] for each in range(3)}
    assert planned(snapshot, factor=factor).moved(snapshot).tolist() == sorted(printed(slots, factor))


@given(counts, st.integers(1, 5))
def test_the_hottest_lane_never_gets_hotter(load: list[int], pairs: int) -> None:
    lane = [slot % 2 * 3 for slot in range(len(load))]
    snapshot = ClusterSnapshot.of(load=load, capacity=[10, 20, 10, 40], lane=lane)
    before = (lane_loads(snapshot, snapshot.lane) / snapshot.capacity).max()
    plan = planned(snapshot, pairs=pairs)
    assert (lane_loads(snapshot, plan.lanes) / snapshot.capacity).max() <= before + 1e-9


def test_only_the_last_rows_of_the_window_count() -> None:
    window = [[9, 2, 0, 0]] * 5 + [[1, 1, 9, 6]] * 2
    snapshot = ClusterSnapshot.of(load=[1] * 4, capacity=[9, 9], lane=[0, 0, 1, 1], window=window)
    assert planned(snapshot, window=2).lanes.tolist() == [0, 0, 1, 0]
    assert planned(snapshot, window=7).lanes.tolist() == [0, 1, 1, 1]


def test_a_gap_that_was_closed_is_not_seen_again() -> None:
    """The window's counts go with the slots, so the second call finds the lanes level."""
    snapshot = ClusterSnapshot.of(load=[1] * 4, capacity=[9, 9], lane=[0] * 4, window=[[5, 5, 5, 5]] * 5)
    once = planned(snapshot)
    assert once.lanes.tolist() == [1, 1, 0, 0]
    assert planned(snapshot.at(once.lanes)).lanes.tolist() == once.lanes.tolist()


def test_lanes_of_unlike_capacity_are_levelled_by_utilisation() -> None:
    snapshot = ClusterSnapshot.of(load=[5] * 8, capacity=[10, 30], lane=[0] * 8)
    assert lane_loads(snapshot, planned(snapshot).lanes).tolist() == [10.0, 30.0]


def test_several_pairs_in_one_call() -> None:
    snapshot = ClusterSnapshot.of(load=[4] * 12, capacity=[9] * 4, lane=[0] * 6 + [1] * 6)
    assert np.bincount(planned(snapshot).lanes, minlength=4).tolist() == [3, 6, 3, 0]
    assert np.bincount(planned(snapshot, pairs=2).lanes, minlength=4).tolist() == [3, 3, 3, 3]


def test_a_single_hot_slot_stays_and_slots_without_rows_do_too() -> None:
    snapshot = ClusterSnapshot.of(load=[90, 0, 0, 0], capacity=[100] * 2, lane=[0] * 4)
    assert planned(snapshot).lanes.tolist() == [0] * 4


def test_a_draining_lane_is_emptied_first() -> None:
    snapshot = ClusterSnapshot.of(
        load=[9, 5, 4, 1], capacity=[50] * 3, lane=[0, 0, 0, 1], draining=[True, False, False]
    )
    plan = planned(snapshot)
    assert plan.lanes.tolist() == [2, 1, 1, 1]
    assert plan.reasons[0] == "lane 0 is draining, and lane 2 was the least loaded"


def test_slots_without_a_lane_go_to_the_least_loaded() -> None:
    snapshot = ClusterSnapshot.of(load=[9, 1, 2, 0, 0], capacity=[50] * 2, lane=[0, 1, -1, -1, -1])
    assert planned(snapshot, factor=1).lanes.tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize("wrong", [{"window": 0}, {"factor": 1.5}, {"factor": float("nan")}, {"pairs": 0}])
def test_options_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ProblemError, match=f"options.{next(iter(wrong))} is "):
        Hotspot(**wrong)


def test_live_it_relieves_one_of_two_hot_lanes_at_a_time() -> None:
    """The load distance is that of the other one as before; the plan is better all the same."""
    snapshot = ClusterSnapshot.of(load=[10] * 8 + [5, 5], lane=[0] * 4 + [1] * 4 + [2, 3], capacity=[100] * 4)
    plan = Live(Hotspot()).plan(snapshot)
    assert isinstance(plan, Plan)
    assert plan.moved(snapshot).size
