"""When to plan: by hand, because lanes come or go, because something changed, or because it is time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trimtab.control.events import lanes_named
from trimtab.control.measure import Window
from trimtab.vocab import Epoch, LaneId, Routing


@dataclass(frozen=True)
class Trigger:
    """What there is to know for it: `planned` and `moved` are the epochs after which that happened last."""

    window: Window
    routing: Routing
    planned: Epoch
    moved: Epoch
    paused_until: Epoch
    lanes_planned: tuple[LaneId, ...]

    def cause(self) -> str:
        """Why to plan now; empty if it is not time to. Nothing is planned twice after one epoch."""
        newest = self.window.newest
        if newest <= self.planned:
            return ""
        return self._lanes() or ("" if self._resting() else self._change() or ("" if self._paused else self._period()))

    def scaling_cause(self) -> str:
        """Why to ask the scaler now, although planning pauses: too few lanes are no fault of the planner's."""
        newest = self.window.newest
        return self._period() if newest > self.planned and self._paused and not self._resting() else ""

    @property
    def _paused(self) -> bool:
        """Whether plans did not help of late."""
        return self.window.newest < self.paused_until

    def _lanes(self) -> str:
        if waiting := sorted(set(self.routing.draining) - set(self.routing.emptied)):
            return f"{lanes_named(waiting)} to be drained"
        if self.routing.running != self.lanes_planned:
            return f"the lanes that run are {list(self.routing.running)} now"
        return ""

    def _resting(self) -> bool:
        """Slots have moved just now, or too little was measured yet."""
        settings, newest = self.window.settings, self.window.newest
        full = len(self.window.measures) == settings.window
        # A quiet is peace enough.
        cooling = newest <= self.moved + settings.cool_down - 1 and bool(self.window.measures[-1].lanes)
        return cooling or not full

    def _change(self) -> str:
        older, newer = self.window.measures[-2:] if len(self.window.measures) > 1 else (None, None)
        if older is None or newer is None or not older.lanes or not newer.lanes:
            return ""
        if {each.executor for each in older.lanes} != {each.executor for each in newer.lanes}:
            return "lanes have other executors"
        threshold = self.window.settings.change
        if threshold is None:
            return ""
        steps = np.abs(self.window.lane_loads(newer, self.routing) - self.window.lane_loads(older, self.routing))
        lane = int(steps.argmax())
        if steps[lane] < threshold:
            return ""
        return f"the load of lane {self.routing.running[lane]} changed by {steps[lane]:.0f} points"

    def _period(self) -> str:
        newest = self.window.newest
        return f"measured until epoch {newest}" if newest - self.planned >= self.window.settings.period else ""
