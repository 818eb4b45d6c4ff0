"""The searches that `auto` and the live wrapper stand on: levelling, gathering, evacuation."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.planners.arrangement import Arrangement
from trimtab.planners.bounds import Bounds
from trimtab.planners.checks import random_problem
from trimtab.planners.gather import FEW, gather
from trimtab.planners.level import evacuate, level
from trimtab.planners.metrics import imc_gain, lane_loads, load_distance, migrated, migration_cost
from trimtab.planners.snapshot import ClusterSnapshot, Ints, Limits
from trimtab.ports import chance


def consistent(arrangement: Arrangement) -> None:
    """What is kept up to date equals what it is by definition."""
    snapshot, lanes = arrangement.snapshot, arrangement.lanes
    assert arrangement.loads == pytest.approx(lane_loads(snapshot, lanes))
    assert arrangement.moves == len(migrated(snapshot, lanes))
    assert arrangement.cost == pytest.approx(migration_cost(snapshot, lanes))


@given(st.integers(0, 10_000), st.lists(st.tuples(st.integers(0, 23), st.integers(0, 3)), max_size=40))
def test_an_arrangement_keeps_its_figures_through_any_moves(seed: int, moves: list[tuple[int, int]]) -> None:
    snapshot = random_problem(seed, slots=24, lanes=4)
    arrangement = Arrangement(snapshot, snapshot.lane)
    for slot, lane in moves:
        before, pull = imc_gain(snapshot, arrangement.lanes), arrangement.pull(slot)
        gain = pull[lane] - pull[arrangement.lanes[slot]]
        charge = arrangement.charge(np.array([slot]), lane)
        was = arrangement.moves, arrangement.cost
        arrangement.move(slot, lane)
        assert imc_gain(snapshot, arrangement.lanes) == pytest.approx(before + gain)
        assert (arrangement.moves, arrangement.cost) == pytest.approx((was[0] + charge[0][0], was[1] + charge[1][0]))
    consistent(arrangement)
    assert arrangement.pull_to(snapshot.lane) == pytest.approx(
        [arrangement.pull(slot)[snapshot.lane[slot]] for slot in range(len(snapshot))]
    )


@pytest.mark.parametrize("seed", range(5))
def test_levelling_comes_close_to_the_mean(seed: int) -> None:
    snapshot = random_problem(seed, slots=300, lanes=20)
    arrangement = Arrangement(snapshot, snapshot.lane)
    level(arrangement)
    heaviest = 100 * snapshot.load.max() / 100 - snapshot.mean
    assert load_distance(snapshot, arrangement.lanes) <= max(0.1, heaviest + 1e-9)
    consistent(arrangement)


def least_distance(snapshot: ClusterSnapshot) -> float:
    lanes = product(range(snapshot.lanes), repeat=len(snapshot))
    return min(load_distance(snapshot, np.array(each)) for each in lanes)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 99))
def test_levelling_never_makes_it_worse_and_is_often_best(loads: list[int], seed: int) -> None:
    snapshot = ClusterSnapshot.of(load=loads, lane=chance(seed).integers(0, 3, len(loads)), capacity=[30, 30, 15])
    arrangement = Arrangement(snapshot, snapshot.lane)
    level(arrangement)
    found = load_distance(snapshot, arrangement.lanes)
    assert least_distance(snapshot) - 1e-9 <= found <= load_distance(snapshot, snapshot.lane) + 1e-9


def test_levelling_gets_far_with_a_small_budget() -> None:
    snapshot = random_problem(3, slots=300, lanes=20)
    start = load_distance(snapshot, snapshot.lane)
    found = []
    for budget in (0, 5, 10, 20, 40):
        arrangement = Arrangement(snapshot.within(Limits(max_moves=budget)), snapshot.lane)
        level(arrangement)
        assert arrangement.moves <= budget
        found.append(load_distance(snapshot, arrangement.lanes))
    assert found[0] == start
    assert found == sorted(found, reverse=True)
    assert found[-1] < 1


def test_evacuation_empties_draining_lanes_and_places_what_has_no_lane() -> None:
    snapshot = replace(random_problem(1, slots=24, lanes=4), draining=np.array([False, True, False, False]))
    snapshot = snapshot.at(np.where(np.arange(24) % 5 == 0, -1, snapshot.lane))
    for attracted in (False, True):
        arrangement = Arrangement(snapshot, snapshot.lane)
        evacuate(arrangement, attracted)
        assert (arrangement.lanes >= 0).all()
        assert not snapshot.draining[arrangement.lanes].any()
        consistent(arrangement)


def test_slots_without_load_do_not_all_end_on_one_lane() -> None:
    snapshot = ClusterSnapshot.of(load=[0] * 9, capacity=[10, 10, 20])
    arrangement = Arrangement(snapshot, snapshot.lane)
    evacuate(arrangement)
    assert np.bincount(arrangement.lanes).tolist() == [3, 3, 3]


def test_an_arrangement_that_is_back_where_it_was_costs_nothing() -> None:
    snapshot = ClusterSnapshot.of(load=[1] * 3, lane=[0] * 3, state=[0.1, 0.2, 0.3], capacity=[9, 9], max_migration=0)
    arrangement = Arrangement(snapshot, snapshot.lane)
    for lane in (1, 0):
        for slot in range(3):
            arrangement.move(slot, lane)
    assert arrangement.cost == 0
    assert arrangement.within_budget


def best_gain(snapshot: ClusterSnapshot) -> float:
    fitting = []
    for each in product(range(snapshot.lanes), repeat=len(snapshot)):
        lanes = np.array(each)
        if (lane_loads(snapshot, lanes) <= snapshot.capacity).all():
            fitting.append(imc_gain(snapshot, lanes))
    return max(fitting)


def random_graph(seed: int, slots: int) -> ClusterSnapshot:
    random = chance(seed)
    pairs = [(one, other, float(random.integers(0, 10))) for one in range(slots) for other in range(one + 1, slots)]
    load = random.integers(1, 5, slots)
    return ClusterSnapshot.of(load=load, capacity=[float(load.sum() // 2 + 2)] * 3, traffic=pairs)


@pytest.mark.parametrize("seed", range(8))
def test_gathering_finds_the_best_of_few_slots(seed: int) -> None:
    snapshot = random_graph(seed, slots=7)
    found = []
    for restart in range(3):
        arrangement = Arrangement(snapshot, snapshot.lane)
        evacuate(arrangement)
        gather(arrangement, Bounds.capacities(snapshot), restart)
        assert (arrangement.loads <= snapshot.capacity).all()
        consistent(arrangement)
        found.append(imc_gain(snapshot, arrangement.lanes))
    assert max(found) == pytest.approx(best_gain(snapshot))


def test_gathering_many_slots_brings_partners_together() -> None:
    pairs = FEW
    lanes: Ints = chance(5).integers(0, 4, 2 * pairs)
    snapshot = ClusterSnapshot.of(
        load=np.ones(2 * pairs),
        lane=lanes,
        state=np.ones(2 * pairs),
        capacity=[0.3 * 2 * pairs] * 4,
        traffic=[(slot, slot + pairs, 1.0) for slot in range(pairs)],
    )
    arrangement = Arrangement(snapshot, lanes)
    gather(arrangement, Bounds.capacities(snapshot))
    assert imc_gain(snapshot, arrangement.lanes) > 0.95 * pairs
    assert (arrangement.loads <= snapshot.capacity).all()
    bounded = Arrangement(snapshot.within(Limits(max_moves=10)), lanes)
    gather(bounded, Bounds.capacities(snapshot))
    assert bounded.moves == 10
