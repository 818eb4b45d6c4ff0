"""The threads of control: one plans, one takes in requests from elsewhere and writes the log. No epoch waits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from trimtab.control.events import Event
from trimtab.control.log import KEPT_EVENTS, KEPT_MEASURES, ControlLog
from trimtab.control.loop import Controller
from trimtab.errors import FencedError, FlowError
from trimtab.planners.snapshot import Floats
from trimtab.ports import Clock
from trimtab.vocab import ControlMessage, Measure, Routing

ROUND_SECONDS = 1.0
GRACE_SECONDS = 2.0
"""How long a run that ends waits for its planner; a plan that comes later would be for nothing."""
SAVED_EVERY = 20

log = logging.getLogger(__name__)


class Background:
    """Serves one controller until it is closed. A store that fails costs the log, never the flow."""

    def __init__(self, controller: Controller, records: ControlLog, clock: Clock) -> None:
        self.controller = controller
        self._records = records
        self._clock = clock
        self._quiet_since: float | None = clock.monotonic()
        self._rested_at = clock.monotonic()
        self._seen: set[str] | None = None
        self._answered: set[str] = set()
        self._events: list[Event] = []
        self._measures: list[Measure] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        """No more planning."""
        self._ended = threading.Event()
        """Nothing more will happen that the log could tell."""
        self._wake = threading.Event()
        self._wake_planner = threading.Event()
        self._planning = threading.Thread(target=self._plan, name="trimtab-planning", daemon=True)
        self._serving = threading.Thread(target=self._serve, name="trimtab-control", daemon=True)
        self._planning.start()
        self._serving.start()

    def began(self) -> None:
        """An epoch runs: it is not quiet."""
        self._quiet_since = None

    def measured(self, measure: Measure, message: ControlMessage, routing: Routing, state: Floats) -> None:
        """What `Controller.measured` says; the threads then look whether it is time to plan, or to write."""
        self.controller.measured(measure, message, routing, state)
        with self._lock:
            self._measures.append(measure)
            self._answered.update(message.requests)
        self._quiet_since = self._rested_at = self._clock.monotonic()
        self._wake.set()
        self._wake_planner.set()

    def close(self) -> None:
        """End the threads; what is not saved yet is saved first."""
        self._closed.set()
        self._wake_planner.set()
        self._planning.join(GRACE_SECONDS)
        self.controller.end()
        self._ended.set()
        self._wake.set()
        self._serving.join()

    def _plan(self) -> None:
        while not self._closed.is_set():
            self._wake_planner.wait()
            self._wake_planner.clear()
            if not self._closed.is_set():
                self.controller.think()
                self._wake.set()

    def _serve(self) -> None:
        try:
            while not self._ended.is_set():
                self._wake.wait(ROUND_SECONDS)
                self._wake.clear()
                self._safely(self._take_requests)
                self._rest()
                self.controller.watch()
                self._safely(self._save_events)
                self._safely(self._forget_answered)
                if len(self._measures) >= SAVED_EVERY:
                    self._safely(self._save_measures)
            self._safely(self._save_events)
            self._safely(self._forget_answered)
            self._safely(self._save_measures)
        except FencedError:
            # The driver that has the checkpoint now takes the requests, and keeps the log.
            log.info("Control ends: another driver has taken the checkpoint over.")

    def _take_requests(self) -> None:
        if self._seen is None:
            # Of requests that an earlier driver took up and did not live to answer.
            claimed = self._records.claimed()
            self._records.forget(claimed)
            self._seen = claimed
        for record in self._records.requests():
            if record.identity not in self._seen:
                self._seen.add(record.identity)
                try:
                    self.controller.ask(record.request, record.identity)
                except FlowError as error:
                    self.controller.refuse(record.identity, str(error))

    def _rest(self) -> None:
        since, limit, now = self._quiet_since, self.controller.idle_seconds, self._clock.monotonic()
        if limit is not None and since is not None and now - self._rested_at >= limit:
            self._rested_at = now
            self.controller.rest(now - since)
            self._wake_planner.set()

    def _save_events(self) -> None:
        self._events = [*self._events, *self.controller.take_unsaved()][-KEPT_EVENTS:]
        self._records.save_events(self._events)
        with self._lock:
            self._answered.update(event.request for event in self._events if event.request)
        self._events = []

    def _forget_answered(self) -> None:
        """A request is taken away when its epoch is committed, or when the reason against it is saved."""
        with self._lock:
            answered = set(self._answered)
        self._records.forget(answered)
        with self._lock:
            self._answered -= answered

    def _save_measures(self) -> None:
        with self._lock:
            self._measures = self._measures[-KEPT_MEASURES * SAVED_EVERY :]
            measures = list(self._measures)
        self._records.save_measures(measures)
        with self._lock:
            self._measures = [each for each in self._measures if each.epoch > measures[-1].epoch] if measures else []
        self._records.collect()

    def _safely(self, step: Callable[[], None]) -> None:
        try:
            step()
        except FencedError:
            raise
        except Exception as error:  # noqa: BLE001 - stores fail in ways of their own, and the flow goes on
            log.warning("The log of control is behind: %s", error)
