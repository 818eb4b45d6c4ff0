"""The words of Trimtab as frozen value types.

The way of a row and the way of a decision meet here alone: lanes read a `Routing`, planners write one, and a
`ControlMessage` says what changes at the boundary between two epochs.
"""

from __future__ import annotations

import msgspec

Epoch = int
Hop = int
LaneId = int
SlotId = int
OperatorId = int


class Move(msgspec.Struct, frozen=True):
    """A slot of an operator that leaves one lane for another, and why."""

    operator: OperatorId
    slot: SlotId
    source: LaneId
    target: LaneId
    why: str = ""


class ControlMessage(msgspec.Struct, frozen=True):
    """What changes at an epoch boundary. The empty message changes nothing."""

    moves: tuple[Move, ...] = ()
    draining: tuple[LaneId, ...] = ()
    lanes: int | None = None
    weights: tuple[tuple[OperatorId, tuple[int, ...]], ...] = ()
    cause: str = ""


class Routing(msgspec.Struct, frozen=True):
    """Where every slot of every keyed operator sits: `slots[operator][slot]` is a lane below `lanes`.

    >>> Routing.spread(lanes=2, slots=[5]).slots
    ((0, 1, 0, 1, 0),)
    """

    lanes: int
    slots: tuple[tuple[LaneId, ...], ...]

    @classmethod
    def spread(cls, lanes: int, slots: list[int]) -> Routing:
        """Round robin: the placement of a flow that nobody has planned for yet."""
        return cls(lanes, tuple(tuple(slot % lanes for slot in range(count)) for count in slots))

    def apply(self, message: ControlMessage) -> Routing:
        """The routing after the message: its lane count first, then its moves.

        Slots of lanes that no longer exist are spread over those that stay.

        >>> three = Routing.spread(lanes=3, slots=[6])
        >>> three.apply(ControlMessage(moves=(Move(0, 0, 0, 2),))).slots
        ((2, 1, 2, 0, 1, 2),)
        >>> three.apply(ControlMessage(lanes=2)).slots
        ((0, 1, 0, 0, 1, 1),)
        """
        lanes = self.lanes if message.lanes is None else message.lanes
        placed = [
            [lane if lane < lanes else slot % lanes for slot, lane in enumerate(operator)] for operator in self.slots
        ]
        for move in message.moves:
            placed[move.operator][move.slot] = move.target
        return Routing(lanes, tuple(tuple(operator) for operator in placed))
