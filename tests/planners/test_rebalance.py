"""Placement of all flows afresh within capacities."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.planners.metrics import lane_loads, measure
from trimtab.planners.nearness import Nearness
from trimtab.planners.plan import Infeasible, Plan
from trimtab.planners.rebalance import Rebalance
from trimtab.planners.snapshot import ClusterSnapshot, combine
from trimtab.ports import chance

BOTH: tuple[Literal["load", "traffic"], ...] = ("load", "traffic")


def random_flow(seed: int, slots: int = 12, lanes: int = 3) -> ClusterSnapshot:
    random = chance(seed)
    pairs = {(int(a), int(b)) for a, b in np.sort(random.integers(0, slots, (10, 2))) if a < b}
    return ClusterSnapshot.of(
        load=random.integers(1, 9, slots),
        capacity=random.integers(20, 60, lanes),
        operator=np.sort(random.integers(0, 3, slots)),
        traffic=[(*pair, float(random.integers(1, 9))) for pair in sorted(pairs)],
        groups=[(0, 1, 12.0), (0, 2, 6.0)],
    )


@given(st.integers(0, 500), st.sampled_from(BOTH))
@settings(max_examples=60)
def test_each_slot_went_where_equation_10_was_greatest(seed: int, weigh: Literal["load", "traffic"]) -> None:
    """The product computed pair by pair, slot after slot in the order of the pass."""
    snapshot = random_flow(seed)
    plan = Rebalance(weigh, seed).plan(snapshot)
    if isinstance(plan, Infeasible):
        return
    for place, slot in enumerate(order := _order(snapshot, seed)):
        before = order[:place]
        scores = [_score(snapshot, weigh, plan, before, slot, lane) for lane in range(snapshot.lanes)]
        assert scores[plan.lanes[slot]] == pytest.approx(max(scores))


def _order(snapshot: ClusterSnapshot, seed: int) -> list[int]:
    from trimtab.planners.linearisation import linearise

    order = linearise(snapshot, seed)
    assert not isinstance(order, Infeasible)
    return order.tolist()


def _score(snapshot: ClusterSnapshot, weigh: str, plan: Plan, before: list[int], slot: int, lane: int) -> float:
    there = [other for other in before if plan.lanes[other] == lane]
    used = snapshot.load[there].sum()
    if used + snapshot.load[slot] > snapshot.capacity[lane]:
        return -1.0
    pairs = snapshot.pairs
    near = 0.0
    for one, other, weight in zip(pairs.source, pairs.target, pairs.weight, strict=True):
        if slot in (one, other) and (neighbour := int(one + other - slot)) in there:
            if weigh == "traffic":
                near += weight
            elif not ((pairs.source == other) & (pairs.target == one)).any() or one < other:
                near += snapshot.load[neighbour]
    return float(near * (1 - used / snapshot.capacity[lane]))


@given(st.integers(0, 500), st.sampled_from(BOTH))
@settings(max_examples=60)
def test_capacities_are_kept_or_what_is_missing_is_said(seed: int, weigh: Literal["load", "traffic"]) -> None:
    snapshot = random_flow(seed)
    plan = Rebalance(weigh).plan(snapshot)
    if isinstance(plan, Plan):
        assert (lane_loads(snapshot, plan.lanes) <= snapshot.capacity * (1 + 1e-9)).all()
    else:
        assert "fits on no lane" in plan.missing


def test_by_traffic_keeps_more_traffic_inside_than_by_load() -> None:
    """Two sources, the heavier of which sends next to nothing."""
    snapshot = ClusterSnapshot.of(
        load=[5, 1, 1], capacity=[9, 9], operator=[0, 0, 1], traffic=[(0, 2, 1.0), (1, 2, 50.0)]
    )
    gains = {}
    for weigh in BOTH:
        plan = Rebalance(weigh).plan(snapshot)
        assert isinstance(plan, Plan)
        gains[weigh] = measure(snapshot, plan.lanes).imc_gain
    assert gains == {"load": 1.0, "traffic": 50.0}


def test_several_flows_are_planned_as_one_graph() -> None:
    first, second = (
        ClusterSnapshot.of([3, 3], [6, 6], operator=[0, 1], groups=[(0, 1, weight)]) for weight in (1.0, 9.0)
    )
    plan = Rebalance("traffic").plan(combine([first, second]))
    assert isinstance(plan, Plan)
    assert plan.lanes[0] == plan.lanes[1] != plan.lanes[2] == plan.lanes[3]


def test_slots_without_load_do_not_all_end_on_one_lane() -> None:
    plan = Rebalance().plan(ClusterSnapshot.of(load=[0] * 8, capacity=[1] * 4))
    assert isinstance(plan, Plan)
    assert np.bincount(plan.lanes).tolist() == [2, 2, 2, 2]


def test_a_slot_beyond_every_lane_is_refused_with_figures() -> None:
    refused = Rebalance().plan(ClusterSnapshot.of(load=[50], capacity=[10, 20]))
    assert isinstance(refused, Infeasible)
    assert "load 50" in refused.missing and "is 20" in refused.missing


def test_nearness_is_that_of_all_pairs_spread_out() -> None:
    for seed in range(20):
        snapshot = random_flow(seed)
        near, random = Nearness.by_traffic(snapshot), chance(seed)
        for _ in range(2):
            lanes = random.integers(0, snapshot.lanes, len(snapshot))
            for slot, lane in enumerate(lanes.tolist()):
                near.put(slot, lane)
        full = np.zeros((len(snapshot),) * 2)
        np.add.at(full, (snapshot.pairs.source, snapshot.pairs.target), snapshot.pairs.weight)
        full += full.T
        by_lane = full @ np.eye(snapshot.lanes)[lanes]
        for slot in range(len(snapshot)):
            assert near.of(slot) == pytest.approx(by_lane[slot])
            remote = by_lane[slot].sum() - by_lane[slot][lanes[slot]]
            here = int(lanes[slot])
            by_operator = near.remote_by_operator(here)[snapshot.operator[slot]]
            assert near.remote_singly(np.array([slot]), here)[0] + by_operator == pytest.approx(remote)
