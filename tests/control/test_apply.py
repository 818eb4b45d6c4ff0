"""One message from many wishes: it comes to the same as the wishes one after the other."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.control.apply import Composition
from trimtab.control.by_hand import Drain, MoveSlots, Request, Scale
from trimtab.control.evacuate import evacuation, levelling
from trimtab.control.measure import Layout
from trimtab.control.plan import Proposal
from trimtab.vocab import ControlMessage, Move, Routing

SLOTS = (8, 5)
LAYOUT = Layout(("one", "two"), SLOTS)

requests = st.lists(
    st.one_of(
        st.builds(MoveSlots, st.sampled_from(LAYOUT.operators), st.tuples(st.integers(0, 4)), st.integers(0, 5)),
        st.builds(Drain, st.integers(0, 5)),
        st.builds(Scale, st.integers(1, 5)),
    ),
    max_size=6,
)
fresh = st.builds(Routing.spread, st.integers(1, 5), st.just(list(SLOTS)))


@st.composite
def routings(draw: st.DrawFn) -> Routing:
    """Some lanes may be draining or gone already."""
    routing = draw(fresh)
    for step in draw(st.lists(st.sampled_from(("drain", "empty", "retire")), max_size=4)):
        if step == "drain" and len(routing.staying) > 1:
            routing = routing.apply(ControlMessage(draining=(draw(st.sampled_from(routing.staying)),)))
        elif step == "empty":
            routing = routing.apply(ControlMessage(moves=evacuation(routing)))
        elif step == "retire":
            routing = routing.apply(ControlMessage(retired=routing.emptied))
    return routing


@settings(deadline=None)
@given(
    routings(),
    requests,
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=4),
    st.one_of(st.none(), st.integers(1, 5)),
)
def test_a_message_does_what_its_parts_do_one_after_the_other(
    routing: Routing, asked: list[Request], planned: list[tuple[int, int]], staying: int | None
) -> None:
    whole = Composition(routing, LAYOUT)
    whole.retire()
    for number, request in enumerate(asked):
        whole.ask(str(number), request)
    moves = tuple(Move(1, slot, routing.slots[1][slot], lane) for slot, lane in dict(planned).items())
    whole.plan(Proposal(ControlMessage(moves=moves, planner="some"), staying=staying))
    whole.add(ControlMessage(moves=evacuation(whole.routing)))
    after = routing.apply(whole.message())
    assert after == whole.routing
    assert all(move.source == routing.slots[move.operator][move.slot] for move in whole.message().moves)
    assert {lane for slots in after.slots for lane in slots} <= set(after.staying)
    again = Composition(after, LAYOUT)
    again.retire()
    assert set(after.apply(again.message()).running) == set(after.staying)


@given(fresh, st.sets(st.integers(0, 4), max_size=3))
def test_lanes_keep_their_slots_level_by_number(routing: Routing, leaving: set[int]) -> None:
    draining = tuple(sorted(leaving & set(routing.running)))[: len(routing.running) - 1]
    routing = routing.apply(ControlMessage(draining=draining))
    routing = routing.apply(ControlMessage(moves=evacuation(routing)))
    moves = levelling(routing)
    routing = routing.apply(ControlMessage(moves=moves))
    for slots in routing.slots:
        counts = [slots.count(lane) for lane in routing.staying]
        assert max(counts) - min(counts) <= 1
    assert not levelling(routing)
