"""Single slots: a run of like slots in one step comes to the same as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trimtab.planners import tasks
from trimtab.planners.tasks import Room, place_singly

CAPACITIES = st.lists(st.integers(1, 200).map(float), min_size=1, max_size=6)


@given(CAPACITIES, st.integers(0, 120), st.sampled_from([0.0, 1.0, 3.0, 7.0]))
@example([86.0, 170.0, 200.0], 39, 7.0)  # The last slots tie between two lanes.
def test_many_at_once_go_where_each_would_have_gone(capacity: list[float], count: int, load: float) -> None:
    lanes = np.arange(len(capacity))
    quick, slow = Room(np.array(capacity), lanes), Room(np.array(capacity), lanes)
    together = quick.spread(count, load)
    single = [lane for _ in range(count) for lane in slow.spread(1, load)]
    assert sorted(together) == sorted(single)
    assert quick.free == slow.free


@given(CAPACITIES, st.lists(st.sampled_from([0.1, 0.2, 0.3, 5.5]), max_size=90))
def test_no_lane_gets_more_than_it_can_hold(capacity: list[float], load: list[float]) -> None:
    loads, lanes = np.array(load, np.float64), np.full(len(load), -1)
    misfit = place_singly(np.arange(len(load)), loads, Room(np.array(capacity), np.arange(len(capacity))), lanes)
    placed = lanes >= 0
    used = np.bincount(lanes[placed], loads[placed], len(capacity))
    assert (used <= np.array(capacity) * (1 + 1e-9)).all()
    assert placed.all() if misfit is None else lanes[misfit] == -1


def test_the_slot_that_fits_nowhere_is_named() -> None:
    lanes = np.full(3, -1)
    room = Room(np.array([5.0, 5.0]), np.arange(2))
    assert place_singly(np.array([2, 1, 0]), np.array([1.0, 4.0, 6.0]), room, lanes) == 2


def test_a_lane_that_was_cleared_is_the_roomiest_again() -> None:
    room = Room(np.array([5.0, 4.0]), np.arange(2))
    room.take(0, 3.0)
    assert room.roomiest() == 1
    room.clear(0)
    assert (room.roomiest(), room.used(0)) == (0, 0.0)


@pytest.mark.parametrize("count", [tasks.FEW, tasks.FEW + 1, 1000])
def test_lanes_full_to_the_last_unit_take_loads_that_are_no_binary_fractions(count: int) -> None:
    room = Room(np.full(4, count * 0.1 / 4), np.arange(4))
    assert len(room.spread(count // 4 * 4, 0.1)) == count // 4 * 4
