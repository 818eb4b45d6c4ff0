"""What a flow measured and decided, for people and programs to look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trimtab.control.events import Event
from trimtab.control.log import read_events, read_measures
from trimtab.ports import ObjectStore
from trimtab.vocab import ControlMessage, Epoch, Measure, Move


@dataclass(frozen=True)
class History:
    """Measures by epoch, and events; both oldest first."""

    measures: list[Measure] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    @classmethod
    def of(cls, store: ObjectStore) -> History:
        """All that a checkpoint still knows."""
        return cls(read_measures(store), read_events(store))

    @property
    def messages(self) -> list[tuple[Epoch, ControlMessage]]:
        """The control messages that took effect, with their epochs."""
        return [(event.epoch, event.message) for event in self.events if event.message is not None]

    @property
    def moves(self) -> list[tuple[Epoch, Move]]:
        """Every move of a slot, with the epoch from which on it counts."""
        return [(epoch, move) for epoch, message in self.messages for move in message.moves]

    def table(self) -> list[dict[str, Any]]:
        """The log of control messages in the fields of AutoFlow's Table I: a row for every pair of lanes."""
        return [row for epoch, message in self.messages for row in message.table(epoch)]

    def of_kind(self, kind: str) -> list[Event]:
        """The events of one kind, such as "refused" or "effect"."""
        return [event for event in self.events if event.kind == kind]
