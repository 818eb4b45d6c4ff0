"""Plan, and ask whether the lanes are right (ALBIC, Algorithm 1): from what is seen to the message that is wished.

Pure: the same sight gives the same proposal. What it costs in time and whether it is taken is `loop.py`'s business.
Planner and scaler may be of a user's own, so nothing of what they answer is taken on trust.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from trimtab.control.effect import unevenness
from trimtab.control.events import lanes_named
from trimtab.control.measure import Layout
from trimtab.planners.metrics import TOLERANCE, load_distance, migration_cost, utilisation
from trimtab.planners.plan import Answer, Infeasible, Plan, Planner
from trimtab.planners.scaler import ScaleDecision, Scaler
from trimtab.planners.snapshot import ClusterSnapshot
from trimtab.vocab import ControlMessage, Expected, Move, Routing

Sight = Callable[[Routing], ClusterSnapshot]
"""The cluster as it would be seen under a routing; its lanes are those that run, in their order."""


@dataclass(frozen=True)
class Proposal:
    """A control message that is wished for, and what was refused on the way to it.

    `staying` is how many lanes are to stay, where some are to be added: how many run by then is not known yet.
    """

    message: ControlMessage
    refusals: tuple[str, ...] = ()
    staying: int | None = None

    def __bool__(self) -> bool:
        return bool(self.message or self.refusals or self.staying)


def propose(
    see: Sight, routing: Routing, layout: Layout, planner: Planner, scaler: Scaler, cause: str, only_scaling: bool
) -> Proposal:
    """Plan; let the scaler add or drain lanes; if it does, plan once more with those.

    With `only_scaling` a plan counts where the scaler asks for it, and not otherwise.
    """
    # Lanes that are empty and drain will be gone when the message is made, and new ones get their numbers.
    routing = routing.apply(ControlMessage(retired=routing.emptied))
    snapshot = see(routing)
    answer = planner.plan(snapshot)
    decision = scaler.decide(snapshot, answer)
    if only_scaling and not decision:
        return Proposal(ControlMessage())
    staying, scaling = None, ControlMessage()
    if decision:
        scaling = scale_message(routing, layout, decision)
        routing = routing.apply(scaling)
        staying = len(routing.staying) if scaling.lanes else None
        snapshot = see(routing)
        answer = planner.plan(snapshot)
        cause = f"{cause}; {decision.why}"
    problem = missing_in(answer, snapshot)
    if problem:
        return Proposal(ControlMessage(draining=scaling.draining, cause=cause), (problem,), staying)
    assert isinstance(answer, Plan)
    moves, name = tuple(moves_of(snapshot, answer, routing, layout)), planner_name(planner)
    message = ControlMessage(moves, scaling.draining, cause=cause, planner=name, expected=expected(snapshot, answer))
    return Proposal(plain(message), tuple(unrelieved(message, routing)), staying)


def scale_message(routing: Routing, layout: Layout, decision: ScaleDecision) -> ControlMessage:
    """A scale decision, which counts lanes as snapshots do, as a message. No lane is added that no slot is left for."""
    add = min(int(decision.add), min(layout.slots) - len(routing.staying))
    lanes = len(routing.running) + add if add > 0 else None
    return ControlMessage(draining=tuple(routing.running[lane] for lane in decision.drain), lanes=lanes)


def plain(message: ControlMessage) -> ControlMessage:
    """The message as a claim will have it; raises where the claim could not be written, or not be read again."""
    return msgspec.json.decode(msgspec.json.encode(message), type=ControlMessage)


def missing_in(answer: Answer, snapshot: ClusterSnapshot) -> str:
    """What a plan lacks to be taken, in a sentence: nothing is taken on trust, least of all a planner of one's own."""
    if isinstance(answer, Infeasible):
        return f"There is no plan: {answer.missing}"
    lanes = answer.lanes
    whole = lanes.shape == (len(snapshot),) and np.issubdtype(lanes.dtype, np.integer)
    if not whole or not ((lanes >= 0) & (lanes < snapshot.lanes)).all():
        return f"The plan does not place each of the {len(snapshot)} slots on one of the {snapshot.lanes} lanes."
    moved, limits = answer.moved(snapshot), snapshot.limits
    if snapshot.draining[lanes[moved]].any():
        return "The plan moves slots to a lane that is draining."
    if limits.max_moves is not None and len(moved) > limits.max_moves:
        return f"The plan moves {len(moved)} slots, but Control(max_moves={limits.max_moves})."
    cost = migration_cost(snapshot, lanes)
    if limits.max_migration is not None and cost > limits.max_migration * (1 + TOLERANCE):
        return f"The plan's moves cost {cost:.3g} s, but Control(max_migration={limits.max_migration})."
    return ""


def unrelieved(message: ControlMessage, routing: Routing) -> Iterator[str]:
    """A sentence if lanes are to be emptied and the plan takes nothing off them."""
    waiting = sorted(set(routing.draining) - set(routing.emptied))
    if waiting and not any(move.source in waiting for move in message.moves):
        yield f"The plan takes no slot off {lanes_named(waiting)}, to be drained: its limits may be too tight."


def moves_of(snapshot: ClusterSnapshot, plan: Plan, routing: Routing, layout: Layout) -> Iterator[Move]:
    """The plan's moves, from slots and lanes as snapshots count them to those of the routing."""
    starts, running = layout.starts, routing.running
    for move in plan.moves(snapshot):
        operator = int(np.searchsorted(starts, move.slot, side="right")) - 1
        source = running[int(snapshot.lane[move.slot])]
        yield Move(operator, move.slot - int(starts[operator]), source, running[move.target], str(move.why))


def expected(snapshot: ClusterSnapshot, plan: Plan) -> Expected:
    """What the plan promises."""
    distances = [load_distance(snapshot, lanes) for lanes in (snapshot.lane, plan.lanes)]
    uneven = [unevenness(utilisation(snapshot, lanes)[snapshot.staying]) for lanes in (snapshot.lane, plan.lanes)]
    numbers = [*distances, *uneven, snapshot.mean, migration_cost(snapshot, plan.lanes)]
    return Expected(*(round(number, 6) for number in numbers))


def planner_name(planner: object) -> str:
    """What a planner is called in the history: its class, inside any wrapper."""
    inner = getattr(planner, "planner", planner)
    return type(inner).__name__
