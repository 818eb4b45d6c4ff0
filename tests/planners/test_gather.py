"""Gathering traffic without paying for it in balance: bounds on both sides, exchanges, and sets that go as one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.planners import gather as module
from trimtab.planners import gather_tabu
from trimtab.planners.arrangement import Arrangement
from trimtab.planners.auto import Auto
from trimtab.planners.bounds import Bounds, Scales
from trimtab.planners.checks import random_problem
from trimtab.planners.gather import FEW, gather
from trimtab.planners.gather_sets import LARGEST, sets_inside_lanes
from trimtab.planners.gather_tabu import Tabu
from trimtab.planners.metrics import imc_gain, lane_loads, measure
from trimtab.planners.objective import RESOLUTION, better, score, spread, steps
from trimtab.planners.plan import Plan
from trimtab.planners.snapshot import ClusterSnapshot, Limits
from trimtab.ports import chance


def planned(snapshot: ClusterSnapshot) -> Plan:
    plan = Auto().plan(snapshot)
    assert isinstance(plan, Plan)
    return plan


@pytest.fixture(params=["few", "many"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small examples searched as they are, and as if they were large."""
    if request.param == "many":
        monkeypatch.setattr(module, "FEW", 0)
    return str(request.param)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.5, 30), st.floats(0.5, 10), st.booleans())
def test_no_lane_leaves_its_bounds_nor_the_budget(seed: int, distance: float, most: float, few: bool) -> None:
    snapshot = random_problem(seed, slots=24, lanes=4).within(Limits(max_moves=9))
    arrangement = Arrangement(snapshot, snapshot.lane)
    before = arrangement.loads.copy(), spread(snapshot, arrangement.loads), imc_gain(snapshot, snapshot.lane)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW", FEW if few else 0)
        gather(arrangement, Bounds.around_mean(snapshot, distance, most), seed)
    loads = lane_loads(snapshot, arrangement.lanes)
    assert (loads <= np.maximum(snapshot.mean + distance, before[0]) + 1e-9).all()
    assert (loads >= np.minimum(snapshot.mean - distance, before[0]) - 1e-9).all()
    assert spread(snapshot, loads) <= max(most, before[1]) + 1e-9
    assert imc_gain(snapshot, arrangement.lanes) >= before[2]
    assert arrangement.moves <= 9


def test_swaps_of_like_slots_are_made_on_lanes_that_are_perfectly_level(size: str) -> None:
    pairs, lanes = 10, 5
    load = np.append(np.full(2 * pairs, 10.0), np.full(2 * lanes, 5.0))
    lane = np.concatenate([np.arange(pairs) % lanes, np.arange(pairs) * 3 % lanes, np.repeat(np.arange(lanes), 2)])
    load[-1], load[-2] = 0.1, 9.9
    trap = (len(load) - 1, 0, 50.0)
    snapshot = ClusterSnapshot.of(
        load=load, lane=lane, capacity=[100.0] * lanes, traffic=[(i, i + pairs, 1.0) for i in range(pairs)] + [trap]
    )
    assert measure(snapshot, snapshot.lane).load_distance == pytest.approx(0)
    after = planned(snapshot).lanes
    assert measure(snapshot, after).load_distance == pytest.approx(0)
    assert (after[:pairs] == after[pairs : 2 * pairs]).all()


@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_many_slots_are_gathered_though_lanes_stay_as_level_as_they_can_be(sigma: float) -> None:
    random, slots, lanes = chance(1), 4 * FEW, 20
    half = slots // 2
    load = random.lognormal(0, sigma, slots)
    snapshot = ClusterSnapshot.of(
        load=load * 50 * lanes / load.sum(),
        lane=random.permutation(slots) % lanes,
        capacity=[100.0] * lanes,
        traffic=[(slot, slot + half, float(weight)) for slot, weight in enumerate(random.lognormal(0, 1, half))],
    )
    alone = ClusterSnapshot.of(load=snapshot.load, lane=snapshot.lane, capacity=snapshot.capacity)
    with_traffic, without = (measure(each, planned(each).lanes) for each in (snapshot, alone))
    assert steps(with_traffic.load_distance) <= steps(without.load_distance)
    assert with_traffic.collocation > 0.9


