"""Manifests against a plain model: slots with lists of runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.state.manifest import Manifest
from trimtab.state.records import Commit, SegmentId, SegmentRecord, segment_name
from trimtab.vocab import Measure, Routing

SLOTS = 5


@dataclass
class Model:
    """Runs by (operator, slot), newest first, each as (segment, start, stop)."""

    runs: dict[tuple[int, int], list[tuple[str, int, int]]] = field(default_factory=dict)

    def add(self, record: SegmentRecord) -> None:
        for slot, start, stop, folded in zip(
            record.slots, record.offsets, record.offsets[1:], record.folded, strict=False
        ):
            older = self.runs.get((record.operator, slot), [])[folded:]
            self.runs[record.operator, slot] = ([(record.name, start, stop)] if stop > start else []) + older


@st.composite
def histories(draw: st.DrawFn) -> list[list[SegmentRecord]]:
    """Epochs of segments that could have been: a slot once an operator and hop, folds within chains."""
    model, epochs = Model(), []
    for epoch in range(draw(st.integers(0, 8))):
        segments: list[SegmentRecord] = []
        for hop in range(draw(st.integers(1, 2))):
            for operator in range(2):
                segments += [_segment(draw, model, SegmentId(epoch, hop, lane, operator)) for lane in range(2)]
            for segment in segments:
                if segment.name.split("-")[1] == f"{hop:02d}":
                    model.add(segment)
        epochs.append(draw(st.permutations(segments)))
    return epochs


def _segment(draw: st.DrawFn, model: Model, identity: SegmentId) -> SegmentRecord:
    slots = [slot for slot in range(SLOTS) if slot % 2 == identity.lane and draw(st.booleans())]
    sizes = [draw(st.integers(0, 3)) for _ in slots]
    folded = [draw(st.integers(0, len(model.runs.get((identity.operator, slot), [])))) for slot in slots]
    offsets = [0, *np.cumsum(sizes).tolist()] if slots else [0]
    name, rows = segment_name(identity, "d"), sum(sizes)
    return SegmentRecord(name, identity.operator, rows * 8, rows, slots, offsets, folded, fresh=rows)


def commit_of(epoch: int, segments: list[SegmentRecord]) -> Commit:
    routing = Routing.spread(2, [SLOTS, SLOTS])
    return Commit(epoch, epoch, 1, segments, {"s": epoch}, Measure(), epoch, "q", routing, {"s": epoch - 1})


def replayed(history: list[list[SegmentRecord]]) -> tuple[Manifest, Model]:
    manifest, model = Manifest(), Model()
    for epoch, segments in enumerate(history):
        manifest = manifest.apply(commit_of(epoch, segments))
        for segment in sorted(segments, key=lambda each: each.name):
            model.add(segment)
    return manifest, model


def chains_of(manifest: Manifest) -> dict[tuple[int, int], list[tuple[str, int, int]]]:
    found: dict[tuple[int, int], list[tuple[str, int, int]]] = {}
    for operator, chains in manifest.chains.items():
        for segment, slot, start, stop in zip(*chains.lists(), strict=True):
            found.setdefault((operator, slot), []).append((manifest.segments[segment].name, start, stop))
    return found


def filled(
    runs: dict[tuple[int, int], list[tuple[str, int, int]]],
) -> dict[tuple[int, int], list[tuple[str, int, int]]]:
    return {place: chain for place, chain in runs.items() if chain}


@settings(max_examples=80, deadline=None)
@given(histories())
def test_commits_apply_as_to_a_model(history: list[list[SegmentRecord]]) -> None:
    manifest, model = replayed(history)
    assert chains_of(manifest) == filled(model.runs)
    assert manifest.referenced == {name for chain in model.runs.values() for name, _, _ in chain}
    assert manifest.epoch == len(history) - 1


@settings(max_examples=80, deadline=None)
@given(histories(), st.sets(st.integers(0, SLOTS - 1)))
def test_references_are_newest_first_and_of_the_slots_asked_for(history, wanted) -> None:
    manifest, model = replayed(history)
    for operator in range(2):
        chains: dict[int, list[tuple[str, int, int]]] = {}
        references = manifest.runs_for(operator, wanted)
        for reference in references:
            assert reference.slots == sorted(reference.slots)
            assert reference.starts == sorted(reference.starts)
            for slot, start, stop in zip(reference.slots, reference.starts, reference.stops, strict=True):
                chains.setdefault(slot, []).append((reference.name, start, stop))
        expected = {
            slot: chain for (op, slot), chain in filled(model.runs).items() if op == operator and slot in wanted
        }
        assert chains == expected
        assert len({reference.name for reference in references}) == len(references)
        assert manifest.runs_of(operator) == manifest.runs_for(operator, range(SLOTS))


@settings(max_examples=80, deadline=None)
@given(histories())
def test_rows_add_up(history: list[list[SegmentRecord]]) -> None:
    manifest, model = replayed(history)
    for operator in range(2):
        expected = [sum(b - a for _, a, b in model.runs.get((operator, slot), [])) for slot in range(SLOTS)]
        assert manifest.slot_rows(operator, SLOTS).tolist() == expected
        assert manifest.slot_bytes(operator, SLOTS).tolist() == [8 * rows for rows in expected]
    live = dict.fromkeys(manifest.referenced, 0)
    for chain in model.runs.values():
        for name, start, stop in chain:
            live[name] += stop - start
    assert manifest.live_rows.tolist() == [live[segment.name] for segment in manifest.segments]
    assert ((manifest.live_share > 0) & (manifest.live_share <= 1)).all()


@settings(max_examples=50, deadline=None)
@given(histories())
def test_a_record_holds_all_of_a_manifest(history: list[list[SegmentRecord]]) -> None:
    manifest, _ = replayed(history)
    restored = Manifest.from_record(manifest.to_record())
    assert restored.to_record() == manifest.to_record()
    assert chains_of(restored) == chains_of(manifest)


def test_extending_changes_chains_and_nothing_else() -> None:
    record = SegmentRecord(segment_name(SegmentId(0, 0, 0, 0), "d"), 0, 8, 1, [3], [0, 1], [0], 1)
    manifest = Manifest().extended([record])
    assert manifest.epoch == -1
    assert manifest.runs_of(0)[0].slots == [3]
    assert manifest.runs_of(1) == []
