"""Measure: from what epochs saw to the snapshot that planners see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from trimtab.control.effect import unevenness
from trimtab.control.settings import Control
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints
from trimtab.vocab import Epoch, LaneId, Measure, Routing, SlotMeasures

FULL = 100.0
"""The capacity of a lane of usual speed: loads are in percent of it."""
RESOURCES = ("cpu", "memory", "network")
UNLIKE = 0.1
"""Executors whose speeds differ by less count as alike."""


@dataclass(frozen=True)
class Layout:
    """The keyed operators of a flow by name, with how many slots each has. Slots of all of them are counted through."""

    operators: tuple[str, ...]
    slots: tuple[int, ...]

    @property
    def starts(self) -> Ints:
        """The number of each operator's first slot, and of all slots at the end."""
        return np.concatenate([[0], np.cumsum(self.slots)]).astype(np.int64)

    @property
    def total(self) -> int:
        return sum(self.slots)

    @property
    def operator(self) -> Ints:
        """The operator of every slot."""
        return np.repeat(np.arange(len(self.slots)), self.slots)


@dataclass(frozen=True)
class Seen:
    """What an epoch saw, and the routing under which it ran."""

    measure: Measure
    routing: Routing


@dataclass(frozen=True)
class Window:
    """What the last epochs saw, oldest first. Immutable: a planner can look at it while epochs go on.

    A measure without lanes is of a quiet that goes on, and always the newest.
    """

    layout: Layout
    settings: Control
    seen: tuple[Seen, ...] = ()

    def add(self, measure: Measure, routing: Routing) -> Window:
        """The window with one more epoch, or with a quiet in the place of the one that was known so far."""
        quiet = bool(self.seen) and not self.seen[-1].measure.lanes
        # The span of an epoch reaches back to the end of the one before, and has the quiet in it.
        past = self.seen[:-1] if quiet else self.seen
        return replace(self, seen=(*past, Seen(measure, routing))[-self.settings.window :])

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(each.measure for each in self.seen)

    @property
    def newest(self) -> Epoch:
        """The epoch measured last; -1 before there is one."""
        return self.measures[-1].epoch if self.measures else -1

    def snapshot(self, routing: Routing, state: Floats, migration: Floats) -> ClusterSnapshot:
        """The cluster as planners see it: lanes that run, in their order, and loads as means over the window.

        `state` is in bytes by slot, `migration` what it costs to move each.
        """
        running = np.array(routing.running)
        lane = np.searchsorted(running, np.concatenate([np.asarray(each, np.int64) for each in routing.slots]))
        memory = FULL * state / self.settings.memory_per_lane
        network = FULL * self._past("bytes").sum(axis=0) / self.span / self.settings.network_per_lane
        return ClusterSnapshot(
            operators=self.layout.operators,
            operator=self.layout.operator,
            loads=np.stack([self._cpu(), memory, network], axis=1),
            state=migration,
            lane=lane.astype(np.int64),
            capacity=FULL * self.speeds(routing),
            draining=np.isin(running, np.array(routing.draining, np.int64)),
            hosts=tuple(self.homes(routing)),
            resources=RESOURCES,
            window=self._busy if self.settings.load == "busy" else self._past("work"),
            limits=self.settings.limits,
        )

    def lane_loads(self, measure: Measure, routing: Routing) -> Floats:
        """What share of an epoch's span every running lane was at work, in percent: measured, not attributed."""
        busy = {each.lane: each.busy + each.write for each in measure.lanes}
        return FULL * np.array([busy.get(lane, 0.0) for lane in routing.running]) / (measure.span or 1.0)

    def unevenness(self, routing: Routing) -> float:
        """How uneven the loads of the lanes that stay were in the newest epoch with rows, in percent of their mean."""
        newest = next((measure for measure in reversed(self.measures) if measure.rows), None)
        if newest is None:
            return 0.0
        stays = np.isin(np.array(routing.running), np.array(routing.staying))
        return unevenness(self.lane_loads(newest, routing)[stays])

    def speeds(self, routing: Routing) -> Floats:
        """How fast each running lane's executor is, 1 being usual."""
        return np.array([self._speeds.get(home, 1.0) for home in self.homes(routing)])

    @cached_property
    def _speeds(self) -> dict[str, float]:
        """By executor: work done in a second of busy time, against what is usual."""
        spent: dict[str, float] = {}
        done: dict[str, float] = {}
        for each in (lane for measure in self.measures for lane in measure.lanes):
            spent[each.executor] = spent.get(each.executor, 0.0) + each.busy
            done[each.executor] = done.get(each.executor, 0.0) + each.work
        rates = {name: done[name] / spent[name] for name in spent if spent[name] > 0 and done[name] > 0}
        usual = float(np.median(list(rates.values()))) if rates else 1.0
        speeds = {name: rate / usual for name, rate in rates.items()}
        return {name: 1.0 if abs(speed - 1) < UNLIKE else min(max(speed, 0.1), 10.0) for name, speed in speeds.items()}

    def homes(self, routing: Routing) -> list[str]:
        """The executor that each running lane was on last."""
        home: dict[LaneId, str] = {each.lane: each.executor for measure in self.measures for each in measure.lanes}
        return [home.get(lane, "") for lane in routing.running]

    @cached_property
    def span(self) -> float:
        """Seconds that the window covers."""
        return sum(each.span for each in self.measures) or 1.0

    def _cpu(self) -> Floats:
        busy = self._busy.sum(axis=0)
        if self.settings.load == "rows":
            # Rows in the place of seconds, in the same unit: what a row took on average, over all slots.
            work = self._past("work").sum(axis=0)
            busy = work * (busy.sum() / (work.sum() or 1.0))
        return np.asarray(FULL * busy / self.span)

    @cached_property
    def _busy(self) -> Floats:
        """Seconds by epoch and slot, as a lane of usual speed would have taken: capacities have the speed in them."""
        rows = [self._by_slot(each.measure, "busy") * self._speed_of_slots(each) for each in self.seen]
        return np.stack(rows) if rows else np.zeros((0, self.layout.total))

    def _speed_of_slots(self, seen: Seen) -> Floats:
        """How fast the lane was that each slot was on."""
        speed = np.ones(seen.routing.lanes)
        for each in seen.measure.lanes:
            speed[each.lane] = self._speeds.get(each.executor, 1.0)
        return np.concatenate([speed[np.asarray(lanes, np.int64)] for lanes in seen.routing.slots])

    def _past(self, field: str) -> Floats:
        """By epoch and slot."""
        rows = [self._by_slot(measure, field) for measure in self.measures]
        return np.stack(rows) if rows else np.zeros((0, self.layout.total))

    def _by_slot(self, measure: Measure, field: str) -> Floats:
        total = np.zeros(self.layout.total)
        for each in measure.slots:
            slots = np.asarray(each.slots, np.int64) + self.layout.starts[each.operator]
            np.add.at(total, slots, np.asarray(getattr(each, field), np.float64))
        return total


def combined(parts: Sequence[Sequence[SlotMeasures]]) -> list[SlotMeasures]:
    """What several lanes say of the slots of each operator, as one; a slot is on one lane at a time."""
    by_operator: dict[int, list[SlotMeasures]] = {}
    for part in parts:
        for each in part:
            by_operator.setdefault(each.operator, []).append(each)
    return [_joined(operator, some) for operator, some in sorted(by_operator.items())]


def _joined(operator: int, parts: Sequence[SlotMeasures]) -> SlotMeasures:
    columns = (
        [value for part in parts for value in getattr(part, name)] for name in SlotMeasures.__struct_fields__[1:]
    )
    return SlotMeasures(operator, *columns)
