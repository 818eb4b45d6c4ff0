"""Epochs do what AutoFlow III-C, Algorithms 1 and 2 do.

The same rows, cut by the same control messages, go through AutoFlow's dataflow in any interleaving of its channels and
through epochs, each under the routing that its message makes. Both process every row once, on the same lane, in the
same order for each source and key, and leave the same state on the same owner.

Epochs promise more than that: for slots that stay, AutoFlow makes no cut at a control message, and epochs do. The
printed algorithms promise less: the last tests show why the model reads them as it does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.control.autoflow_model import SLOTS, Astray, Barrier, Dataflow, Map, Reducer, Row, State

from trimtab.vocab import ControlMessage, LaneId, Move, Routing, SlotId

Trace = list[tuple[LaneId, Row]]
Owned = dict[tuple[LaneId, SlotId], State]


@dataclass(frozen=True)
class Case:
    """Keys by source and epoch, and the control messages: `messages[0]` opens epoch 1."""

    keys: list[list[list[int]]]
    messages: list[ControlMessage]
    lanes: int = 2
    maps: int = 1

    @property
    def routings(self) -> list[Routing]:
        """The routing of each epoch."""
        start = Routing.spread(lanes=self.lanes, slots=[SLOTS])
        return list(accumulate(self.messages, Routing.apply, initial=start))

    @property
    def rows(self) -> list[list[Row]]:
        """The rows of each source."""
        return [
            [
                Row(source, position, key, epoch)
                for position, (epoch, key) in enumerate((epoch, key) for epoch, keys in enumerate(cut) for key in keys)
            ]
            for source, cut in enumerate(self.keys)
        ]

    def stream(self, rows: list[Row]) -> list[Row | Barrier]:
        """The rows of a source with the barriers put where its epochs begin."""
        stream: list[Row | Barrier] = [row for row in rows if row.epoch == 0]
        for time, message in enumerate(self.messages, start=1):
            stream += [Barrier(time, message), *(row for row in rows if row.epoch == time)]
        return stream

    def dataflow(self, kinds: tuple[type[Map], type[Reducer]] = (Map, Reducer)) -> Dataflow:
        return Dataflow([self.stream(rows) for rows in self.rows], self.routings[0], self.maps, kinds)

    def moved(self, row: Row, until: int) -> int:
        """How often the slot of the row has moved by an epoch."""
        return sum(move.slot == row.slot for message in self.messages[:until] for move in message.moves)


def owned(flow: Dataflow) -> Owned:
    return {(reducer.lane, slot): state for reducer in flow.reducers for slot, state in reducer.states.items()}


def run_epochs(case: Case) -> tuple[Trace, Owned]:
    """Epoch by epoch, rows by source and position; a slot's state goes where the routing says."""
    trace: Trace = []
    states = [State() for _ in range(SLOTS)]
    for epoch, routing in enumerate(case.routings):
        for row in (row for rows in case.rows for row in rows if row.epoch == epoch):
            states[row.slot].add(row)
            trace.append((routing.slots[0][row.slot], row))
    return trace, {(lane, slot): states[slot] for slot, lane in enumerate(case.routings[-1].slots[0])}


def orders(trace: Trace) -> dict[tuple[int, int], Trace]:
    """The trace of each source and key."""
    told: defaultdict[tuple[int, int], Trace] = defaultdict(list)
    for lane, row in trace:
        told[row.source, row.key].append((lane, row))
    return dict(told)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    lanes = draw(st.integers(2, 3))
    wishes = draw(st.lists(st.dictionaries(st.integers(0, SLOTS - 1), st.integers(0, lanes - 1)), max_size=4))
    routing, messages = Routing.spread(lanes=lanes, slots=[SLOTS]), []
    for wish in wishes:
        at = routing.slots[0]
        moves = tuple(Move(0, slot, at[slot], lane) for slot, lane in wish.items() if lane != at[slot])
        messages.append(ControlMessage(moves=moves))
        routing = routing.apply(messages[-1])
    epoch = st.lists(st.integers(0, 2 * SLOTS - 1), max_size=5)
    cut = st.lists(epoch, min_size=len(messages) + 1, max_size=len(messages) + 1)
    return Case(draw(st.lists(cut, min_size=1, max_size=3)), messages, lanes, maps=draw(st.integers(1, 3)))


