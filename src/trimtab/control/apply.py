"""Apply: everything that is to change at the next boundary, in one control message.

In this order: drained lanes that are empty retire; then what was asked for by hand, as it came; then the plan that is
ready, as far as it still fits the routing; then, where no planner will do it, what draining and new lanes need.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from trimtab.control.by_hand import Request, message_for
from trimtab.control.events import lanes_named
from trimtab.control.measure import Layout
from trimtab.control.plan import Proposal
from trimtab.errors import FlowError
from trimtab.vocab import ControlMessage, Move, Routing


@dataclass
class Composition:
    """A message that grows part by part. `routing` is what it makes of the routing it began with."""

    begin: Routing
    layout: Layout
    parts: list[ControlMessage] = field(default_factory=list)
    routing: Routing = field(init=False)

    def __post_init__(self) -> None:
        self.routing = self.begin

    def add(self, part: ControlMessage) -> None:
        if part or part.requests:
            self.parts.append(part)
            self.routing = self.routing.apply(part)

    def retire(self) -> None:
        """Let the lanes go that were draining and are empty."""
        if emptied := self.routing.emptied:
            self.add(ControlMessage(retired=emptied, cause=f"drained: {lanes_named(emptied)}"))

    def ask(self, identity: str, request: Request) -> str:
        """Add a request by hand; returns why not, if it cannot be."""
        try:
            part = message_for(request, self.routing, self.layout)
        except FlowError as error:
            return str(error)
        self.add(msgspec.structs.replace(part, requests=(identity,)))
        return ""

    def plan(self, proposal: Proposal) -> list[str]:
        """Add what still fits of a plan made for an earlier routing; returns why the rest does not."""
        wished = proposal.message
        draining = tuple(lane for lane in wished.draining if lane in self.routing.staying)
        if len(draining) >= len(self.routing.staying):
            draining = ()
        lanes = self._lanes_for(proposal.staying)
        now = self.routing.apply(ControlMessage(draining=draining, lanes=lanes))
        refusals = {move: why for move in wished.moves if (why := _refusal(move, now))}
        kept = tuple(move for move in wished.moves if move not in refusals)
        part = msgspec.structs.replace(wished, moves=kept, draining=draining, lanes=lanes)
        # Half a plan does not do what the whole one promised.
        self.add(msgspec.structs.replace(part, expected=None) if refusals else part)
        return list(dict.fromkeys(refusals.values()))

    def _lanes_for(self, staying: int | None) -> int | None:
        """How many lanes have to run so that so many stay; None if that many do."""
        more = (staying or 0) - len(self.routing.staying)
        return len(self.routing.running) + more if more > 0 else None

    def message(self) -> ControlMessage:
        """All parts as one."""
        parts = self.parts
        planned = [part for part in parts if part.planner]
        return ControlMessage(
            moves=tuple(self._moves()),
            draining=tuple(sorted({lane for part in parts for lane in part.draining})),
            retired=tuple(sorted({lane for part in parts for lane in part.retired})),
            lanes=len(self.routing.running) if any(part.lanes is not None for part in parts) else None,
            weights=tuple(weight for part in parts for weight in part.weights),
            cause="; ".join(dict.fromkeys(part.cause for part in parts if part.cause)),
            planner=planned[-1].planner if planned else "",
            expected=planned[-1].expected if planned else None,
            requests=tuple(request for part in parts for request in part.requests),
        )

    def _moves(self) -> Iterator[Move]:
        """One move per slot, from where it was to where it ends."""
        last = {(move.operator, move.slot): move for part in self.parts for move in part.moves}
        for (operator, slot), move in last.items():
            source = self.begin.slots[operator][slot]
            if source != move.target:
                yield Move(operator, slot, source, move.target, move.why)


def _refusal(move: Move, routing: Routing) -> str:
    """Why a move of an earlier plan is no longer right; empty if it is."""
    lane = routing.slots[move.operator][move.slot]
    if lane != move.source:
        return f"Slot {move.slot} has moved to lane {lane} since it was planned to leave lane {move.source}."
    if move.target not in routing.staying:
        return f"Slot {move.slot} was planned to move to lane {move.target}, which takes no slots any more."
    return ""
