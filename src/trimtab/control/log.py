"""What control keeps in the checkpoint, beside its state: measures, events, and requests from other processes.

    requests/<identity>                     asked for from outside, until it is answered
    history/<epoch>-<term>-<number>         events, some to a blob
    measures/<epoch>-<term>                 the measures of some epochs up to this one

None of it decides what the state is: it may be behind after a crash by what was not saved yet, which commits and claims
still know. What is old goes, so that it stays small however long a flow runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from trimtab.control.by_hand import Request
from trimtab.control.events import Event
from trimtab.errors import CheckpointError, DamagedError
from trimtab.ports import ObjectStore
from trimtab.state.envelope import decode, encode, read_record
from trimtab.state.records import CLAIMS, COMMITS, Claim, Commit, number_of
from trimtab.vocab import Measure, Routing

REQUESTS = "requests/"
HISTORY = "history/"
MEASURES = "measures/"
KEPT_EVENTS = 1_000
KEPT_MEASURES = 50

T = TypeVar("T")
D = TypeVar("D")


class RequestRecord(msgspec.Struct, frozen=True):
    """A request from another process."""

    identity: str
    at: float
    request: Request


class EventsRecord(msgspec.Struct, frozen=True):
    events: list[Event]


class MeasuresRecord(msgspec.Struct, frozen=True):
    measures: list[Measure]


class ControlLog:
    """Writes a driver's measures and events, and takes in requests.

    `check_term` raises a FencedError once another driver has the checkpoint: requests are for that one then, and an
    overtaken driver deletes nothing.
    """

    def __init__(self, store: ObjectStore, term: int, check_term: Callable[[str], None]) -> None:
        self._store = store
        self._term = term
        self._check_term = check_term
        self._written = 0

    def requests(self) -> list[RequestRecord]:
        """What was asked for from outside and has not been taken back, in the order in which it was."""
        names = self._store.list(REQUESTS)
        if names:
            self._check_term("it took in requests")
        found = []
        for name in names:
            try:
                found.append(read_record(self._store, name, RequestRecord))
            except DamagedError:
                # Whoever wrote it died in the middle: there is nobody to answer.
                self._store.delete([name])
            except CheckpointError:
                # A newer version's: it stays for one that knows it.
                continue
        return sorted(found, key=lambda each: (each.at, each.identity))

    def claimed(self) -> set[str]:
        """The requests that some claim has taken up: they take effect with it, and must not do so again."""
        claims = [_read(self._store, name, Claim, None) for name in self._store.list(CLAIMS)]
        return {request for claim in claims if claim is not None for request in claim.message.requests}

    def forget(self, requests: Iterable[str]) -> None:
        """Take requests away that are answered."""
        if names := [f"{REQUESTS}{identity}" for identity in requests]:
            self._check_term("it took requests away")
            self._store.delete(names)

    def save_events(self, events: Sequence[Event]) -> None:
        """Keep events; nothing is written where there are none."""
        if events:
            self._written += 1
            name = f"{HISTORY}{max(events[-1].epoch, 0):012d}-{self._term:08d}-{self._written:06d}"
            self._store.put_if_absent(name, encode(EventsRecord(list(events))))

    def save_measures(self, measures: Sequence[Measure]) -> None:
        """Keep the measures of some epochs."""
        if measures:
            name = f"{MEASURES}{measures[-1].epoch:012d}-{self._term:08d}"
            self._store.put_if_absent(name, encode(MeasuresRecord(list(measures))))

    def collect(self) -> None:
        """Let go of what is old."""
        self._check_term("it collected garbage")
        self._store.delete(self._store.list(HISTORY)[:-KEPT_EVENTS])
        self._store.delete(self._store.list(MEASURES)[:-KEPT_MEASURES])


def put_request(store: ObjectStore, record: RequestRecord) -> None:
    """Ask a flow that runs elsewhere on this checkpoint for something."""
    store.put_if_absent(f"{REQUESTS}{record.identity}", encode(record))


def withdraw_request(store: ObjectStore, identity: str) -> None:
    """Take back what was asked for, if it is still there."""
    store.delete([f"{REQUESTS}{identity}"])


def newest_measures(store: ObjectStore, number: int) -> list[tuple[Measure, Routing]]:
    """Those of the last commits, each with the routing under which its epoch ran."""
    commits = [_read(store, name, Commit, None) for name in store.list(COMMITS)[-number:]]
    return [(commit.measure, commit.routing) for commit in commits if commit is not None and commit.routing is not None]


def read_measures(store: ObjectStore) -> list[Measure]:
    """What a checkpoint knows of its epochs, oldest first: saved measures, and those of newer commits."""
    found: dict[int, Measure] = {}
    for name in store.list(MEASURES):
        for measure in _read(store, name, MeasuresRecord, MeasuresRecord([])).measures:
            found[measure.epoch] = measure
    for name in store.list(COMMITS):
        if number_of(name) not in found and (commit := _read(store, name, Commit, None)):
            found[commit.epoch] = commit.measure
    return [found[epoch] for epoch in sorted(found)]


def read_events(store: ObjectStore) -> list[Event]:
    """What a checkpoint knows of decisions, oldest first: saved events, and messages that took effect since."""
    events = [event for name in store.list(HISTORY) for event in events_of(store, name)]
    applied = {event.epoch for event in events if event.kind == "applied"}
    committed = {number_of(name) for name in store.list(COMMITS)}
    for name in store.list(CLAIMS):
        epoch = number_of(name)
        if epoch in committed and epoch not in applied and (claim := _read(store, name, Claim, None)) and claim.message:
            at = claim.processing_time / 1e6
            events.append(Event("applied", epoch, at, claim.message.cause, claim.message))
    return sorted(events, key=lambda event: event.at)


def events_of(store: ObjectStore, name: str) -> list[Event]:
    """Those of one blob."""
    return _read(store, name, EventsRecord, EventsRecord([])).events


def _read(store: ObjectStore, name: str, kind: type[T], otherwise: D) -> T | D:
    """A record, or something else where it has just been deleted, or is damaged: nothing depends on it."""
    try:
        return decode(name, store.read(name), kind)
    except (FileNotFoundError, CheckpointError):
        return otherwise
