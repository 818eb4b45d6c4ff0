"""The exact optimum against trying every placement, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from tests.planners.small_flows import check_plan, greatest_gain, least_distance, small_flows

from trimtab.errors import ProblemError
from trimtab.planners.metrics import imc_gain, load_distance
from trimtab.planners.optimal import Optimal
from trimtab.planners.plan import Infeasible, Plan
from trimtab.planners.snapshot import ClusterSnapshot


@given(small_flows(slots=6))
def test_no_placement_within_capacities_gains_more(flow: ClusterSnapshot) -> None:
    answer = Optimal().plan(flow)
    check_plan(flow, answer)
    best = greatest_gain(flow) if flow.staying.size else None
    if isinstance(answer, Plan):
        assert imc_gain(flow, answer.lanes) == pytest.approx(best)
    else:
        assert best is None


@given(small_flows(slots=6))
def test_no_placement_is_more_level(flow: ClusterSnapshot) -> None:
    answer = Optimal("balance").plan(flow)
    if isinstance(answer, Plan):
        assert np.isin(answer.lanes, flow.staying).all()
        assert load_distance(flow, answer.lanes) == pytest.approx(least_distance(flow))
    else:
        assert not flow.staying.size


def test_lanes_of_other_capacities_are_used_for_what_they_can_hold() -> None:
    flow = ClusterSnapshot.of(
        load=[4, 4, 3, 3], operator=[0, 1, 2, 3], capacity=[6, 8], groups=[(0, 1, 5.0), (2, 3, 5.0)]
    )
    answer = Optimal().plan(flow)
    assert isinstance(answer, Plan)
    assert answer.lanes.tolist() == [1, 1, 0, 0]
    assert answer.detail == {"imc_gain": 10.0}


def test_a_level_placement_of_an_overloaded_cluster() -> None:
    answer = Optimal("balance").plan(ClusterSnapshot.of(load=[90, 80, 70, 60], capacity=[100, 100]))
    assert isinstance(answer, Plan)
    assert answer.detail == {"load_distance": 0.0}


def test_what_does_not_fit_is_said() -> None:
    heavy = Optimal().plan(ClusterSnapshot.of(load=[9, 1], capacity=[5, 5]))
    coarse = Optimal().plan(ClusterSnapshot.of(load=[3, 3, 3], capacity=[5, 5]))
    assert isinstance(heavy, Infeasible) and "Slot 0 with load 9" in heavy.missing
    assert isinstance(coarse, Infeasible) and "load 9, the lanes that stay have capacity 10" in coarse.missing


def test_hundreds_of_slots_are_few_when_they_are_alike() -> None:
    flow = ClusterSnapshot.of(load=[1] * 200, operator=[0] * 100 + [1] * 100, capacity=[110, 110], groups=[(0, 1, 1.0)])
    answer = Optimal().plan(flow)
    assert isinstance(answer, Plan)
    assert answer.detail["imc_gain"] == pytest.approx(55 * 55 / 10_000 + 45 * 45 / 10_000)


@pytest.mark.parametrize("objective", ["traffic", "balance"])
def test_too_large_an_instance_is_refused_with_the_limit(objective: str) -> None:
    flow = ClusterSnapshot.of(load=np.arange(40) + 1.0, capacity=[500, 500])
    answer = Optimal(objective).plan(flow)
    assert isinstance(answer, Infeasible)
    assert "an exact answer takes 262144 at most" in answer.missing


def test_any_number_of_unlike_slots_is_refused_in_a_sentence() -> None:
    answer = Optimal().plan(ClusterSnapshot.of(load=np.arange(20_000) + 1.0, capacity=[500, 500]))
    assert isinstance(answer, Infeasible)
    assert "2^20000 ways" in answer.missing


def test_the_limit_is_an_option() -> None:
    flow = ClusterSnapshot.of(load=[1.0, 2, 3], capacity=[5, 5])
    answer = Optimal(limit=10).plan(flow)
    assert isinstance(answer, Infeasible)
    assert answer.missing.endswith("options.limit is 10.")
    with pytest.raises(ProblemError, match=r"^options\.limit is 0: it has to be 1 or more"):
        Optimal(limit=0)


@pytest.mark.parametrize("load", [0.7, 0.1, 1e-6, 1e6])
def test_what_is_perfectly_level_is_found_whatever_the_sums_are_rounded_to(load: float) -> None:
    answer = Optimal("balance").plan(ClusterSnapshot.of(load=[load] * 12, capacity=[100, 100]))
    assert isinstance(answer, Plan)
    assert np.bincount(answer.lanes).tolist() == [6, 6]


def test_slots_that_are_alike_cost_no_more_memory_than_one_of_them() -> None:
    flow = ClusterSnapshot.of(
        load=[1.0] * 100_001, operator=[0] * 100_000 + [1], capacity=[90_000] * 2, groups=[(0, 1, 8.0)]
    )
    assert isinstance(Optimal(limit=10).plan(flow), Infeasible)
