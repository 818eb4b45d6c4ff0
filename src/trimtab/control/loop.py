"""The adaptation loop: measure, plan, scale, apply (ALBIC, Algorithm 1).

    epochs ──> measured ──> think ──> message ──> the next epoch's claim ──> epochs
               (driver)   (own thread)  (driver)

`measured` and `message` are quick and called between epochs; `think`, which plans, is called by whoever has time for it
and is never waited for. A plan that is ready goes into the next claim, checked against the routing of that moment.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from trimtab.control.advice import Place, advice
from trimtab.control.apply import Composition
from trimtab.control.by_hand import PlanNow, Request, message_for
from trimtab.control.evacuate import evacuation, levelling
from trimtab.control.events import Event, lanes_named
from trimtab.control.ledger import Ledger
from trimtab.control.measure import Layout, Window
from trimtab.control.plan import Proposal, planner_name, propose
from trimtab.control.settings import Control
from trimtab.control.trigger import Trigger
from trimtab.errors import FlowError
from trimtab.planners.live import Live
from trimtab.planners.objective import aim_of
from trimtab.planners.plan import Planner
from trimtab.planners.scaler import NoScaling, Scaler
from trimtab.planners.snapshot import ClusterSnapshot, Floats
from trimtab.ports import Clock
from trimtab.vocab import ControlMessage, Epoch, Measure, Routing

REMEMBERED = 300
ENDED = "The run ended before it could take effect."


@dataclass(frozen=True)
class Policy:
    """Who decides: a planner, or None for balancing off; a scaler; and the settings."""

    planner: Planner | None = None
    scaler: Scaler = field(default_factory=NoScaling)
    settings: Control = field(default_factory=Control)


@dataclass(frozen=True)
class Question:
    """What a planner is asked: all that it may look at, and why now."""

    window: Window
    routing: Routing
    state: Floats
    migration: Floats
    cause: str = ""
    """Empty where there is none to plan."""
    only_scaling: bool = False
    """Planning pauses, but there may be too few lanes."""

    def see(self, routing: Routing) -> ClusterSnapshot:
        """The cluster as it would be seen under a routing."""
        return self.window.snapshot(routing, self.state, self.migration)


class Controller:
    """Decides for one flow. Safe to call from the driver's thread and from the planning one."""

    def __init__(self, layout: Layout, policy: Policy, clock: Clock) -> None:
        self.measures: deque[Measure] = deque(maxlen=REMEMBERED)
        """What the newest epochs saw."""
        self._layout = layout
        self._policy = policy
        self._settings = policy.settings
        self._planner = None if policy.planner is None else Live(policy.planner)
        self._levels = aim_of(policy.planner) == "balance"
        self._clock = clock
        self._ledger = Ledger(policy.settings, clock)
        self._lock = threading.RLock()
        self._window = Window(layout, policy.settings)
        self._routing = Routing(0, ())
        self._state: Floats = np.zeros(layout.total)
        self._requests: dict[str, Request] = {}
        self._ready: Proposal | None = None
        self._plan_now = False
        self._ended = False
        self._thinking_since: float | None = None
        self._overdue = False
        self._stuck = 0
        self._planned: Epoch = -1
        self._moved: Epoch = -1 - policy.settings.cool_down
        self._lanes_planned: tuple[int, ...] = ()
        self._advised: set[Place] = set()

    @property
    def events(self) -> list[Event]:
        """What was decided, oldest first."""
        return list(self._ledger.events)

    @property
    def routing(self) -> Routing:
        """Where every slot is, as of the newest epoch."""
        return self._routing

    @property
    def idle_seconds(self) -> float | None:
        """After how long a quiet is to be told by `rest`; None when it makes no difference."""
        return None if isinstance(self._policy.scaler, NoScaling) else self._settings.idle_seconds

    # What the driver calls, between epochs.

    def begin(self, routing: Routing, past: Iterable[tuple[Measure, Routing]] = ()) -> None:
        """Take up where a checkpoint is, which had these measures last, each under its routing."""
        with self._lock:
            self._routing = routing
            self._lanes_planned = routing.running
            for measure, under in past:
                self._remember(measure, under)
            self._planned = self._window.newest

    def measured(self, measure: Measure, message: ControlMessage, routing: Routing, state: Floats) -> None:
        """An epoch is committed: what it saw, the message it began with, its routing, and bytes of state by slot."""
        with self._lock:
            before = self._window.unevenness(routing)
            usual = [each.seconds for each in self._window.measures if each.rows]
            self._remember(measure, routing)
            self._routing, self._state = routing, state
            if message:
                # A plan for lanes that go, or for less traffic, need not make the lanes more level.
                judged = bool(before) and not routing.draining and self._levels
                self._ledger.applied(measure.epoch, message, before, judged)
            if message.moves:
                self._moved = measure.epoch
                if usual and measure.rows:
                    self._ledger.moved(self._bytes(message), measure.seconds - float(np.median(usual)))
            if measure.rows:
                self._ledger.seen(measure.epoch, self._window.unevenness(routing))
            for request in message.requests:
                self._ledger.note("answered", measure.epoch, "It took effect.", request=request)

    def rest(self, seconds: float) -> None:
        """No epoch has run for so long, up to now. That is measured too, but no commit has it."""
        with self._lock:
            quiet = Measure(self._window.newest, self._clock.now(), span=seconds)
            self._window = self._window.add(quiet, self._routing)
            self._planned = min(self._planned, self._window.newest - self._settings.period)

    def message(self, routing: Routing, epoch: Epoch, idle: bool = False) -> ControlMessage:
        """What changes at the boundary before an epoch. In an idle one draining gets on in any case: nobody waits."""
        with self._lock:
            whole = Composition(routing, self._layout)
            whole.retire()
            for identity, request in self._requests.items():
                self._answer(whole, identity, request, epoch)
            self._requests.clear()
            if self._ready is not None:
                for why in [*self._ready.refusals, *whole.plan(self._ready)]:
                    self._ledger.note("refused", epoch, why)
                self._ready = None
            whole.add(self._without_planner(whole, idle))
            return whole.message()

    def due(self, routing: Routing) -> bool:
        """Whether an epoch without input has something to change: requests by hand, or lanes that come or go."""
        with self._lock:
            ready = self._ready
            scales = ready is not None and bool(ready.message.draining or ready.staying)
            return bool(self._requests or routing.draining or scales)

    def end(self) -> None:
        """There will be no further epoch: requests that wait for one are answered, and no others are taken."""
        with self._lock:
            self._ended = True
            for identity in self._requests:
                self._ledger.note("answered", self._window.newest, ENDED, request=identity)
            self._requests.clear()

    # What people call.

    def ask(self, request: Request, identity: str) -> None:
        """Queue a request for the next epoch. FlowError when it cannot be."""
        with self._lock:
            if self._ended:
                raise FlowError("The run has ended: ask again after the next start.")
            message_for(request, self._routing, self._layout)
            self._requests[identity] = request

    def refuse(self, identity: str, why: str) -> None:
        """Note that a request from elsewhere cannot be."""
        with self._lock:
            self._ledger.note("answered", self._window.newest, why, request=identity)

    def snapshot(self) -> ClusterSnapshot:
        """The cluster as a planner would see it now."""
        with self._lock:
            return self._question().see(self._routing)

    # What control's own threads call.

    def take_unsaved(self) -> list[Event]:
        """The events since the last call."""
        with self._lock:
            return self._ledger.take_unsaved()

    def think(self) -> None:
        """Plan, if there is cause to."""
        with self._lock:
            question = self._question()
            if self._planner is None or not question.cause:
                return
            self._planned, self._plan_now, self._lanes_planned = self._window.newest, False, self._routing.running
            started = self._thinking_since = self._clock.monotonic()
        try:
            self._advise(question)
            proposal = self._propose(self._planner, question)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a planner of the user's own must not end the flow
            self._drop(f"{planner_name(self._planner)} failed: {type(error).__name__}: {error}")
            return
        seconds = self._clock.monotonic() - started
        if seconds > self._settings.plan_seconds:
            self._drop(f"Planning took {seconds:.1f} s; Control(plan_seconds={self._settings.plan_seconds:g}).")
            return
        with self._lock:
            self._thinking_since, self._overdue = None, False
            self._stuck = self._stuck + 1 if proposal.refusals else 0
            self._ready = proposal or None

    def watch(self) -> None:
        """Note that a planner is at it for longer than it may be: draining must not wait for it."""
        with self._lock:
            since, limit = self._thinking_since, self._settings.plan_seconds
            if since is not None and not self._overdue and self._clock.monotonic() - since > limit:
                self._overdue = True
                why = f"{planner_name(self._planner)} has not answered for {limit:g} s: what it says will be dropped."
                self._ledger.note("dropped", self._window.newest, why)

    def _propose(self, planner: Planner, question: Question) -> Proposal:
        layout, scaler = self._layout, self._policy.scaler
        return propose(question.see, question.routing, layout, planner, scaler, question.cause, question.only_scaling)

    def _question(self) -> Question:
        paused, lanes = self._ledger.confidence.paused_until, self._lanes_planned
        trigger = Trigger(self._window, self._routing, self._planned, self._moved, paused, lanes)
        cause, only_scaling = "", False
        if self._plan_now:
            cause = "asked for by hand"
        elif self._ready is None:
            cause = trigger.cause()
            if not cause and not isinstance(self._policy.scaler, NoScaling):
                cause, only_scaling = trigger.scaling_cause(), True
        migration = self._ledger.migration.alpha * self._state
        return Question(self._window, self._routing, self._state, migration, cause, only_scaling)

    def _remember(self, measure: Measure, routing: Routing) -> None:
        self.measures.append(measure)
        self._window = self._window.add(measure, routing)

    def _answer(self, whole: Composition, identity: str, request: Request, epoch: Epoch) -> None:
        why = whole.ask(identity, request)
        if why:
            self._ledger.note("answered", epoch, why, request=identity)
        elif isinstance(request, PlanNow):
            self._plan_now = True

    def _without_planner(self, whole: Composition, idle: bool) -> ControlMessage:
        """What draining and new lanes need where no planner sees to it."""
        routing = whole.routing
        if self._planner is None and len(routing.running) > len(whole.begin.running):
            return ControlMessage(moves=levelling(routing), cause="new lanes take their share of slots")
        helpless = self._planner is None or self._overdue or self._stuck >= self._settings.patience
        leaving = any(move.source in routing.draining for part in whole.parts for move in part.moves)
        if routing.draining and (helpless or (idle and whole.begin.draining and not leaving)):
            most = None if idle or self._settings.max_moves is None else max(self._settings.max_moves, 1)
            moves = evacuation(routing)[:most]
            return ControlMessage(moves=moves, cause=f"{lanes_named(routing.draining)} to be drained")
        return ControlMessage()

    def _bytes(self, message: ControlMessage) -> float:
        """Of the state that a message moves."""
        starts = self._layout.starts
        return float(sum(self._state[int(starts[move.operator]) + move.slot] for move in message.moves))

    def _advise(self, question: Question) -> None:
        found = dict(advice(question.window, question.see(question.routing)))
        with self._lock:
            for place in found.keys() - self._advised:
                self._ledger.note("advice", self._window.newest, found[place])
            self._advised = set(found)

    def _drop(self, why: str) -> None:
        with self._lock:
            self._thinking_since, self._overdue = None, False
            self._stuck += 1
            self._ledger.note("dropped", self._window.newest, why)