def assert_equivalent(case: Case, flow: Dataflow, choose: Callable[[int], int] = lambda count: 0) -> None:
    flow.run(choose)
    trace, states = run_epochs(case)
    assert Counter(flow.trace) == Counter(trace), "every row once, on the lane of its epoch's routing"
    assert orders(flow.trace) == orders(trace)
    assert owned(flow) == states
    assert not any(operator.held for operator in flow.operators), "buffers are cleared"


@given(case=cases(), order=st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_epochs_do_what_autoflow_does(case: Case, order: Random) -> None:
    assert_equivalent(case, case.dataflow(), order.randrange)


@given(case=cases(), order=st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_a_new_owner_begins_with_a_complete_state_and_nothing_else_waits(case: Case, order: Random) -> None:
    flow = case.dataflow()
    flow.run(order.randrange)
    for slot in range(SLOTS):
        stays = [case.moved(row, until=row.epoch) for _, row in flow.trace if row.slot == slot]
        assert stays == sorted(stays), "all rows of an owner come before any of the next"
    for operator in flow.operators:
        for time, row in operator.waited:
            assert time <= row.epoch, "rows before the barrier pass"
            assert row.slot in {move.slot for move in case.messages[time - 1].moves}, "rows of other slots pass"


def moving(*lanes: LaneId, slot: SlotId) -> list[ControlMessage]:
    """One message for each move of a slot along lanes."""
    return [ControlMessage(moves=(Move(0, slot, *pair),)) for pair in pairwise(lanes)]


class FlushesFirst(Map):
    """Algorithm 1 as printed, lines 17 to 21: routing, flush, broadcast."""

    def on_complete(self, barrier: Barrier) -> None:
        self.routing = self.routing.apply(barrier.message)
        self.flush(barrier)
        self.broadcast(barrier)


class AsksNoChannel(Reducer):
    """Algorithm 2 as printed, line 26: a row of a slot on its way here waits, whatever its channel has delivered."""

    def on_row(self, row: Row, delivered: int) -> None:
        super().on_row(row, max((time for time, _ in self.held), default=0))


class SendsWhatItHas(Reducer):
    """Algorithm 2 as printed, line 17: the state is sent when the barrier is complete, be it here or not."""

    def on_complete(self, barrier: Barrier) -> None:
        for move in barrier.message.moves:
            if move.source == self.lane:
                self.states.setdefault(move.slot, State())
        super().on_complete(barrier)


# Slot 1 leaves lane 1 and comes back, both messages under way at once. `run` serves the maps, then lane 0, then lane 1:
# lane 0 has both barriers before the state, and lane 1 has both from the idle map 0 before the first row from map 1.
ROUND_TRIP = Case(keys=[[[1], [1], []]], messages=moving(1, 0, 1, slot=1), maps=2)


def test_flushed_before_the_broadcast_a_row_overtakes_its_barrier() -> None:
    """The map holds the row of source 0 until source 1's barrier comes; flushed first, it finds no state on lane 1."""
    case = Case(keys=[[[], [0]], [[], []]], messages=moving(0, 1, slot=0))
    with pytest.raises(Astray):
        case.dataflow((FlushesFirst, Reducer)).run()
    assert_equivalent(case, case.dataflow())


def test_a_reducer_that_asks_no_channel_holds_a_row_from_before_the_barrier() -> None:
    """Lane 1 keeps its own last row until the slot is back, and lane 0 overtakes it."""
    flow = ROUND_TRIP.dataflow((Map, AsksNoChannel))
    flow.run()
    assert [row.position for _, row in flow.trace] == [1, 0]
    assert_equivalent(ROUND_TRIP, ROUND_TRIP.dataflow())


def test_a_reducer_that_sends_what_it_has_splits_a_slot() -> None:
    """Lane 0 sends the slot back before it has come: two owners, and the true state is with the wrong one."""
    flow = ROUND_TRIP.dataflow((Map, SendsWhatItHas))
    flow.run()
    assert {lane for lane, slot in owned(flow) if slot == 1} == {0, 1}
    assert owned(flow)[1, 1] == State()


def test_between_messages_autoflow_makes_no_cut() -> None:
    """A row behind the barrier of one source passes a row before the barrier of the other; epochs keep them apart."""
    case = Case(keys=[[[], [0]], [[0], []]], messages=[ControlMessage()])
    flow = case.dataflow()
    flow.run()
    assert [row.epoch for _, row in flow.trace] == [1, 0]
    assert [row.epoch for _, row in run_epochs(case)[0]] == [0, 1]
