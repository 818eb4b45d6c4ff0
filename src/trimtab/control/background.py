"""The thread of control: it plans, takes in requests from elsewhere, and writes the log; no epoch waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from trimtab.control.log import ControlLog
from trimtab.control.loop import Controller
from trimtab.errors import FlowError
from trimtab.planners.snapshot import Floats
from trimtab.ports import Clock
from trimtab.vocab import ControlMessage, Measure, Routing

ROUND_SECONDS = 1.0
SAVED_EVERY = 20

log = logging.getLogger(__name__)


class Background:
    """Serves one controller until it is closed. A store that fails costs the log, never the flow."""

    def __init__(self, controller: Controller, records: ControlLog, clock: Clock) -> None:
        self.controller = controller
        self._records = records
        self._clock = clock
        self._quiet_since = clock.monotonic()
        self._seen: set[str] = set()
        self._unsaved: list[Measure] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="trimtab-control", daemon=True)
        self._thread.start()

    def measured(self, measure: Measure, message: ControlMessage, routing: Routing, state: Floats) -> None:
        """What `Controller.measured` says; the thread then looks whether it is time to plan."""
        self.controller.measured(measure, message, routing, state)
        with self._lock:
            self._unsaved.append(measure)
            self._quiet_since = self._clock.monotonic()
        self._wake.set()

    def close(self) -> None:
        """End the thread; what is not saved yet is saved first."""
        self._closed = True
        self._wake.set()
        self._thread.join()

    def _serve(self) -> None:
        self._safely(self._forget_claimed)
        while not self._closed:
            self._wake.wait(ROUND_SECONDS)
            self._wake.clear()
            self._safely(self._take_requests)
            self._rest()
            self.controller.think()
            self._safely(self._save_events)
            if len(self._unsaved) >= SAVED_EVERY:
                self._safely(self._save_measures)
        self._safely(self._save_events)
        self._safely(self._save_measures)

    def _forget_claimed(self) -> None:
        """Of requests that an earlier driver took up and did not live to answer."""
        self._seen = self._records.claimed()
        self._records.forget(self._seen)

    def _take_requests(self) -> None:
        for record in self._records.requests():
            if record.identity not in self._seen:
                self._seen.add(record.identity)
                try:
                    self.controller.ask(record.request, record.identity)
                except FlowError as error:
                    self.controller.refuse(record.identity, str(error))

    def _rest(self) -> None:
        quiet, limit = self._clock.monotonic() - self._quiet_since, self.controller.idle_seconds
        if limit is not None and quiet >= limit:
            self._quiet_since = self._clock.monotonic()
            self.controller.rest(quiet)

    def _save_events(self) -> None:
        events = self.controller.take_unsaved()
        self._records.save_events(events)
        self._records.forget([event.request for event in events if event.request])

    def _save_measures(self) -> None:
        with self._lock:
            measures, self._unsaved = self._unsaved, []
        self._records.save_measures(measures)
        self._records.collect()

    def _safely(self, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError as error:
            log.warning("The log of control is behind: %s", error)