def test_a_set_goes_where_none_of_it_would_gain_alone(size: str) -> None:
    snapshot = ClusterSnapshot.of(
        load=[1, 1, 1, 8],
        lane=[0, 0, 0, 1],
        capacity=[8, 20],
        traffic=[(0, 1, 10.0), (1, 2, 10.0), (0, 3, 4.0), (1, 3, 4.0), (2, 3, 4.0)],
    )
    arrangement = Arrangement(snapshot, snapshot.lane)
    gather(arrangement, Bounds(np.zeros(2), np.array([7.0, 11.0])), patience=1)
    assert arrangement.lanes.tolist() == [1, 1, 1, 1]


def test_a_set_is_exchanged_for_slots_that_have_nothing_to_do_with_its_new_lane() -> None:
    """Five slots of a clique want to join their hub, whose lane is full; what comes back for them has no traffic."""
    clique = [(one, other, 9.0) for one in range(5) for other in range(one)]
    fillers = list(range(6, FEW + 50))
    snapshot = ClusterSnapshot.of(
        load=[1.0] * len([*range(6), *fillers]),
        lane=[0] * 5 + [1] + [slot % 2 for slot in fillers],
        capacity=[1000.0] * 2,
        traffic=[*clique, *((slot, 5, 5.0) for slot in range(5))],
    )
    arrangement = Arrangement(snapshot, snapshot.lane)
    loads = arrangement.loads.copy()
    # The hub may not come to them: it is the clique that has to go.
    gather(arrangement, Bounds(loads, loads))
    assert len(set(arrangement.lanes[:6].tolist())) == 1
    assert arrangement.loads.tolist() == loads.tolist()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_what_is_gathered_for_balance_never_costs_any(seed: int) -> None:
    snapshot = random_problem(seed, slots=20, lanes=4)
    arrangement = Arrangement(snapshot, snapshot.lane)
    before = score(snapshot, snapshot.lane, "balance")
    figures = measure(snapshot, snapshot.lane).load_distance, spread(snapshot, arrangement.loads)
    gather(arrangement, Bounds.around_mean(snapshot, *(RESOLUTION * steps(each) for each in figures)), seed)
    assert not better(before, score(snapshot, arrangement.lanes, "balance"))


def test_unevenness_grows_as_it_is_foretold() -> None:
    snapshot = random_problem(3, slots=20, lanes=4)
    arrangement = Arrangement(snapshot, snapshot.lane)
    for slot, lane in ((0, 1), (5, 3), (7, 0)):
        here, load = int(arrangement.lanes[slot]), float(snapshot.load[slot])
        if here == lane:
            continue
        scales = Scales(arrangement, Bounds(np.zeros(4), np.full(4, np.inf), 0.0))
        foretold = scales.allow(np.array([load]), np.array([here]), np.array([lane]))[0]
        arrangement.move(slot, lane)
        assert scales.hold([here, lane]) == foretold


def test_sets_that_are_too_large_fall_into_single_slots() -> None:
    chain = np.arange(LARGEST + 1)
    label = sets_inside_lanes((chain[:-1], chain[1:]), np.zeros(len(chain), np.int64))
    assert len(np.unique(label)) == len(chain)
    assert sets_inside_lanes((chain[:-2], chain[1:-1]), np.zeros(len(chain), np.int64)).tolist() == [0] * LARGEST + [1]


@pytest.mark.parametrize("limit", [1, 5])
def test_the_search_ends_by_its_steps(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = random_problem(5, slots=30, lanes=4)
    arrangement = Arrangement(snapshot, snapshot.lane)
    monkeypatch.setattr(gather_tabu, "WORK", limit * len(snapshot) ** 2)
    tabu = Tabu(arrangement, Scales(arrangement, Bounds.capacities(snapshot)), 0)
    tabu.search(patience=0)
    assert tabu.steps == 0
    tabu.search(patience=1)
    assert tabu.steps <= limit * LARGEST
    monkeypatch.setattr(module, "FEW", 0)
    monkeypatch.setattr(module, "ATTEMPTS", limit)
    arrangement = Arrangement(snapshot, snapshot.lane)
    gather(arrangement, Bounds.capacities(snapshot))
    assert 0 < arrangement.moves <= limit * (1 + module.RETURNS)
