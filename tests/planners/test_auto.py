"""`auto` beats each of the others on its own ground, and never leaves things worse."""

from __future__ import annotations

import pytest

from trimtab.errors import ProblemError
from trimtab.planners import Auto, ClusterSnapshot, Hotspot, Limits, Live, Milp, Plan, Planner, TopDown
from trimtab.planners.checks import random_problem
from trimtab.planners.objective import Objective, better, score


def planned(planner: Planner, snapshot: ClusterSnapshot) -> Plan:
    plan = planner.plan(snapshot)
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("objective", ["balance", "traffic", 0.3])
def test_the_answer_is_never_worse_than_the_placement_in_force(seed: int, objective: Objective) -> None:
    for limits in (Limits(), Limits(max_moves=4), Limits(max_migration=0)):
        snapshot = random_problem(seed, slots=10, lanes=3).within(limits)
        lanes = planned(Auto(objective), snapshot).lanes
        assert not better(score(snapshot, snapshot.lane, objective), score(snapshot, lanes, objective))


@pytest.mark.parametrize("seed", range(3))
def test_others_are_beaten_on_their_own_ground(seed: int) -> None:
    snapshot = random_problem(seed, slots=24, lanes=3)
    rivals: list[tuple[Objective, Planner]] = [("balance", Milp()), ("balance", Hotspot()), ("traffic", TopDown())]
    for objective, rival in rivals:
        ours, theirs = planned(Auto(objective), snapshot), planned(Live(rival, objective), snapshot)
        assert not better(score(snapshot, theirs.lanes, objective), score(snapshot, ours.lanes, objective))


def test_a_weight_trades_balance_for_traffic() -> None:
    snapshot = random_problem(1, slots=10, lanes=3)
    weights: list[Objective] = [0.0, 0.2, 0.8, 1.0]
    found = [score(snapshot, planned(Auto(weight), snapshot).lanes, "balance") for weight in weights]
    apart = [each[3] for each in found]
    assert apart == sorted(apart, reverse=True)
    assert found[0][1] < found[-1][1]


def test_slots_without_a_lane_are_placed_and_capacities_kept_for_traffic() -> None:
    snapshot = random_problem(2, slots=30, lanes=4, placed=False, load=0.9)
    plan = planned(Auto("traffic"), snapshot)
    assert score(snapshot, plan.lanes, "traffic")[1] == 0
    assert "topdown" in plan.why or "in force" in plan.why


def test_every_move_says_what_it_does_for_balance_and_traffic() -> None:
    snapshot = ClusterSnapshot.of(
        load=[3, 3, 3, 3], operator=[0, 0, 1, 1], lane=[0, 0, 0, 0], capacity=[10, 10], traffic=[(0, 2, 5.0)]
    )
    moves = list(planned(Auto(), snapshot).moves(snapshot))
    assert len(moves) == 2
    for move in moves:
        traffic = "5" if move.slot in (0, 2) else "0"
        assert "lane 0 carried 120 % and lane 1 0 %" in move.why
        assert f"{traffic} of its traffic is beside it there, where it was 0 would be" in move.why


@pytest.mark.parametrize("objective", [-0.1, 1.5])
def test_a_weight_outside_its_range_is_refused(objective: float) -> None:
    with pytest.raises(ProblemError, match=r"options\.objective"):
        Auto(objective)
