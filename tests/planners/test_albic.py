"""ALBIC's four steps on examples small enough to follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from trimtab.errors import ProblemError
from trimtab.planners.albic import Albic
from trimtab.planners.collocation import SizeLimit, maintained_sets, qualifying_pairs, united
from trimtab.planners.metrics import load_distance, measure
from trimtab.planners.milp_solver import Effort, Program, Solution
from trimtab.planners.plan import Plan
from trimtab.planners.snapshot import ClusterSnapshot, Traffic


def planned(snapshot: ClusterSnapshot, planner: Albic) -> Plan:
    plan = planner.plan(snapshot)
    assert isinstance(plan, Plan)
    return plan


def pairs_of(snapshot: ClusterSnapshot, score_factor: float = 1.5) -> set[tuple[int, int]]:
    pairs = qualifying_pairs(snapshot, score_factor)
    return set(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True))


def chain(lane: list[int], traffic: list[tuple[int, int, float]], **more: Any) -> ClusterSnapshot:
    """Four slots of a first operator, four of a second."""
    load, operator = [2.0] * 8, [0] * 4 + [1] * 4
    return ClusterSnapshot.of(load=load, lane=lane, operator=operator, capacity=[10] * 4, traffic=traffic, **more)


ONE_TO_ONE = [(slot, slot + 4, 5.0 + slot) for slot in range(4)]


def test_one_to_one_traffic_qualifies_and_full_exchange_does_not() -> None:
    assert pairs_of(chain([0] * 8, ONE_TO_ONE)) == {(0, 4), (1, 5), (2, 6), (3, 7)}
    everyone = [(one, other, 3.0) for one in range(4) for other in range(4, 8)]
    assert pairs_of(chain([0] * 8, everyone)) == set()
    assert pairs_of(chain([0] * 8, everyone), score_factor=0.9) == {pair[:2] for pair in everyone}


def test_spread_traffic_counts_beside_named_pairs() -> None:
    both = chain([0] * 8, [(0, 4, 1.0)], groups=[(0, 1, 64.0)])
    assert pairs_of(both) == set()
    assert pairs_of(both, score_factor=1.1) == {(0, 4)}


def test_pairs_qualify_by_spread_traffic_where_downstream_operators_differ() -> None:
    two = ClusterSnapshot.of(
        load=[1] * 6, operator=[0, 1, 2, 2, 2, 2], lane=[0] * 6, capacity=[9], groups=[(0, 1, 50.0), (0, 2, 10.0)]
    )
    assert pairs_of(two) == {(0, 1)}


def test_sets_unite_what_is_on_one_lane_and_split_what_is_too_large() -> None:
    traffic = [(0, 4, 9.0), (1, 4, 1.0), (1, 5, 9.0), (2, 6, 9.0)]
    snapshot = chain([0, 0, 0, 1, 0, 0, 1, 1], traffic)
    pairs = snapshot.pairs
    whole = maintained_sets(snapshot, pairs, SizeLimit(80), 0)
    assert [each.tolist() for each in whole] == [[0, 1, 4, 5]]
    halves = maintained_sets(snapshot, pairs, SizeLimit(40), 0)
    assert sorted(each.tolist() for each in halves) == [[0, 4], [1, 5]]


def test_sets_are_no_larger_than_what_a_budget_can_move() -> None:
    traffic = [(0, 4, 9.0), (1, 4, 1.0), (1, 5, 9.0)]
    snapshot = chain([0] * 8, traffic, state=[1.0] * 8, max_migration=2)
    assert sorted(each.tolist() for each in maintained_sets(snapshot, snapshot.pairs, SizeLimit(100), 0)) == [
        [0, 4],
        [1, 5],
    ]


def test_each_call_brings_the_pair_with_the_most_traffic_together() -> None:
    """Slots go round in a circle, so that the third call completes the fourth pair as well."""
    snapshot = chain([0, 1, 2, 3, 1, 2, 3, 0], ONE_TO_ONE)
    for one, other in ((3, 7), (2, 6), (1, 5)):
        plan = planned(snapshot, Albic())
        assert plan.lanes[one] == plan.lanes[other]
        assert load_distance(snapshot, plan.lanes) == pytest.approx(0)
        whys = [move.why for move in plan.moves(snapshot)]
        assert len(whys) == 2 and all(f"slot {one}" in why or f"slot {other}" in why for why in whys)
        snapshot = snapshot.at(plan.lanes)
    assert measure(snapshot, snapshot.lane).collocation == 1
    assert not list(planned(snapshot, Albic()).moves(snapshot))


def test_what_is_collocated_stays_so() -> None:
    """Slots 0 and 4 have to leave their lane, which carries twice the mean, or the others on it do."""
    snapshot = chain([0, 1, 0, 3, 0, 1, 3, 0], ONE_TO_ONE)
    plan = planned(snapshot, Albic(max_partition_load=40.0))
    assert load_distance(snapshot, plan.lanes) == pytest.approx(0)
    assert plan.lanes[0] == plan.lanes[4] and plan.lanes[1] == plan.lanes[5]


def test_what_moves_as_one_says_so() -> None:
    """Two pairs fill a lane; nothing but a whole pair may leave it."""
    snapshot = chain([0, 0, 2, 3, 0, 0, 2, 3], ONE_TO_ONE)
    moves = list(planned(snapshot, Albic(max_partition_load=40.0)).moves(snapshot))
    assert [move.slot for move in moves] in ([0, 4], [1, 5]) and {move.target for move in moves} == {1}
    for move, mate in zip(moves, reversed(moves), strict=True):
        assert f"together with slot {mate.slot}" in move.why and "lane 0 carried 80 %" in move.why


def test_a_slot_goes_to_the_lane_of_its_mates_set() -> None:
    """Case 2: slot 1 joins slots 0 and 4 where they are, though its own lane is less loaded."""
    traffic = [(0, 4, 9.0), (1, 4, 8.0)]
    snapshot = ClusterSnapshot.of(
        load=[2, 2, 2, 2, 2], operator=[0, 0, 1, 1, 1], lane=[0, 1, 0, 1, 0], capacity=[10, 10], traffic=traffic
    )
    plan = planned(snapshot, Albic(max_partition_load=100.0, max_load_distance=100.0))
    assert plan.lanes[[0, 1, 4]].tolist() == [0, 0, 0]


def test_the_budget_passes_over_pairs_that_cost_too_much() -> None:
    state = [9.0, 1.0, 1.0, 9.0, 9.0, 1.0, 1.0, 9.0]
    snapshot = chain([0, 1, 2, 3, 1, 2, 3, 0], ONE_TO_ONE, state=state, max_migration=2)
    plan = planned(snapshot, Albic())
    assert plan.lanes[2] == plan.lanes[6]
    assert measure(snapshot, plan.lanes).feasible


def test_sets_are_split_until_the_load_distance_is_within_its_limit() -> None:
    """All traffic is on one lane, and all pairs qualify; as one set it cannot be levelled, in pairs it can."""
    star = [(0, 4, 1.0), (0, 5, 9.0), (1, 4, 9.0), (1, 6, 1.0), (2, 6, 9.0), (2, 7, 1.0), (3, 7, 9.0)]
    snapshot = chain([0] * 8, star)
    loose = planned(snapshot, Albic(score_factor=0.3, max_partition_load=160.0, max_load_distance=1000.0))
    tight = planned(snapshot, Albic(score_factor=0.3, max_partition_load=160.0, max_load_distance=1.0))
    assert len(set(loose.lanes.tolist())) == 1
    assert load_distance(snapshot, tight.lanes) == pytest.approx(0)
    assert measure(snapshot, tight.lanes).imc_gain == pytest.approx(36)


def test_a_set_of_three_is_split_into_a_pair_and_a_single_slot() -> None:
    """There are as many sets of two or more after that split as before."""
    snapshot = ClusterSnapshot.of(
        load=[2, 2, 2], operator=[0, 1, 1], lane=[0, 0, 0], capacity=[10, 10], traffic=[(0, 1, 9.0), (0, 2, 8.0)]
    )
    plan = planned(snapshot, Albic(score_factor=0.5, max_partition_load=60.0, max_load_distance=10.0))
    assert plan.lanes[0] == plan.lanes[1] != plan.lanes[2]


def test_slots_without_load_are_no_obstacle() -> None:
    """The set of slots 0 and 2 weighs nothing and is never split, however small maxPL becomes."""
    snapshot = ClusterSnapshot.of(
        load=[0, 9, 0, 1], operator=[0, 0, 1, 1], lane=[0, 0, 0, 1], capacity=[10, 10], traffic=[(0, 2, 9.0)]
    )
    plan = planned(snapshot, Albic(max_load_distance=1.0))
    assert load_distance(snapshot, plan.lanes) == pytest.approx(40)


def test_a_pair_that_cannot_be_level_on_any_lane_is_passed_over() -> None:
    heavy = ClusterSnapshot.of(
        load=[6, 2, 6, 2],
        operator=[0, 0, 1, 1],
        lane=[0, 1, 1, 0],
        capacity=[10, 10],
        traffic=[(0, 2, 9.0), (1, 3, 1.0)],
    )
    plan = planned(heavy, Albic())
    assert plan.lanes[0] != plan.lanes[2] and load_distance(heavy, plan.lanes) == pytest.approx(0)


def test_a_pair_is_given_up_where_lanes_cannot_be_level_with_it() -> None:
    """Slots 0 and 1 fit one lane, but then the others do not level: 3 + 3 on one of two lanes, 4 + 4 on the other."""
    snapshot = ClusterSnapshot.of(
        load=[3, 3, 4, 4], operator=[0, 1, 1, 1], lane=[0, 1, 0, 1], capacity=[10, 10], traffic=[(0, 1, 9.0)]
    )
    assert planned(snapshot, Albic(max_load_distance=5.0)).lanes.tolist() == [0, 1, 0, 1]
    assert measure(snapshot, planned(snapshot, Albic(max_load_distance=10.0)).lanes).collocation == 1


def test_ties_depend_on_the_seed_alone() -> None:
    equal = [(slot, slot + 4, 5.0) for slot in range(4)]
    snapshot = chain([0, 1, 2, 3, 1, 2, 3, 0], equal)
    plans = [planned(snapshot, Albic(seed=seed)).lanes.tolist() for seed in range(8)]
    assert plans == [planned(snapshot, Albic(seed=seed)).lanes.tolist() for seed in range(8)]
    assert len(set(map(tuple, plans))) > 1


def test_several_pairs_a_call_is_an_option() -> None:
    snapshot = chain([0, 1, 2, 3, 1, 2, 3, 0], ONE_TO_ONE)
    plan = planned(snapshot, Albic(pairs_per_call=4))
    assert measure(snapshot, plan.lanes).collocation == 1


def test_draining_lanes_are_emptied_and_never_pinned_to() -> None:
    draining = np.array([True, False, False, False])
    snapshot = chain([0, 1, 2, 3, 1, 2, 3, 0], ONE_TO_ONE, draining=draining)
    plan = planned(snapshot, Albic())
    assert not (plan.lanes == 0).any()


@pytest.mark.parametrize(
    "options",
    [{"score_factor": 0.0}, {"max_partition_load": -1.0}, {"max_load_distance": -1.0}, {"pairs_per_call": -1}],
)
def test_options_that_make_no_sense_are_refused_by_name(options: dict[str, float]) -> None:
    with pytest.raises(ProblemError, match=rf"options\.{next(iter(options))} is"):
        Albic(**options)  # type: ignore[arg-type]


def test_one_time_limit_is_for_all_that_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def slow(program: Program, effort: Effort, start: Any = None) -> Solution:
        given.append(effort.seconds)
        return Solution(None, -np.inf, seconds=2.0)

    monkeypatch.setattr("trimtab.planners.milp_search.solve", slow)
    traffic = [(0, 4, 9.0), (1, 5, 8.0), (2, 6, 7.0), (3, 7, 6.0)]
    loads = np.array([[1.3, 2.9, 3.7, 1.1, 2.3, 1.9, 0.7, 3.1]]).T
    snapshot = replace(chain([0, 0, 1, 1, 0, 0, 1, 2], traffic), loads=loads)
    planned(snapshot, Albic(max_load_distance=0.0, gap=0.0, time_limit=5.0))
    assert given == [5.0, 3.0, 1.0]


def test_a_flow_that_is_one_pinned_set_has_nothing_left_to_level() -> None:
    snapshot = ClusterSnapshot.of(
        load=[1.0] * 7,
        operator=[0] * 3 + [1] * 4,
        lane=[0] * 6 + [1],
        capacity=[100, 100],
        traffic=[(0, 3, 5.0), (0, 4, 5.0), (1, 4, 5.0), (1, 5, 5.0), (2, 5, 5.0), (2, 6, 5.0)],
    )
    assert planned(snapshot, Albic()).lanes.tolist() == [0] * 7


def test_only_operators_whose_spread_traffic_qualifies_are_paired_slot_by_slot() -> None:
    flow = ClusterSnapshot.of(
        load=[1] * 9,
        operator=[0, 1, 2, 2, 2, 2, 3, 3, 3],
        lane=[0] * 9,
        capacity=[9],
        traffic=[(2, 6, 3.0)],
        groups=[(0, 1, 50.0), (0, 2, 10.0), (2, 3, 12.0)],
    )
    pairs = qualifying_pairs(flow, 0.1)
    assert set(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)) == set(
        zip(flow.pairs.source.tolist(), flow.pairs.target.tolist(), strict=True)
    )
    pairs = qualifying_pairs(flow, 1.5)
    assert dict(zip(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True), pairs.weight, strict=True)) == {
        (0, 1): 50.0,
        (2, 6): 4.0,
    }


def test_every_set_comes_with_its_own_pairs() -> None:
    pairs = Traffic.of([(3, 1, 2.0), (0, 2, 5.0), (1, 4, 7.0)])
    found = [
        (slots.tolist(), list(zip(inside.source, inside.weight, strict=True))) for slots, inside in united(pairs, 6)
    ]
    assert found == [([0, 2], [(0, 5.0)]), ([1, 3, 4], [(3, 2.0), (1, 7.0)]), ([5], [])]
