"""The benches of moving and of measuring, where they need no Spark."""

from __future__ import annotations

import pytest

from trimtab.bench import measuring, move
from trimtab.lane.program import Body
from trimtab.vocab import Routing


@pytest.mark.parametrize("share", move.SHARES)
def test_slots_change_places_without_tilting_the_lanes(share: float) -> None:
    routing = Routing.spread(move.LANES, [move.SLOTS])
    for lane, slots in enumerate(move.exchanged(share)):
        assert {routing.slots[0][slot] for slot in slots} == {lane}
    first, second = move.exchanged(share)
    assert len(first) == len(second) and share <= 2 * len(first) / move.SLOTS < share + 0.01


def test_no_slot_is_in_two_shares() -> None:
    every = [slot for share in move.SHARES for slots in move.exchanged(share) for slot in slots]
    assert len(every) == len(set(every)) and max(every) < move.SLOTS


def test_quiet_epochs_are_those_without_a_move_and_not_right_after_one() -> None:
    epochs = move._Epochs([1.0, 2.0, 3.0, 4.0, 5.0], {1: 26, 4: 4}, 0)
    assert epochs.quiet == [1.0, 4.0]
    assert (epochs.of(26), epochs.of(26, later=1), epochs.of(4), epochs.of(4, later=1)) == ([2.0], [3.0], [5.0], [])


@pytest.mark.parametrize("body", [measuring.aggregate(), measuring.logic()])
def test_tasks_cost_about_the_same_without_measuring(body: Body) -> None:
    cost = measuring.task_cost(body, rows=5_000, keys=500, repetitions=2)
    assert cost.measured.samples == cost.unmeasured.samples == 2
    assert cost.measured.median > 0 and cost.added >= 0
