"""Requests by hand: what a person may ask of a running flow, from the program that runs it or from another process."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trimtab.control.measure import Layout
from trimtab.errors import FlowError
from trimtab.vocab import ControlMessage, LaneId, Move, Routing

BY_HAND = "asked for by hand"


class MoveSlots(msgspec.Struct, frozen=True, tag="move"):
    """Put slots of an operator on a lane."""

    operator: str
    slots: tuple[int, ...]
    lane: LaneId


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Move everything off a lane, then let it go."""

    lane: LaneId


class Scale(msgspec.Struct, frozen=True, tag="scale"):
    """Run on so many lanes."""

    lanes: int


class PlanNow(msgspec.Struct, frozen=True, tag="plan"):
    """Let the planner plan, whether it is time or not."""


Request = MoveSlots | Drain | Scale | PlanNow


def message_for(request: Request, routing: Routing, layout: Layout) -> ControlMessage:
    """What the request comes to under a routing; FlowError, a sentence, when it cannot be."""
    if isinstance(request, MoveSlots):
        return ControlMessage(moves=tuple(_moves(request, routing, layout)), cause=BY_HAND)
    if isinstance(request, Drain):
        return _drain(request, routing)
    if isinstance(request, Scale):
        return _scale(request, routing, layout)
    return ControlMessage(cause=BY_HAND)


def _moves(request: MoveSlots, routing: Routing, layout: Layout) -> Iterator[Move]:
    if request.operator not in layout.operators:
        raise FlowError(f"There is no operator '{request.operator}': the flow has {list(layout.operators)}.")
    operator = layout.operators.index(request.operator)
    _check_lane(request.lane, routing)
    for slot in request.slots:
        if not 0 <= slot < layout.slots[operator]:
            last = layout.slots[operator] - 1
            raise FlowError(f"Operator '{request.operator}' has slots 0 to {last}; there is no slot {slot}.")
        source = routing.slots[operator][slot]
        if source != request.lane:
            yield Move(operator, slot, source, request.lane, BY_HAND)


def _drain(request: Drain, routing: Routing) -> ControlMessage:
    if request.lane in routing.draining:
        return ControlMessage(cause=BY_HAND)
    _check_lane(request.lane, routing)
    if len(routing.staying) == 1:
        raise FlowError(f"Lane {request.lane} is the only one that stays: it cannot be drained.")
    return ControlMessage(draining=(request.lane,), cause=BY_HAND)


def _scale(request: Scale, routing: Routing, layout: Layout) -> ControlMessage:
    if not 1 <= request.lanes <= min(layout.slots):
        raise FlowError(
            f"The flow cannot run on {request.lanes} lanes: 1 to {min(layout.slots)} have slots to work on."
        )
    more = request.lanes - len(routing.staying)
    if more > 0:
        return ControlMessage(lanes=len(routing.running) + more, cause=BY_HAND)
    # The highest numbers go, so that those that stay are easy to read.
    return ControlMessage(draining=routing.staying[request.lanes :], cause=BY_HAND)


def _check_lane(lane: LaneId, routing: Routing) -> None:
    if lane not in routing.running:
        raise FlowError(f"There is no lane {lane}: the lanes that run are {list(routing.running)}.")
    if lane in routing.draining:
        raise FlowError(f"Lane {lane} is draining and takes no slots: {list(routing.staying)} do.")
