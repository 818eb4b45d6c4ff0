"""Whether a checkpoint belongs to a flow: its flow record, written once, compared at every open."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trimtab.errors import CheckpointError, DamagedError
from trimtab.ports import ObjectStore
from trimtab.state.envelope import decode, encode
from trimtab.state.records import FLOW, FORMAT, TERMS, FlowRecord, OperatorRecord


class _Format(msgspec.Struct):
    format: int


def settle_flow(store: ObjectStore, flow: FlowRecord) -> None:
    """Give a new checkpoint its flow record; raise a CheckpointError if it has that of a flow that does not fit."""
    try:
        blob = store.read(FLOW)
    except FileNotFoundError:
        # Terms come after the flow record, so an old checkpoint has some.
        if store.list(TERMS):
            raise DamagedError(f"The record '{FLOW}' is missing from the checkpoint {store.url}.") from None
        if store.put_if_absent(FLOW, encode(flow)):
            return
        blob = store.read(FLOW)
    found = decode(FLOW, blob, _Format).format
    if found > FORMAT:
        raise CheckpointError(
            f"The checkpoint {store.url} has format {found}, newer than this version's {FORMAT}: upgrade Trimtab."
        )
    if found < FORMAT:
        raise CheckpointError(
            f"The checkpoint {store.url} has format {found}, of a version before the first release: start the flow on "
            "an empty checkpoint."
        )
    for difference in _differences(decode(FLOW, blob, FlowRecord), flow):
        raise CheckpointError(
            f"The checkpoint {store.url} does not fit flow '{flow.flow}': {difference}. Change the flow back, or "
            "start it on an empty checkpoint."
        )


def _differences(old: FlowRecord, new: FlowRecord) -> Iterator[str]:
    """Sentences without their full stop, the most telling first."""
    if old.flow != new.flow:
        yield f"it belongs to the flow '{old.flow}'"
    if len(old.operators) != len(new.operators):
        names = [[operator.name for operator in flow.operators] for flow in (old, new)]
        yield f"it was made with the keyed operators {names[0]}, the flow now has {names[1]}"
    for before, now in zip(old.operators, new.operators, strict=False):
        yield from _operator_differences(before, now)


def _operator_differences(old: OperatorRecord, new: OperatorRecord) -> Iterator[str]:
    if old.name != new.name:
        yield f"where the flow has the operator '{new.name}', it was made with '{old.name}'"
    if old.kind != new.kind:
        yield f"the operator '{new.name}' was a {old.kind} and is now a {new.kind}"
    if old.slots != new.slots:
        yield f"the operator '{new.name}' had {old.slots} slots and now has {new.slots}"
    if old.key != new.key:
        yield f"the operator '{new.name}' had the key {_columns(old.key)} and now has {_columns(new.key)}"
    if old.state != new.state:
        yield f"the operator '{new.name}' had the state {_columns(old.state)} and now has {_columns(new.state)}"


def _columns(columns: tuple[tuple[str, str], ...]) -> str:
    return "(" + ", ".join(f"{name} {kind}" for name, kind in columns) + ")"
