"""Asking a flow that runs in another process for something, through its checkpoint."""

from __future__ import annotations

from pathlib import Path

from trimtab.control.by_hand import Request, message_for
from trimtab.control.events import Event
from trimtab.control.log import RequestRecord, put_request, read_events
from trimtab.control.measure import Layout
from trimtab.errors import CheckpointError
from trimtab.ports import Clock, ObjectStore, Rng
from trimtab.state.envelope import read_record
from trimtab.state.records import FLOW, FlowRecord
from trimtab.state.recovery import recover
from trimtab.state.store import open_store


def ask(checkpoint: str, request: Request, clock: Clock, rng: Rng) -> tuple[ObjectStore, RequestRecord]:
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
    record = RequestRecord(rng.identity(), clock.now(), request)
    put_request(store, record)
    return store, record


def answer_to(store: ObjectStore, record: RequestRecord) -> Event | None:
    """What became of a request; None while nothing has."""
    return next((event for event in reversed(read_events(store)) if event.request == record.identity), None)
