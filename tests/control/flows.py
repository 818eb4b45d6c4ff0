"""A flow without an engine: slots have work, lanes take time for it, and a real controller decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from trimtab.control.loop import Controller, Policy
from trimtab.control.measure import Layout
from trimtab.vocab import ControlMessage, LaneMeasure, Measure, Routing, SlotMeasures

SECONDS_PER_ROW = 0.001
OVERHEAD = 0.2
Work = Callable[[int], Sequence[float]]
"""Rows of every slot by epoch."""


class HandClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = 1_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


@dataclass
class Flow:
    """Runs epochs of one operator, planning between any two unless it is told not to."""

    work: Work
    lanes: int
    policy: Policy = field(default_factory=Policy)
    speed: dict[int, float] = field(default_factory=dict)
    """By lane, where it is not 1."""
    state: float = 1e6
    executors: Callable[[int, int], str] = lambda epoch, lane: "one"
    clock: HandClock = field(default_factory=HandClock)

    def __post_init__(self) -> None:
        self.slots = len(self.work(0))
        self.epoch = 0
        self.routing = Routing.spread(self.lanes, [self.slots])
        self.messages: list[ControlMessage] = []
        self.controller = Controller(Layout(("totals",), (self.slots,)), self.policy, self.clock)
        self.controller.begin(self.routing)

    def run(self, epochs: int, think: bool = True) -> Flow:
        for _ in range(epochs):
            self.step(think)
        return self

    def step(self, think: bool = True, idle: bool = False) -> Measure:
        """One epoch; an idle one has no rows."""
        message = self.controller.message(self.routing, self.epoch, idle)
        self.routing = self.routing.apply(message)
        measure = self._measure(np.zeros(self.slots) if idle else np.asarray(self.work(self.epoch), float))
        self.clock.time += measure.span
        self.controller.measured(measure, message, self.routing, np.full(self.slots, self.state))
        self.messages.append(message)
        self.epoch += 1
        if think:
            self.controller.think()
        return measure

    def loads(self) -> dict[int, float]:
        """Rows of the next epoch by lane that runs."""
        lanes, work = np.array(self.routing.slots[0]), np.asarray(self.work(self.epoch), float)
        return {lane: float(work[lanes == lane].sum()) for lane in self.routing.running}

    def kinds(self, kind: str) -> list[str]:
        """Why the events of a kind happened."""
        return [event.why for event in self.controller.events if event.kind == kind]

    def _measure(self, work: np.ndarray) -> Measure:
        lanes = np.array(self.routing.slots[0])
        busy = work * SECONDS_PER_ROW / np.array([self.speed.get(lane, 1.0) for lane in lanes.tolist()])
        measures = []
        for lane in self.routing.running:
            here = lanes == lane
            rows, seconds = int(work[here].sum()), float(busy[here].sum())
            measures.append(LaneMeasure(lane, seconds, 0.0, seconds, 0.0, rows, rows, self.executors(self.epoch, lane)))
        counts = work.astype(int).tolist()
        slots = SlotMeasures(0, list(range(self.slots)), counts, counts, counts, busy.tolist())
        seconds = OVERHEAD + max(each.busy for each in measures)
        return Measure(self.epoch, self.clock.now(), sum(counts), seconds, seconds, 0, measures, [slots])
