"""Asking a flow that runs in another process for something, through its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trimtab.control.by_hand import Request, message_for
from trimtab.control.events import Event
from trimtab.control.log import HISTORY, RequestRecord, events_of, put_request, withdraw_request
from trimtab.control.measure import Layout
from trimtab.errors import CheckpointError
from trimtab.ports import Clock, ObjectStore, Rng
from trimtab.state.envelope import read_record
from trimtab.state.records import FLOW, FlowRecord
from trimtab.state.recovery import recover
from trimtab.state.store import open_store


@dataclass
class Asked:
    """A request that waits in a checkpoint."""

    store: ObjectStore
    identity: str
    _read: set[str]
    """The blobs of the log that cannot have the answer, or have been looked at."""

    def answer(self) -> Event | None:
        """What became of it; None while nothing has."""
        fresh = [name for name in self.store.list(HISTORY) if name not in self._read]
        self._read.update(fresh)
        events = (event for name in fresh for event in events_of(self.store, name))
        return next((event for event in events if event.request == self.identity), None)

    def withdraw(self) -> None:
        """Take it back, unless a run has taken it up already."""
        withdraw_request(self.store, self.identity)


def ask(checkpoint: str, request: Request, clock: Clock, rng: Rng) -> Asked:
    """Put a request into a checkpoint, if it makes sense there; FlowError or CheckpointError if it does not."""
    if "://" not in checkpoint and not Path(checkpoint).is_dir():
        raise CheckpointError(f"There is no checkpoint {checkpoint}.")
    store = open_store(checkpoint)
    flow = read_record(store, FLOW, FlowRecord)
    routing = recover(store, lambda claim: True).manifest.routing
    if routing is None:
        raise CheckpointError(f"Flow '{flow.flow}' on {store.url} has not run an epoch yet: ask again when it has.")
    layout = Layout(tuple(each.name for each in flow.operators), tuple(each.slots for each in flow.operators))
    message_for(request, routing, layout)
    record, before = RequestRecord(rng.identity(), clock.now(), request), set(store.list(HISTORY))
    put_request(store, record)
    return Asked(store, record.identity, before)
