"""The words of Trimtab as frozen value types.

The way of a row and the way of a decision meet here alone: lanes read a `Routing` and report a `Measure`, planners make
a `ControlMessage` of it, which says what changes at the boundary between two epochs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


class Expected(msgspec.Struct, frozen=True):
    """What a plan promised: load distance and mean load in percent of lane capacity, seconds of moving.

    `uneven` is the standard deviation of the lanes' loads in percent of their mean: what epochs can be compared by.
    """

    distance_before: float
    distance_after: float
    uneven_before: float
    uneven_after: float
    mean: float
    migration: float = 0.0


class ControlMessage(msgspec.Struct, frozen=True):
    """What changes at an epoch boundary. The empty message changes nothing.

    `draining` lanes give their slots away and take none, `retired` ones are empty and no longer run, `lanes` is how
    many run from here on, if more than before. `requests` are the wishes by hand that the message answers.
    """

    moves: tuple[Move, ...] = ()
    draining: tuple[LaneId, ...] = ()
    retired: tuple[LaneId, ...] = ()
    lanes: int | None = None
    weights: tuple[tuple[OperatorId, tuple[int, ...]], ...] = ()
    cause: str = ""
    planner: str = ""
    expected: Expected | None = None
    requests: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.moves or self.draining or self.retired or self.weights or self.lanes is not None)

    def table(self, epoch: Epoch) -> Iterator[dict[str, Any]]:
        """The message in the fields of AutoFlow's Table I, a row for every pair of lanes; its time is the epoch.

        >>> [row] = ControlMessage(moves=(Move(0, 4, 1, 2), Move(0, 7, 1, 2))).table(9)
        >>> row["event_time"], row["sender"], row["receiver"], row["slot_ids"]
        (9, 1, 2, [(0, 4), (0, 7)])
        >>> [row["migration"] for row in ControlMessage().table(9)]
        [False]
        """
        pairs: dict[tuple[LaneId, LaneId], list[tuple[OperatorId, SlotId]]] = {}
        for move in self.moves:
            pairs.setdefault((move.source, move.target), []).append((move.operator, move.slot))
        event = {"event_type": "ControlMsg", "event_time": epoch}
        if not pairs:
            yield {**event, "migration": False, "sender": None, "receiver": None, "slot_ids": []}
        for (sender, receiver), slots in pairs.items():
            yield {**event, "migration": True, "sender": sender, "receiver": receiver, "slot_ids": slots}


class Routing(msgspec.Struct, frozen=True):
    """Where every slot of every keyed operator sits: `slots[operator][slot]` is a lane below `lanes`.

    Lanes keep their numbers for life: one that has retired leaves a gap, which the next new lane fills.

    >>> Routing.spread(lanes=2, slots=[5]).slots
    ((0, 1, 0, 1, 0),)
    """

    lanes: int
    slots: tuple[tuple[LaneId, ...], ...]
    draining: tuple[LaneId, ...] = ()
    retired: tuple[LaneId, ...] = ()

    @classmethod
    def spread(cls, lanes: int, slots: list[int]) -> Routing:
        """Round robin: the placement of a flow that nobody has planned for yet."""
        return cls(lanes, tuple(tuple(slot % lanes for slot in range(count)) for count in slots))

    @property
    def running(self) -> tuple[LaneId, ...]:
        """The lanes that have a task in every epoch, in the order of the tasks."""
        return tuple(lane for lane in range(self.lanes) if lane not in self.retired)

    @property
    def staying(self) -> tuple[LaneId, ...]:
        """The lanes that slots may move to."""
        return tuple(lane for lane in self.running if lane not in self.draining)

    @property
    def emptied(self) -> tuple[LaneId, ...]:
        """The draining lanes that have no slot left."""
        used = {lane for operator in self.slots for lane in set(operator)}
        return tuple(lane for lane in self.draining if lane not in used)

    def apply(self, message: ControlMessage) -> Routing:
        """The routing after the message: what retires, new lanes, what drains, then moves.

        >>> three = Routing.spread(lanes=3, slots=[6])
        >>> three.apply(ControlMessage(moves=(Move(0, 0, 0, 2),))).slots
        ((2, 1, 2, 0, 1, 2),)
        >>> one = three.apply(ControlMessage(draining=(1,), moves=(Move(0, 1, 1, 0), Move(0, 4, 1, 2))))
        >>> one.emptied, one.apply(ControlMessage(retired=(1,))).running
        ((1,), (0, 2))
        """
        retired = {*self.retired, *message.retired}
        lanes = self.lanes
        for _ in range((message.lanes or 0) - (lanes - len(retired))):
            if retired:
                retired.remove(min(retired))
            else:
                lanes += 1
        # A lane that is new may have the number of one that retires just now.
        draining = {*self.draining} - {*message.retired} | {*message.draining}
        placed = [list(operator) for operator in self.slots]
        for move in message.moves:
            placed[move.operator][move.slot] = move.target
        slots = tuple(tuple(operator) for operator in placed)
        return Routing(lanes, slots, tuple(sorted(draining)), tuple(sorted(retired)))


class HotKey(msgspec.Struct, frozen=True, array_like=True):
    """A key of a slot that had more than a lane's fair share, and about how many of its rows were this key's."""

    operator: OperatorId
    slot: SlotId
    key: str
    rows: int


class SlotMeasures(msgspec.Struct, frozen=True):
    """What the slots of an operator did in an epoch: entry i is about `slots[i]`; slots that did nothing are left out.

    `rows` counts rows as they came from upstream, `work` what reached the lane after combining, `bytes` what those
    weighed on their way. `busy` is the lane's time, shared out by `work`, and its writing by rows written. What the
    slots held when the epoch began: `state` in bytes, and about so many `keys`, versions of a key counted singly.
    """

    operator: OperatorId
    slots: list[SlotId] = []
    rows: list[int] = []
    work: list[int] = []
    bytes: list[int] = []
    busy: list[float] = []
    state: list[int] = []
    keys: list[int] = []


class LaneMeasure(msgspec.Struct, frozen=True):
    """What a lane did in an epoch, in seconds: `read` taking in rows, `busy` in its operators, `write` of state.

    `rows` counts rows of the source, `work` what reached the lane of them after combining.
    """

    lane: LaneId
    wall: float
    read: float
    busy: float
    write: float
    rows: int
    work: int
    executor: str = ""
    """Which executor it ran on: equal for lanes that share one."""

    @property
    def speed(self) -> float:
        """Rows of work in a second of busy time; 0 where there were none."""
        return self.work / self.busy if self.busy else 0.0


class Measure(msgspec.Struct, frozen=True):
    """What an epoch saw. `seconds` is the time it took, `span` that since the epoch before ended, `at` when it did."""

    epoch: Epoch = -1
    at: float = 0.0
    rows: int = 0
    seconds: float = 0.0
    span: float = 0.0
    bytes_written: int = 0
    lanes: list[LaneMeasure] = []
    slots: list[SlotMeasures] = []
    hot: list[HotKey] = []
