"""The live wrapper: lanes renamed, budgets kept, idle moves dropped, bad plans refused, and no false reason given."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.planners import PLANNERS, Albic, Bootstrap, ClusterSnapshot, Hotspot, Infeasible, Limits, Live, Milp, Plan
from trimtab.planners import live as module
from trimtab.planners.checks import random_problem
from trimtab.planners.live import REFUSED, ROUNDS, base_placement, relabelled
from trimtab.planners.metrics import imc_gain, lane_loads, load_distance, migrated, migration_cost, over_budget
from trimtab.planners.objective import Aim, Collocate, aim_of, better, score
from trimtab.planners.plan import Planner
from trimtab.planners.snapshot import UNPLACED
from trimtab.planners.topdown import TopDown
from trimtab.ports import chance


class Fixed:
    """Answers what it is told to."""

    def __init__(self, lanes: list[int] | np.ndarray, objective: Aim = "balance") -> None:
        self.lanes = np.array(lanes)
        self.objective = objective

    def plan(self, snapshot: ClusterSnapshot) -> Plan:
        reasons = dict.fromkeys(range(len(self.lanes)), "lane 0 was full")
        return Plan(self.lanes, "it was said so", reasons, {"bound": 1.0})


def planned(planner: Planner, snapshot: ClusterSnapshot) -> Plan:
    plan = Live(planner).plan(snapshot)
    assert not isinstance(plan, Infeasible), plan
    return plan


def live(snapshot: ClusterSnapshot, lanes: list[int] | np.ndarray, objective: Aim = "balance") -> Plan:
    return planned(Fixed(lanes, objective), snapshot)


# What holds for every planner and every problem.

STATES = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1e-7, 3.0])


@st.composite
def running_streams(draw: st.DrawFn) -> ClusterSnapshot:
    """A few slots with fractional states, some without a lane and some on draining lanes, under tight limits."""
    slots, lanes = draw(st.integers(0, 8)), draw(st.integers(1, 3))
    size = {"min_size": slots, "max_size": slots}
    operator = sorted(draw(st.lists(st.integers(0, 2), **size)))
    return ClusterSnapshot.of(
        load=draw(st.lists(st.sampled_from([0.0, 0.1, 1.0, 2.5, 4.0]), **size)),
        state=draw(st.lists(STATES, **size)),
        operator=operator,
        lane=draw(st.lists(st.integers(UNPLACED, lanes - 1), **size)),
        capacity=draw(st.lists(st.sampled_from([5.0, 10.0]), min_size=lanes, max_size=lanes)),
        draining=draw(st.lists(st.booleans(), min_size=lanes, max_size=lanes)),
        groups=draw(st.sampled_from([[], [(0, 1, 4.0)], [(0, 1, 4.0), (1, 2, 3.0)]])),
        traffic=[(slot, slot + 1, 1.5) for slot in range(slots - 1)] if draw(st.booleans()) else [],
        max_migration=draw(st.sampled_from([None, 0.0, 0.3, 1.0])),
        max_moves=draw(st.sampled_from([None, 0, 1, 3])),
    )


def check_live(snapshot: ClusterSnapshot, planner: Planner, aim: Aim) -> None:
    answer = Live(planner, aim).plan(snapshot)
    if isinstance(answer, Infeasible):
        return
    assert over_budget(snapshot, answer.lanes) == ""
    assert not snapshot.draining[answer.lanes[answer.moved(snapshot)]].any()
    base = base_placement(snapshot, aim).lanes
    assert not better(score(snapshot, base, aim), score(snapshot, answer.lanes, aim))
    assert all(move.why for move in answer.moves(snapshot))


@pytest.mark.parametrize("name", PLANNERS)
@settings(max_examples=40, deadline=None)
@given(snapshot=running_streams())
def test_any_planner_in_any_stream_keeps_budgets_and_makes_nothing_worse(name: str, snapshot: ClusterSnapshot) -> None:
    planner = PLANNERS[name]()
    check_live(snapshot, planner, aim_of(planner))


@settings(max_examples=300, deadline=None)
@given(data=st.data(), snapshot=running_streams())
def test_so_does_any_placement_under_any_objective(data: st.DataObject, snapshot: ClusterSnapshot) -> None:
    lanes = st.integers(0, snapshot.lanes - 1)
    placement = data.draw(st.lists(lanes, min_size=len(snapshot), max_size=len(snapshot)))
    aim = data.draw(st.sampled_from(["balance", "traffic", 0.3, Collocate(), Collocate(30.0)]))
    check_live(snapshot, Fixed(np.array(placement, np.int64)), aim)


def test_albic_has_an_answer_where_its_sets_leave_nothing_to_decide() -> None:
    pairs = [(slot, slot + 1, 1.5) for slot in range(6)]
    snapshot = ClusterSnapshot.of(load=[0] * 6 + [0.1], lane=[0] * 6 + [1], capacity=[5] * 3, traffic=pairs)
    check_live(snapshot, Albic(), Collocate())


# What a planner is for decides what is better.


def test_every_planner_says_what_it_is_for() -> None:
    aims = {name: aim_of(kind()) for name, kind in PLANNERS.items() if hasattr(kind, "objective")}
    assert aims.keys() == PLANNERS.keys()
    assert {name for name, aim in aims.items() if aim == "traffic"} == {
        "topdown", "tasklevel", "naive", "optimal", "rebalance",
    }  # fmt: skip
    assert {name for name, aim in aims.items() if isinstance(aim, Collocate)} == {"albic", "cola", "bootstrap"}
    assert aim_of(Albic(max_load_distance=20)) == Collocate(20)
    assert aim_of(TopDown(balance=1.05)) == "balance"


@pytest.mark.parametrize("name", ["topdown", "tasklevel", "naive", "optimal", "rebalance"])
def test_planners_of_traffic_gather_it_in_a_running_stream(name: str) -> None:
    snapshot = ClusterSnapshot.of(
        load=[1] * 4, operator=[0, 0, 1, 1], lane=[0, 1, 0, 1], capacity=[10, 10], groups=[(0, 1, 8)]
    )
    plan = planned(PLANNERS[name](), snapshot)
    assert imc_gain(snapshot, snapshot.lane) == 4
    assert imc_gain(snapshot, plan.lanes) >= 4
    assert len(set(planned(TopDown(), snapshot).lanes.tolist())) == 1


def test_cola_gathers_traffic_as_far_as_the_limit_of_load_distance_allows() -> None:
    snapshot = ClusterSnapshot.of(
        load=[5] * 4, lane=[0, 1, 0, 1], capacity=[20, 20], traffic=[(0, 1, 5.0), (2, 3, 5.0), (1, 2, 1.0)]
    )
    plan = planned(PLANNERS["cola"](), snapshot)
    assert imc_gain(snapshot, plan.lanes) == 10
    assert load_distance(snapshot, plan.lanes) == 0


@pytest.mark.parametrize(("most", "together"), [(5.0, True), (1.0, False)])
def test_collocation_may_cost_balance_up_to_the_limit_and_no_further(most: float, together: bool) -> None:
    snapshot = ClusterSnapshot.of(
        load=[4] * 4, lane=[0, 1, 0, 1], capacity=[100, 100], traffic=[(0, 3, 5.0)], max_load_distance=most
    )
    plan = live(snapshot, [0, 1, 0, 0], Collocate())
    assert load_distance(snapshot, plan.lanes) == (4 if together else 0)
    assert bool(plan.lanes[0] == plan.lanes[3]) is together
    assert live(snapshot, [0, 1, 0, 0], Collocate(4.0)).lanes[3] == 0


@pytest.mark.parametrize(("most", "together"), [(10.0, True), (5.0, False)])
def test_albic_collocates_a_pair_in_a_running_stream_within_the_limit(most: float, together: bool) -> None:
    snapshot = ClusterSnapshot.of(
        load=[6, 0.1, 6, 0.1], operator=[0, 0, 1, 1], lane=[0, 1, 1, 0], capacity=[100, 100], traffic=[(0, 2, 5.0)],
        max_load_distance=most,
    )  # fmt: skip
    plan = planned(Albic(), snapshot)
    assert bool(plan.lanes[0] == plan.lanes[2]) is together
    wide = planned(Albic(max_load_distance=10.0), snapshot)
    assert wide.lanes[0] == wide.lanes[2]


def test_above_the_limit_of_load_distance_collocation_waits_for_balance() -> None:
    snapshot = ClusterSnapshot.of(load=[20] * 4, lane=[0, 0, 0, 1], capacity=[100, 100], traffic=[(0, 1, 1.0)])
    assert live(snapshot, [0, 0, 0, 0], Collocate()).lanes.tolist() == [0, 0, 0, 1]
    assert load_distance(snapshot, live(snapshot, [0, 1, 0, 1], Collocate()).lanes) == 0


@pytest.mark.parametrize("aim", ["traffic", 0.9, Collocate(100.0)])
def test_no_gain_of_traffic_overloads_a_lane_more_than_it_is(aim: Aim) -> None:
    snapshot = ClusterSnapshot.of(load=[6, 6, 1], lane=[0, 1, 1], capacity=[10, 10], traffic=[(0, 1, 9.0)])
    assert not live(snapshot, [1, 1, 1], aim).moved(snapshot).size
    crowded = ClusterSnapshot.of(load=[6, 6, 1, 1], lane=[0, 0, 0, 1], capacity=[10, 9], traffic=[(0, 3, 9.0)])
    loads = lane_loads(crowded, live(crowded, [0, 1, 0, 0], aim).lanes)
    assert loads.tolist() == [8, 6]


@pytest.mark.parametrize("aim", ["balance", "traffic", Collocate(5.0)])
def test_to_relieve_one_of_two_hot_lanes_is_better_by_any_objective(aim: Aim) -> None:
    """The load distance, and the most that a lane is above its capacity, are those of the other one as before."""
    snapshot = ClusterSnapshot.of(load=[5] * 10, lane=[0] * 5 + [1] * 5, capacity=[20] * 4)
    plan = live(snapshot, [0, 0, 0, 0, 2, 1, 1, 1, 1, 1], aim)
    assert plan.moved(snapshot).tolist() == [4]
    roomy = ClusterSnapshot.of(load=[5] * 10, lane=[0] * 5 + [1] * 5, capacity=[50] * 4)
    assert live(roomy, [0, 0, 0, 0, 2, 1, 1, 1, 1, 1], Collocate()).moved(roomy).tolist() == [4]


# Limits.


def test_the_most_useful_moves_are_kept_within_the_budget() -> None:
    snapshot = ClusterSnapshot.of(
        load=[5, 4, 1, 1, 1], lane=[0] * 5, state=[2, 2, 2, 2, 2], capacity=[20, 21], max_migration=4.0
    )
    plan = live(snapshot, [0, 1, 0, 1, 1])
    assert plan.lanes.tolist()[1] == 1
    assert migration_cost(snapshot, plan.lanes) == 4.0


def test_slots_on_draining_lanes_leave_before_others_move() -> None:
    snapshot = ClusterSnapshot.of(
        load=[5, 1, 1], lane=[0, 0, 2], state=[1, 1, 1], capacity=[9] * 3, draining=[False, False, True], max_moves=1
    )
    assert live(snapshot, [0, 1, 1]).lanes.tolist() == [0, 0, 1]


def test_a_draining_lane_takes_its_share_of_the_budget_and_no_more() -> None:
    draining = [False, False, True]
    snapshot = ClusterSnapshot.of(
        load=[4, 4, 4, 0.1], lane=[0, 0, 0, 2], capacity=[20, 21, 20], draining=draining, max_moves=2
    )
    moved = live(snapshot, [0, 1, 1, 1]).moved(snapshot).tolist()
    assert moved in ([1, 3], [2, 3])
    idle = ClusterSnapshot.of(load=[4, 4, 0], lane=[0, 0, 2], capacity=[20] * 3, draining=draining, max_moves=1)
    assert live(idle, [0, 1, 1]).moved(idle).tolist() == [2]


def test_moves_that_keep_a_lane_within_its_capacity_are_the_last_to_be_given_up() -> None:
    snapshot = ClusterSnapshot.of(load=[6, 6, 1], lane=[0, 0, 1], capacity=[10, 11], traffic=[(1, 2, 5.0)], max_moves=1)
    assert live(snapshot, [1, 0, 0], "traffic").lanes.tolist() == [1, 0, 1]


@pytest.mark.parametrize("limit", [0.0, 1e-300])
def test_a_budget_of_nothing_is_kept_though_sums_of_states_do_not_cancel(limit: float) -> None:
    snapshot = ClusterSnapshot.of(
        load=[1, 2, 3, 4], lane=[0] * 4, state=[0.1, 0.2, 0.3, 0.0], capacity=[20, 21], max_migration=limit
    )
    assert live(snapshot, [1, 1, 1, 0]).lanes.tolist() == [0] * 4
    assert live(snapshot, [0, 0, 0, 1]).lanes.tolist() == [0, 0, 0, 1]


def test_a_budget_that_is_used_up_to_its_last_digit_is_kept() -> None:
    snapshot = ClusterSnapshot.of(load=[1] * 6, lane=[0] * 6, state=[0.1] * 6, capacity=[20, 20], max_migration=0.3)
    plan = live(snapshot, [1, 1, 1, 0, 0, 0])
    assert migration_cost(snapshot, plan.lanes) > 0.3
    assert len(plan.moved(snapshot)) == 3


def test_where_only_moves_count_the_most_useful_ones_stay_however_large() -> None:
    snapshot = ClusterSnapshot.of(load=[6, 1, 1, 8], lane=[0] * 4, state=[9, 1, 1, 1], capacity=[20, 21], max_moves=1)
    assert live(snapshot, [1, 1, 1, 0]).lanes.tolist() == [1, 0, 0, 0]


def test_where_both_limits_count_each_is_spent_by_its_share() -> None:
    limits = {"max_moves": 2, "max_migration": 10.0}
    snapshot = ClusterSnapshot.of(load=[4, 3, 3, 10], lane=[0] * 4, state=[10, 1, 1, 1], capacity=[50, 51], **limits)
    assert live(snapshot, [1, 1, 1, 0]).lanes.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("limits", [Limits(max_moves=3), Limits(max_migration=2.5)])
def test_large_plans_are_brought_within_the_budget_in_few_rounds(
    limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []
    harm = module._harm
    monkeypatch.setattr(module, "_harm", lambda *given: rounds.append(1) or harm(*given))
    snapshot = random_problem(0, slots=5_000, lanes=8).within(limits)
    plan = live(snapshot, chance(1).integers(0, 8, 5_000))
    assert over_budget(snapshot, plan.lanes) == ""
    assert len(rounds) <= ROUNDS + 1


# Moves that bring nothing, and plans that are no better.


def test_moves_that_bring_nothing_are_left_out() -> None:
    snapshot = ClusterSnapshot.of(load=[6, 2, 2, 2, 0, 0], lane=[0, 0, 1, 1, 0, 1], state=[1] * 6, capacity=[10, 10])
    plan = live(snapshot, [0, 1, 1, 1, 1, 0])
    assert plan.lanes.tolist() == [0, 1, 1, 1, 0, 1]


def test_of_thousands_of_moves_those_that_bring_nothing_are_left_out_too() -> None:
    idle = 4_000
    snapshot = ClusterSnapshot.of(
        load=[5, 5] + [0] * idle, lane=[0] * (idle + 2), capacity=[10, 20], state=[1] * (idle + 2)
    )
    plan = live(snapshot, [0, 1] + [1] * idle)
    assert plan.lanes[1] == 1
    assert len(plan.moved(snapshot)) < 20


def test_a_plan_that_is_worse_than_the_present_is_refused() -> None:
    snapshot = ClusterSnapshot.of(load=[2, 2, 2], lane=[0, 1, 1], capacity=[10, 10])
    plan = live(snapshot, [0, 0, 0])
    assert not plan.moved(snapshot).size
    assert plan.why == REFUSED
    assert not plan.detail


def test_a_slot_without_a_lane_does_not_let_a_bad_plan_through() -> None:
    snapshot = ClusterSnapshot.of(load=[2, 2, 2, 2, 1], lane=[0, 0, 1, 1, UNPLACED], state=[1] * 5, capacity=[10, 10])
    plan = live(snapshot, [0, 0, 0, 0, 0])
    assert migrated(snapshot, plan.lanes).size == 0
    assert [move.why for move in plan.moves(snapshot)] == ["it had no lane"]


def test_a_first_placement_is_the_planner_s_own() -> None:
    snapshot = ClusterSnapshot.of(load=[0] * 8, operator=[0] * 4 + [1] * 4, capacity=[10] * 3, groups=[(0, 1, 8.0)])
    for planner in (Bootstrap(), TopDown(), Milp()):
        answer = planner.plan(snapshot)
        assert isinstance(answer, Plan)
        assert planned(planner, snapshot).lanes.tolist() == answer.lanes.tolist()


def test_a_draining_lane_does_not_let_a_bad_plan_through() -> None:
    draining = [False, False, True]
    snapshot = ClusterSnapshot.of(load=[2, 2, 2, 2, 1], lane=[0, 0, 1, 1, 2], capacity=[10] * 3, draining=draining)
    plan = live(snapshot, [0, 0, 0, 0, 0])
    assert plan.moved(snapshot).tolist() == [4]
    assert plan.why == REFUSED
    assert "lane 2 is draining" in next(plan.moves(snapshot)).why


def test_a_draining_lane_is_emptied_of_slots_without_load_too() -> None:
    snapshot = ClusterSnapshot.of(load=[2, 2, 0], lane=[0, 1, 2], capacity=[9] * 3, draining=[False, False, True])
    assert live(snapshot, [0, 1, 2]).lanes[2] != 2


def test_what_a_planner_moves_to_a_draining_lane_goes_to_another_if_at_all() -> None:
    snapshot = ClusterSnapshot.of(load=[2, 2, 1], lane=[0, 0, 0], capacity=[9] * 3, draining=[False, False, True])
    assert live(snapshot, [0, 1, 2]).lanes.tolist() == [0, 1, 0]
    assert live(snapshot, [0, 0, 2]).lanes.tolist() == [0, 0, 1]


# Names of lanes, and reasons.


def test_lanes_are_renamed_so_that_little_moves() -> None:
    snapshot = ClusterSnapshot.of(load=[4, 1, 2, 3], lane=[0, 0, 0, 1], state=[5, 1, 1, 1], capacity=[10, 10])
    plan = live(snapshot, [1, 1, 0, 0])
    assert plan.lanes.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("state", [0.0, 1e-9, 1.0])
def test_lanes_are_renamed_so_that_few_move_whatever_state_is_counted_in(state: float) -> None:
    snapshot = ClusterSnapshot.of(load=[1] * 4, lane=[0, 0, 0, 1], state=[state] * 4, capacity=[10, 10])
    assert live(snapshot, [1, 1, 0, 0]).lanes.tolist() == [0, 0, 1, 1]


def test_little_state_counts_more_than_many_slots_without_any() -> None:
    snapshot = ClusterSnapshot.of(load=[1] * 3, lane=[0] * 3, state=[0, 0, 1e-8], capacity=[10, 10])
    assert relabelled(snapshot, np.array([1, 1, 0])).tolist() == [1, 1, 0]


def test_lanes_of_other_capacity_keep_their_names() -> None:
    snapshot = ClusterSnapshot.of(load=[8, 2], lane=[0, 1], capacity=[10, 40])
    assert live(snapshot, [1, 0]).lanes.tolist() == [1, 0]


def reasons_of(snapshot: ClusterSnapshot, plan: Plan) -> Mapping[int, str]:
    return {move.slot: move.why for move in plan.moves(snapshot)}


def test_a_plan_that_is_taken_as_it_is_keeps_all_that_its_planner_says_of_it() -> None:
    snapshot = ClusterSnapshot.of(load=[2, 2], lane=[0, 0], capacity=[10, 10])
    plan = live(snapshot, [0, 1])
    assert reasons_of(snapshot, plan) == {1: "lane 0 was full"}
    assert plan.detail == {"bound": 1.0}


def test_a_plan_that_was_changed_has_reasons_that_are_true_of_it() -> None:
    snapshot = ClusterSnapshot.of(load=[4, 1, 2, 3], lane=[0, 0, 0, 1], capacity=[10, 10])
    renamed = live(snapshot, [1, 1, 0, 0])
    assert reasons_of(snapshot, renamed) == {2: "lane 0 carried 70 % and lane 1 30 % with a mean of 50 %"}
    assert not renamed.detail
    trimmed = live(snapshot.within(Limits(max_moves=1)), [1, 0, 1, 1])
    assert list(reasons_of(snapshot, trimmed).values()) == ["lane 0 carried 70 % and lane 1 30 % with a mean of 50 %"]
    assert not trimmed.detail


def test_the_reason_of_a_move_for_traffic_is_its_traffic() -> None:
    snapshot = ClusterSnapshot.of(load=[1] * 3, lane=[0, 1, 0], capacity=[10] * 3, traffic=[(0, 1, 4.0), (0, 2, 1.0)])
    plan = live(snapshot, [2, 2, 2], "traffic")
    assert reasons_of(snapshot, plan) == {
        1: "lane 1 carried 10 % and lane 0 20 % with a mean of 10 %; "
        "4 of its traffic is beside it there, where it was 0 would be"
    }


@pytest.mark.parametrize("planner", [Hotspot(), Milp()])
def test_no_move_of_a_planner_of_balance_has_the_reason_that_nothing_moves(planner: Planner) -> None:
    for seed in range(5):
        snapshot = random_problem(seed, slots=20, lanes=4).within(Limits(max_moves=2))
        whys = reasons_of(snapshot, planned(planner, snapshot)).values()
        assert all("lane" in why for why in whys)
