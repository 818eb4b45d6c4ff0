"""The MILP against brute force, its budget, draining lanes, sets of slots, and large problems."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import ProblemError
from trimtab.planners.metrics import load_distance, measure, missing
from trimtab.planners.milp import Milp
from trimtab.planners.milp_bound import distance_bound
from trimtab.planners.milp_problem import Allowance, Levelling, SlotSet, levelling
from trimtab.planners.optimal import Optimal
from trimtab.planners.plan import Infeasible, Plan
from trimtab.planners.snapshot import ClusterSnapshot

EXACT = Milp(gap=0.0)


def planned(snapshot: ClusterSnapshot, planner: Milp = EXACT) -> Plan:
    plan = planner.plan(snapshot)
    assert isinstance(plan, Plan)
    return plan


@st.composite
def small_problems(draw: st.DrawFn) -> ClusterSnapshot:
    slots, lanes = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    draining = draw(st.lists(st.booleans(), min_size=lanes, max_size=lanes))
    draining[0] = False
    whole = st.integers(0, 20)
    column = st.lists(whole, min_size=slots, max_size=slots)
    return ClusterSnapshot.of(
        load=draw(column),
        state=draw(column),
        lane=draw(st.lists(st.integers(-1, lanes - 1), min_size=slots, max_size=slots)),
        capacity=draw(st.lists(st.sampled_from([10, 20, 40]), min_size=lanes, max_size=lanes)),
        draining=draining,
        max_migration=draw(st.none() | st.integers(0, 40)),
        max_moves=draw(st.none() | st.integers(0, 3)),
    )


def allowed(problem: Levelling) -> list[np.ndarray]:
    """Every placement within the budget that puts nothing on a draining lane."""
    choices = [
        [lane for lane in range(problem.lanes) if not problem.draining[lane] or lane == home]
        for home in problem.home.tolist()
    ]
    placements = [np.array(each, np.int64) for each in product(*choices)]
    return [each for each in placements if problem.affords(each)]


@given(small_problems())
@settings(max_examples=60, deadline=None)
def test_it_is_as_good_as_brute_force_in_lexicographic_order(snapshot: ClusterSnapshot) -> None:
    problem = levelling(snapshot)
    assert isinstance(problem, Levelling)
    plan = planned(snapshot)
    best = min(problem.rank(each) for each in allowed(problem))
    # The last two are compared as one sum in which the number of moves breaks ties only.
    assert problem.rank(plan.lanes)[:4] == pytest.approx(best[:4], abs=1e-4)
    assert problem.affords(plan.lanes)


@given(small_problems())
@settings(max_examples=60, deadline=None)
def test_no_placement_is_below_the_bound(snapshot: ClusterSnapshot) -> None:
    problem = levelling(snapshot)
    assert isinstance(problem, Levelling)
    least = min(problem.rank(each)[0] for each in allowed(problem))
    assert distance_bound(problem) <= least + 1e-9
    assert planned(snapshot, Milp()).detail["bound"] <= least + 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_a_dozen_slots_are_as_level_as_the_optimum_and_known_to_be(seed: int) -> None:
    load = np.random.default_rng(seed).lognormal(2, 0.7, 12)
    snapshot = ClusterSnapshot.of(load=load, lane=np.arange(12) % 3, capacity=[100] * 3)
    best = Optimal("balance").plan(snapshot)
    assert isinstance(best, Plan)
    detail = planned(snapshot, Milp()).detail
    assert detail["distance"] == pytest.approx(best.detail["load_distance"], abs=Milp().gap)
    assert detail["gap"] <= Milp().gap


def test_the_only_move_is_not_spent_on_draining_when_balance_needs_it() -> None:
    """The greedy start drains the idle slot first; the program has to be free to take that back."""
    snapshot = ClusterSnapshot.of(
        load=[1, 0], lane=[1, 2], capacity=[20, 10, 10], draining=[False, False, True], max_moves=1
    )
    detail = planned(snapshot).detail
    assert detail["distance"] == detail["bound"] == pytest.approx(10 / 3)


def test_slots_without_load_level_nothing_in_the_bound() -> None:
    snapshot = ClusterSnapshot.of(load=[0, 1], lane=[0, 1], capacity=[10, 10, 20], max_moves=1)
    problem = levelling(snapshot)
    assert isinstance(problem, Levelling)
    assert distance_bound(problem) == pytest.approx(2.5) == planned(snapshot).detail["distance"]


def test_upper_and_lower_deviation_are_both_tight() -> None:
    """One lane must exceed the mean by 30 points; the other two still share the rest evenly (the paper's d_u, d_l)."""
    plan = planned(ClusterSnapshot.of(load=[6, 1, 1, 1], lane=[0, 1, 1, 1], capacity=[10, 10, 10]))
    assert sorted(np.bincount(plan.lanes, minlength=3).tolist()) == [1, 1, 2]


def test_a_lane_may_exceed_twice_the_mean() -> None:
    """Constraint (5) as printed would make this infeasible."""
    snapshot = ClusterSnapshot.of(load=[9, 1], lane=[0, 0], capacity=[10, 10, 10])
    assert load_distance(snapshot, planned(snapshot).lanes) == pytest.approx(90 - 100 / 3)


def test_a_draining_lane_is_emptied_though_balance_does_not_ask_for_it() -> None:
    snapshot = ClusterSnapshot.of(load=[4, 4, 0], lane=[0, 1, 2], capacity=[10] * 3, draining=[False, False, True])
    loaded = ClusterSnapshot.of(load=[4, 4, 2], lane=[0, 1, 2], capacity=[10] * 3, draining=[False, False, True])
    assert planned(loaded).lanes[2] in (0, 1)
    idle = planned(snapshot).lanes
    assert idle[:2].tolist() == [0, 1] and idle[2] in (0, 1)


def test_the_mean_is_rounded_up_only_in_the_papers_mode() -> None:
    snapshot = ClusterSnapshot.of(load=[1.05, 1.0], lane=[0, 1], capacity=[10, 10])
    assert planned(snapshot).detail["distance"] == pytest.approx(0.25)
    assert planned(snapshot, Milp(paper_mean=True)).detail["distance"] == pytest.approx(1.0)


def test_lanes_of_unlike_capacity_are_level_by_utilisation() -> None:
    snapshot = ClusterSnapshot.of(load=[1] * 6, lane=[0] * 6, capacity=[10, 20])
    assert np.bincount(planned(snapshot).lanes).tolist() == [2, 4]


def test_slots_without_a_lane_move_for_nothing() -> None:
    snapshot = ClusterSnapshot.of(load=[2, 2], state=[5, 5], capacity=[10, 10], max_migration=0, max_moves=0)
    assert sorted(planned(snapshot).lanes.tolist()) == [0, 1]


def test_an_overloaded_cluster_gets_the_most_level_plan() -> None:
    snapshot = ClusterSnapshot.of(load=[30, 30, 30, 30], lane=[0, 0, 0, 0], capacity=[10, 10])
    plan = planned(snapshot)
    assert plan.detail["distance"] == pytest.approx(0)
    assert "is missing" in missing(snapshot, plan.lanes)


def test_sets_move_as_one_and_pinned_ones_to_their_lane() -> None:
    snapshot = ClusterSnapshot.of(load=[3, 3, 2, 2, 1, 1], lane=[0] * 6, capacity=[10, 10])
    sets = [SlotSet((0, 1)), SlotSet((2, 4), lane=1)]
    plan = EXACT.plan_sets(snapshot, sets)
    assert isinstance(plan, Plan)
    assert plan.lanes[0] == plan.lanes[1] and plan.lanes[2] == plan.lanes[4] == 1
    assert load_distance(snapshot, plan.lanes) == pytest.approx(0)


def test_sets_that_the_budget_cannot_bring_together_are_refused() -> None:
    apart = ClusterSnapshot.of(load=[1, 1], state=[5, 5], lane=[0, 1], capacity=[10, 10], max_migration=4)
    refusal = EXACT.plan_sets(apart, [SlotSet((0, 1))])
    assert isinstance(refusal, Infeasible) and refusal.missing.endswith(".")


def test_every_move_says_how_loaded_the_lanes_were() -> None:
    snapshot = ClusterSnapshot.of(load=[5, 5], lane=[0, 0], capacity=[10, 10], max_moves=1)
    (move,) = planned(snapshot).moves(snapshot)
    assert move.why == f"lane 0 carried 100 % and lane {move.target} 0 % with a mean of 50 %"


@pytest.mark.parametrize("budget", [14, 20, None])
def test_300_slots_on_20_lanes_within_a_point(budget: int | None) -> None:
    snapshot = scattered(300, 20, budget)
    plan = planned(snapshot, Milp(rounds=4))
    figures = measure(snapshot, plan.lanes)
    assert figures.load_distance < 1 and figures.feasible
    assert figures.load_distance == pytest.approx(plan.detail["bound"] + plan.detail["gap"])


def test_10_000_slots_on_100_lanes() -> None:
    snapshot = scattered(10_000, 100, 300)
    figures = measure(snapshot, planned(snapshot, Milp()).lanes)
    assert figures.load_distance < 0.1 and figures.feasible


def test_a_tight_budget_goes_to_the_worst_lanes() -> None:
    """Spilling spends it on levelling a lane or two wholly; the start has to be tried without."""
    random = np.random.default_rng(0)
    load, lane = random.lognormal(0, 0.5, 300), random.integers(0, 20, 300)
    snapshot = ClusterSnapshot.of(load=load * 1000 / load.sum(), lane=lane, capacity=[100] * 20, max_moves=16)
    assert planned(snapshot, Milp(rounds=0)).detail["distance"] < 4


def scattered(slots: int, lanes: int, budget: int | None) -> ClusterSnapshot:
    load = np.random.default_rng(3).lognormal(0, 0.5, slots)
    load *= 50 * lanes / load.sum()
    lane = np.arange(slots) % lanes
    return ClusterSnapshot.of(load=load, state=load, lane=lane, capacity=[100] * lanes, max_moves=budget)


def test_without_time_the_start_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("there is no time for this")

    monkeypatch.setattr("trimtab.planners.milp_search.solve", never)
    monkeypatch.setattr("trimtab.planners.milp_search.respend", never)
    snapshot = scattered(60, 20, budget=3)
    assert 0 < len(planned(snapshot, Milp(time_limit=0)).moved(snapshot)) <= 3


def test_searches_without_the_solver_end_with_their_exchanges() -> None:
    snapshot, allowance = scattered(300, 20, budget=12), Allowance(5.0, exchanges=30)
    plan = Milp().plan_sets(snapshot, (), allowance)
    assert isinstance(plan, Plan) and allowance.exchanges == 0
    assert load_distance(snapshot, plan.lanes) < load_distance(snapshot, snapshot.lane)


@pytest.mark.parametrize("options", [{"time_limit": -1.0}, {"gap": float("nan")}, {"rounds": -1}, {"seed": -1}])
def test_options_that_make_no_sense_are_refused_by_name(options: dict[str, float]) -> None:
    with pytest.raises(ProblemError, match=rf"options\.{next(iter(options))} is"):
        Milp(**options)  # type: ignore[arg-type]
