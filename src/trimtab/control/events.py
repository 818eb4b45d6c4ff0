"""What is remembered of every decision: events, each of one kind, in the order in which they happened."""

from __future__ import annotations

from collections.abc import Iterable
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
    | effect | what came of the plan of `epoch`: `figures` has the lanes' unevenness, expected and measured |
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


def lanes_named(lanes: Iterable[int]) -> str:
    """
    >>> lanes_named([2]), lanes_named([1, 3])
    ('lane 2', 'lanes 1 and 3')
    """
    names = [str(lane) for lane in lanes]
    if len(names) == 1:
        return f"lane {names[0]}"
    return f"lanes {', '.join(names[:-1])} and {names[-1]}"
