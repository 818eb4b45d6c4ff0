"""The ledger of decisions: what was done and why, what came of it, and what moving state has cost so far."""

from __future__ import annotations

from collections import deque

from trimtab.control.effect import Confidence, Trial
from trimtab.control.events import Event, Kind
from trimtab.control.migration import MigrationCost
from trimtab.control.settings import Control
from trimtab.ports import Clock
from trimtab.vocab import ControlMessage, Epoch

REMEMBERED = 10_000


class Ledger:
    """Keeps the newest events, and learns from the plans among them."""

    def __init__(self, settings: Control, clock: Clock) -> None:
        self.events: deque[Event] = deque(maxlen=REMEMBERED)
        self.migration = MigrationCost()
        self.confidence = Confidence(settings.patience, settings.period)
        self._settings = settings
        self._clock = clock
        self._unsaved: list[Event] = []
        self._trial: Trial | None = None

    def note(
        self,
        kind: Kind,
        epoch: Epoch,
        why: str,
        message: ControlMessage | None = None,
        figures: dict[str, float] | None = None,
        request: str = "",
    ) -> None:
        """Remember an event."""
        event = Event(kind, epoch, self._clock.now(), why, message, figures or {}, request)
        self.events.append(event)
        self._unsaved.append(event)

    def take_unsaved(self) -> list[Event]:
        """The events since the last call."""
        events, self._unsaved = self._unsaved, []
        return events

    def applied(self, epoch: Epoch, message: ControlMessage, before: float, judged: bool = True) -> None:
        """A message took effect; if it was a plan's, its effect is measured from here on, against `before`.

        Whether it helped counts for the planner only where `judged`.
        """
        self.note("applied", epoch, message.cause, message)
        if message.moves and self._trial is not None:
            self._judge(self._trial, epoch)
        if message.moves:
            self._trial = None if message.expected is None else Trial(epoch, message.expected, before, judged)

    def moved(self, size: float, seconds: float) -> None:
        """So many bytes of state were moved in an epoch that took so much longer than others."""
        self.migration = self.migration.after(size, seconds)

    def seen(self, epoch: Epoch, unevenness: float) -> None:
        """How uneven the lanes' loads were in an epoch."""
        if self._trial is not None:
            self._trial = self._trial.seen(unevenness)
            if len(self._trial.measured) >= self._settings.effect_after:
                self._judge(self._trial, epoch)
                self._trial = None

    def _judge(self, trial: Trial, epoch: Epoch) -> None:
        verdict = "helped" if trial.helped else "did not help"
        self.note("effect", trial.epoch, f"The plan of epoch {trial.epoch} {verdict}.", figures=trial.figures)
        if not trial.judged:
            return
        pauses = self.confidence.pauses
        self.confidence = self.confidence.after(trial.helped, epoch)
        if self.confidence.pauses > pauses:
            until = self.confidence.paused_until
            why = f"{self._settings.patience} plans in a row did not help: no planning before epoch {until}."
            self.note("backed off", epoch, why)
