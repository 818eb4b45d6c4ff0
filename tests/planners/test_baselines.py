"""Flux, PoTC and COLA: what the studies rely on."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.errors import ProblemError
from trimtab.planners.cola import Cola
from trimtab.planners.flux import Flux
from trimtab.planners.metrics import imc_gain, lane_loads, load_distance, measure
from trimtab.planners.partition import partition
from trimtab.planners.plan import Plan, Planner
from trimtab.planners.potc import Potc, candidates
from trimtab.planners.snapshot import ClusterSnapshot, Traffic


def lanes_of(planner: Planner, snapshot: ClusterSnapshot) -> np.ndarray:
    plan = planner.plan(snapshot)
    assert isinstance(plan, Plan)
    return plan.lanes


def some(slots: int, lanes: int, seed: int = 0, **limits: float) -> ClusterSnapshot:
    random = np.random.default_rng(seed)
    load, lane = random.lognormal(0, 0.5, slots), random.integers(0, lanes, slots)
    return ClusterSnapshot.of(load=load, state=np.ones(slots), lane=lane, capacity=[slots] * lanes, **limits)


def test_flux_moves_the_largest_slot_that_improves() -> None:
    """6 of 10 may go to a lane with 0: the greater load falls from 10 to 6. 10 would not improve anything."""
    snapshot = ClusterSnapshot.of(load=[6, 3, 1], lane=[0, 0, 0], capacity=[10, 10], max_moves=1)
    assert lanes_of(Flux(), snapshot).tolist() == [1, 0, 0]
    alone = ClusterSnapshot.of(load=[6], lane=[0], capacity=[10, 10])
    assert lanes_of(Flux(), alone).tolist() == [0]


@pytest.mark.parametrize("seed", range(5))
def test_flux_never_raises_the_greatest_load_and_keeps_its_budget(seed: int) -> None:
    snapshot = some(60, 6, seed, max_moves=7)
    figures = measure(snapshot, lanes_of(Flux(), snapshot))
    assert figures.max_load <= measure(snapshot, snapshot.lane).max_load and figures.moves <= 7


def test_flux_keeps_a_budget_by_cost() -> None:
    snapshot = ClusterSnapshot.of(load=[4, 3, 1], state=[9, 2, 9], lane=[0, 0, 0], capacity=[9, 9], max_migration=5)
    assert lanes_of(Flux(), snapshot).tolist() == [0, 1, 0]


def test_flux_empties_draining_lanes_first() -> None:
    snapshot = ClusterSnapshot.of(
        load=[1, 9, 1], lane=[0, 1, 1], capacity=[10, 10, 10], draining=[True, False, False], max_moves=1
    )
    assert lanes_of(Flux(), snapshot).tolist() == [2, 1, 1]


def test_every_slot_has_two_candidates_that_stay_whatever_its_load() -> None:
    snapshot = some(500, 7)
    first, second = candidates(snapshot, 3)
    assert (first != second).all() and set(first.tolist()) == set(range(7)) == set(second.tolist())
    lanes = lanes_of(Potc(seed=3), snapshot)
    assert ((lanes == first) | (lanes == second)).all()
    assert (candidates(some(500, 7, seed=9), 3)[0] == first).all()


def test_two_choices_are_better_than_one() -> None:
    snapshot = some(2000, 20)
    one = load_distance(snapshot, candidates(snapshot, 0)[0])
    assert load_distance(snapshot, lanes_of(Potc(), snapshot)) < one / 2


def test_cola_cuts_little_and_is_blind_to_where_slots_are() -> None:
    pairs = [(slot, slot + 20, 1.0) for slot in range(20)]
    operator = [0] * 20 + [1] * 20
    snapshot = ClusterSnapshot.of(load=[1] * 40, operator=operator, capacity=[20] * 4, traffic=pairs)
    lanes = lanes_of(Cola(), snapshot)
    assert imc_gain(snapshot, lanes) == 20
    assert lane_loads(snapshot, lanes).tolist() == [10] * 4
    assert (lanes_of(Cola(), snapshot.at(np.zeros(40, np.int64))) == lanes).all()


def test_colas_parts_follow_capacities() -> None:
    snapshot = ClusterSnapshot.of(load=[1] * 300, capacity=[100, 200, 300])
    assert lane_loads(snapshot, lanes_of(Cola(), snapshot)) == pytest.approx([50, 100, 150], abs=3)


def test_partitions_of_hardly_any_vertices() -> None:
    nothing = Traffic.of()
    assert partition(3, np.zeros(0), nothing).tolist() == []
    assert partition(3, np.ones(2), nothing).tolist() == [0, 1]
    assert partition(1, np.ones(2), nothing).tolist() == [0, 0]
    assert set(partition(2, np.zeros(6), nothing).tolist()) == {0, 1}


@pytest.mark.parametrize("planner", [Potc, Cola])
def test_a_negative_seed_is_refused(planner: type[Potc] | type[Cola]) -> None:
    with pytest.raises(ProblemError, match=r"options\.seed is -1"):
        planner(seed=-1)
