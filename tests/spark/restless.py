"""Slots that never stay: what tests use to show that moving them changes nothing but where they are."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence

import trimtab as tt
from trimtab.control.by_hand import MoveSlots
from trimtab.control.loop import Controller
from trimtab.errors import FlowError
from trimtab.vocab import ControlMessage, Routing

LANES = (3, 5, 1, 4)
"""How many lanes there are, one after the other."""


def never_at_rest(operator: str, slots: int) -> None:
    """From here on, every epoch of this process that has rows begins with moves, if there are two to four lanes."""
    usual = Controller.message

    def message(self: Controller, routing: Routing, epoch: int, idle: bool = False) -> ControlMessage:
        lanes = routing.staying
        target = lanes[epoch % len(lanes)]
        some = [slot for slot in range(slots) if (slot + epoch) % 5 == 0 and routing.slots[0][slot] != target]
        if some and not idle:
            self._requests[f"moves of epoch {epoch}"] = MoveSlots(operator, tuple(some), target)
        return usual(self, routing, epoch, idle)

    Controller.message = message  # type: ignore[method-assign]


class Restless:
    """Moves slots of a run's only operator in every epoch; every few epochs it drains lanes and asks for others."""

    def __init__(self, operator: str, slots: int, seed: int, lanes: Sequence[int] = (), every: int = 4) -> None:
        self.operator = operator
        self.slots = slots
        self.lanes = lanes
        self.every = every
        self._chance = random.Random(seed)
        self._seen = -1
        self._turns = 0

    def watch(self, run: tt.Run) -> None:
        """Do so until the run ends, from a thread of its own."""
        threading.Thread(target=self._watch, args=(run,), daemon=True).start()

    def _watch(self, run: tt.Run) -> None:
        while run.is_active:
            measures = run.history().measures
            newest = measures[-1].epoch if measures else -1
            if newest > self._seen:
                self._seen = newest
                self._turn(run)
            run.query.awaitTermination(0.02)  # type: ignore[arg-type]  # fractions are fine

    def _turn(self, run: tt.Run) -> None:
        """Anything asked for may be impossible by now: a lane may be draining that was not a moment ago."""
        self._turns += 1
        try:
            if self.lanes and self._turns % self.every == 0:
                run.scale(self.lanes[self._turns // self.every % len(self.lanes)])
            if self.lanes and self._turns % self.every == 2:
                run.drain(self._chance.choice(run.routing.staying))
            some = self._chance.sample(range(self.slots), max(1, self.slots // 3))
            run.move(self.operator, some, self._chance.choice(run.routing.staying))
        except FlowError:
            pass
