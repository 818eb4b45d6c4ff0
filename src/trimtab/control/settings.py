"""What a user may set about the control of a running flow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from trimtab.errors import FlowError
from trimtab.planners.snapshot import Limits


@dataclass(frozen=True)
class Control:
    """How a running flow is measured and kept level. Times are counted in epochs unless it says seconds.

    >>> Control(window=3).window
    3
    """

    window: int = 5
    """How many past epochs a planner sees."""
    period: int = 1
    """A plan is made every so many epochs."""
    change: float | None = None
    """A plan is made at once when the load of a lane differs by so many percentage points from the epoch before."""
    cool_down: int = 1
    """For so many epochs after slots have moved none is made, so that what was measured is measured in peace."""
    max_moves: int | None = None
    """The most slots that one plan may move."""
    max_migration: float | None = None
    """The most seconds that the moves of one plan may take, as fitted from those measured before."""
    max_load_distance: float = 5.0
    """In percentage points of lane capacity: what planners that trade balance for traffic keep to."""
    load: Literal["busy", "rows"] = "busy"
    """What the load of a slot is: the time its lane spent on it, or the rows that reached the lane (AutoFlow's)."""
    plan_seconds: float = 10.0
    """A plan that takes longer is dropped."""
    effect_after: int = 3
    """So many epochs after a plan was applied, its effect is measured."""
    patience: int = 3
    """After so many plans in a row that did not help, planning pauses, each time twice as long."""
    idle_seconds: float = 10.0
    """When no epoch ran for so long, that quiet is measured too, so that lanes nobody needs can go."""
    memory_per_lane: float = 2e9
    """Bytes of state that a lane can hold well: what its memory is compared with."""
    network_per_lane: float = 1.25e8
    """Bytes a second that can reach a lane: what its network is compared with."""

    def __post_init__(self) -> None:
        for name in ("window", "period", "effect_after", "patience"):
            self._at_least(name, 1, whole=True)
        for name in ("cool_down", "max_moves"):
            self._at_least(name, 0, whole=True)
        for name in ("change", "max_migration", "max_load_distance"):
            self._at_least(name, 0)
        for name in ("plan_seconds", "idle_seconds", "memory_per_lane", "network_per_lane"):
            if not 0 < getattr(self, name) < math.inf:
                raise FlowError(f"Control({name}={getattr(self, name)}): it has to be a finite number above 0.")
        if self.load not in ("busy", "rows"):
            raise FlowError(f"Control(load={self.load!r}): it has to be 'busy' or 'rows'.")

    @property
    def limits(self) -> Limits:
        """What a plan may cost."""
        return Limits(self.max_migration, self.max_moves, self.max_load_distance)

    def _at_least(self, name: str, least: int, whole: bool = False) -> None:
        value = getattr(self, name)
        if value is None:
            return
        if whole and not isinstance(value, int):
            raise FlowError(f"Control({name}={value!r}): it has to be a whole number.")
        if not least <= value < math.inf:
            raise FlowError(f"Control({name}={value}): it has to be {least} or more.")
