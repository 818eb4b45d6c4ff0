"""What is remembered of every decision: events, each of one kind, in the order in which they happened."""

from __future__ import annotations

from typing import Literal

import msgspec

from trimtab.vocab import ControlMessage, Epoch

Kind = Literal["applied", "refused", "dropped", "effect", "backed off", "advice", "answered"]


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that control did, or did not do, and why.

    | kind | what it says |
    |---|---|
    | applied | a control message took effect in `epoch`: its moves, drains and lanes, with their reasons |
    | refused | a move, a plan or a scale decision was not taken |
    | dropped | a plan was thrown away as a whole: it took too long, or the planner failed |
    | effect | what came of the plan applied in `epoch`: `figures` has the load distance before, expected and measured |
    | backed off | a planner whose plans do not help pauses |
    | advice | why balancing cannot help, and what would |
    | answered | what became of a `request` by hand |
    """

    kind: Kind
    epoch: Epoch
    at: float
    why: str
    message: ControlMessage | None = None
    figures: dict[str, float] = {}
    request: str = ""
