"""The steps of a checkpoint's life: claims, commits, terms, garbage, and flows that do not fit."""

from __future__ import annotations

import logging
from dataclasses import replace as replaced
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from tests.state.doubles import (
    FLOW,
    OPERATOR,
    SLOTS,
    FullStore,
    MemoryStore,
    lane_table,
    make_claim,
    make_commit,
    open_checkpoint,
    read_state,
    rows,
    run_epoch,
    write,
)

from trimtab.errors import CheckpointError, DamagedError, FencedError
from trimtab.state.envelope import encode
from trimtab.state.invariants import PREDICATES, check
from trimtab.state.manifest import Manifest
from trimtab.state.merging import choose_folds
from trimtab.state.protocol import FULL_EVERY, Checkpoint
from trimtab.state.records import FORMAT, Commit, FlowRecord, SegmentId, SegmentRecord, segment_name
from trimtab.state.store import LocalStore
from trimtab.vocab import Measure


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_new_checkpoint_begins_at_epoch_nought(store: MemoryStore) -> None:
    checkpoint = open_checkpoint(store)
    assert (checkpoint.next_epoch, checkpoint.term, checkpoint.last_batch) == (0, 1, None)
    assert (checkpoint.routing, checkpoint.query, checkpoint.pending_claim()) == (None, None, None)
    assert read_state(checkpoint) == {}


def test_state_and_what_goes_with_it_survive_reopening(store: MemoryStore) -> None:
    checkpoint = open_checkpoint(store)
    for epoch in range(2 * FULL_EVERY + 3):
        run_epoch(checkpoint, {epoch: epoch, 0: epoch}, batch=epoch)
    again = open_checkpoint(store)
    assert again.manifest.to_record() == msgspec.structs.replace(checkpoint.manifest.to_record())
    assert read_state(again) == {epoch: epoch for epoch in range(1, 2 * FULL_EVERY + 3)} | {0: 2 * FULL_EVERY + 2}
    assert (again.term, again.last_batch, again.query) == (2, 2 * FULL_EVERY + 2, "q")
    assert again.routing is not None


def test_the_first_claim_of_an_epoch_stays_in_force(store: MemoryStore) -> None:
    first = open_checkpoint(store)
    claim = first.claim(make_claim(first, batch=7))
    assert first.claim(make_claim(first, batch=8)) == claim
    second = open_checkpoint(store)
    assert second.pending_claim() == claim
    assert second.claim(make_claim(second, batch=8)) == claim


def test_only_the_next_epoch_can_be_claimed(store: MemoryStore) -> None:
    checkpoint = open_checkpoint(store)
    with pytest.raises(CheckpointError, match="Epoch 5 was to be claimed, but the next one is 0"):
        checkpoint.claim(msgspec.structs.replace(make_claim(checkpoint), epoch=5))


def test_a_put_that_came_through_after_all_is_no_conflict(store: MemoryStore) -> None:
    checkpoint = open_checkpoint(store)
    claim = checkpoint.claim(make_claim(checkpoint))
    commit = make_commit(checkpoint, claim, [])
    store.put_if_absent("commits/000000000000", encode(commit))
    checkpoint.commit(commit)
    assert checkpoint.next_epoch == 1


def test_an_older_driver_is_fenced_and_changes_nothing(store: MemoryStore) -> None:
    older = open_checkpoint(store)
    run_epoch(older, {1: 1})
    claim = older.claim(make_claim(older))
    newer = open_checkpoint(store)
    before = dict(store.blobs)
    for step in (
        lambda: older.check_term("its sinks"),
        lambda: older.commit(make_commit(older, claim, [])),
        older.collect_garbage,
    ):
        with pytest.raises(FencedError, match=r"Another driver with term 2 has taken over .* Stop one of them"):
            step()
    assert store.blobs == before
    run_epoch(newer, {2: 2})
    assert read_state(newer) == {1: 1, 2: 2}


def test_an_older_driver_cannot_claim(store: MemoryStore) -> None:
    older = open_checkpoint(store)
    open_checkpoint(store)
    with pytest.raises(FencedError):
        older.claim(make_claim(older))
    assert store.list("claims/") == []


class LookingAway(Checkpoint):
    """A driver that is overtaken between its look at the term and what it does next."""

    def check_term(self, step: str) -> None:
        pass


def test_of_two_commits_of_an_epoch_one_counts_and_the_other_driver_stops(store: MemoryStore) -> None:
    older = open_checkpoint(store)
    older.__class__ = LookingAway
    claim = older.claim(make_claim(older, batch=0))
    newer = open_checkpoint(store)
    assert newer.pending_claim() == claim
    newer.commit(make_commit(newer, claim, []))
    with pytest.raises(FencedError, match="driver with term 2"):
        older.commit(make_commit(older, claim, []))


def test_a_commit_of_an_overtaken_driver_stops_the_newer_one(store: MemoryStore) -> None:
    older = open_checkpoint(store)
    older.__class__ = LookingAway
    claim = older.claim(make_claim(older, batch=0))
    newer = open_checkpoint(store)
    older.commit(make_commit(older, claim, []))
    with pytest.raises(FencedError, match="start this query again"):
        newer.commit(make_commit(newer, claim, []))
    assert open_checkpoint(store).next_epoch == 1


def test_a_late_claim_of_an_overtaken_driver_is_taken_on(store: MemoryStore) -> None:
    older = open_checkpoint(store)
    older.__class__ = LookingAway
    newer = open_checkpoint(store)
    claim = older.claim(make_claim(older, batch=0))
    assert newer.claim(make_claim(newer, batch=0)) == claim


def test_an_overtaken_driver_that_collects_late_takes_nothing_needed(store: MemoryStore) -> None:
    older = open_checkpoint(store)
    for epoch in range(2 * FULL_EVERY):
        run_epoch(older, {epoch: epoch})
    older.__class__ = LookingAway
    newer = open_checkpoint(store)
    for epoch in range(30):
        run_epoch(newer, {epoch: -epoch})
    older.collect_garbage()
    assert read_state(open_checkpoint(store)) == read_state(newer)


def test_garbage_goes_and_what_recovery_needs_stays(store: MemoryStore) -> None:
    checkpoint = open_checkpoint(store)
    orphan = lane_table(store, [], range(SLOTS))
    orphan.put(rows({99: 99}))
    write(store, orphan.flush(), epoch=0, lane=4)
    for epoch in range(3 * FULL_EVERY):
        claim = checkpoint.claim(make_claim(checkpoint))
        table = lane_table(store, checkpoint.manifest.runs_of(0), range(SLOTS))
        table.put(rows({epoch % 7: epoch}))
        flushed = table.flush(choose_folds(checkpoint.manifest).get(0))
        checkpoint.commit(make_commit(checkpoint, claim, write(store, flushed, epoch)))
        checkpoint.collect_garbage()
    assert store.list("manifests/") == ["manifests/000000000039", "manifests/000000000059"]
    assert store.list("commits/")[0] == "commits/000000000039"
    assert store.list("claims/")[0] == "claims/000000000039"
    old = [name for name in store.list("segments/") if name < "segments/000000000039"]
    assert set(old) <= checkpoint.manifest.referenced | old_references(store)
    assert not any("-00004-" in name for name in old)
    assert read_state(open_checkpoint(store)) == read_state(checkpoint)
    # The older of the kept manifests works as well.
    store.delete(["manifests/000000000059"])
    assert read_state(open_checkpoint(store)) == read_state(checkpoint)


def old_references(store: MemoryStore) -> frozenset[str]:
    from trimtab.state.envelope import read_record
    from trimtab.state.records import ManifestRecord

    return Manifest.from_record(read_record(store, "manifests/000000000039", ManifestRecord)).referenced


def test_leftovers_of_killed_writers_go_at_the_second_look(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    checkpoint = open_checkpoint(store)
    (tmp_path / "tmp" / "left").write_bytes(b"half")
    checkpoint.collect_garbage()
    assert store.list("tmp/") == ["tmp/left"]
    open_checkpoint(store).collect_garbage()
    assert store.list("tmp/") == []


def test_garbage_collection_is_bounded_and_goes_on(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimtab.state.protocol.DELETIONS", 7)
    checkpoint = open_checkpoint(store)
    for epoch in range(2 * FULL_EVERY):
        run_epoch(checkpoint, {epoch: epoch})
    sizes = [len(store.blobs)]
    for _ in range(20):
        checkpoint.collect_garbage()
        sizes.append(len(store.blobs))
    steps = [before - after for before, after in pairwise(sizes)]
    assert max(steps) == 7
    assert steps[-1] == 0
    assert store.list("commits/")[0] == "commits/000000000019"


def test_a_full_disk_stops_the_epoch_and_the_next_start_goes_on(store: MemoryStore) -> None:
    full = FullStore(store)
    full.full = False
    checkpoint = open_checkpoint(full)
    run_epoch(checkpoint, {1: 1})
    full.full = True
    with pytest.raises(OSError, match="No space left"):
        run_epoch(checkpoint, {2: 2})
    full.full = False
    again = open_checkpoint(full)
    assert read_state(again) == {1: 1}
    run_epoch(again, {2: 2})
    assert read_state(again) == {1: 1, 2: 2}


def test_a_full_manifest_that_cannot_be_written_is_tried_again(store: MemoryStore, caplog) -> None:
    class NoManifests(FullStore):
        def put_if_absent(self, name, data):
            return (super() if name.startswith("manifests/") else self.inner).put_if_absent(name, data)

    faulty = NoManifests(store)
    checkpoint = open_checkpoint(faulty)
    with caplog.at_level(logging.WARNING):
        for epoch in range(FULL_EVERY + 2):
            run_epoch(checkpoint, {epoch: epoch})
    assert "tried again next epoch" in caplog.text
    faulty.full = False
    run_epoch(checkpoint, {0: 0})
    assert store.list("manifests/") == [f"manifests/{FULL_EVERY + 2:012d}"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (FlowRecord(FORMAT, "other", FLOW.operators), "belongs to the flow 'test'"),
        (FlowRecord(FORMAT, "test", ()), r"was made with the keyed operators \['sums'\], the flow now has \[\]"),
        (
            FlowRecord(FORMAT, "test", (msgspec.structs.replace(OPERATOR, name="x"),)),
            "operator 'x', it was made with 'sums'",
        ),
        (FlowRecord(FORMAT, "test", (msgspec.structs.replace(OPERATOR, slots=9),)), "'sums' had 8 slots and now has 9"),
        (FlowRecord(FORMAT, "test", (msgspec.structs.replace(OPERATOR, kind="x"),)), "was a logic and is now a x"),
        (
            FlowRecord(FORMAT, "test", (msgspec.structs.replace(OPERATOR, key=(("k", "string"),)),)),
            r"had the key \(k bigint\) and now has \(k string\)",
        ),
        (
            FlowRecord(FORMAT, "test", (msgspec.structs.replace(OPERATOR, state=()),)),
            r"had the state \(v bigint\) and now has \(\)",
        ),
    ],
)
def test_flows_that_do_not_fit_are_refused_by_name_and_fence_nobody(store: MemoryStore, changed, message) -> None:
    running = open_checkpoint(store)
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(store, flow=changed)
    running.check_term("its sinks")


def test_a_newer_format_is_refused_even_if_its_records_have_changed(store: MemoryStore) -> None:
    store.put_if_absent("flow", encode({"format": 99, "something": "else"}))
    with pytest.raises(CheckpointError, match="format 99, newer than this version's 2: upgrade"):
        open_checkpoint(store)


def test_a_format_from_before_the_first_release_is_refused(store: MemoryStore) -> None:
    store.put_if_absent("flow", encode(msgspec.structs.replace(FLOW, format=1)))
    with pytest.raises(CheckpointError, match="format 1, of a version before the first release"):
        open_checkpoint(store)


def test_a_store_that_ignores_the_condition_is_refused() -> None:
    class Overwriting(MemoryStore):
        def put_if_absent(self, name, data):
            self.blobs[name] = bytes(data)
            return True

    with pytest.raises(CheckpointError, match="wrote over a blob"):
        open_checkpoint(Overwriting())


def record(**changes: object) -> SegmentRecord:
    name = segment_name(SegmentId(0, 0, 0, 0), "d")
    good = SegmentRecord(name, 0, 8, 2, [1, 3], [0, 1, 2], [0, 0])
    return msgspec.structs.replace(good, **changes)


def commit(**changes: object) -> Commit:
    return msgspec.structs.replace(Commit(0, 0, 1, [record()], {"s": 5}, Measure(), 0), **changes)


OTHER_LANE = segment_name(SegmentId(0, 0, 1, 0), "d")
BEFORE = Manifest(term=1, watermarks={"s": 5})


@pytest.mark.parametrize(
    ("predicate", "manifest", "broken"),
    [
        ("epochs_have_no_gap", BEFORE, commit(epoch=1)),
        ("the_term_never_goes_back", BEFORE, commit(term=0)),
        ("batches_never_go_back", replaced(BEFORE, last_batch=3), commit(batch=2, last_batch=2)),
        ("batches_never_go_back", replaced(BEFORE, last_batch=3), commit(batch=None, last_batch=None)),
        ("watermarks_never_go_back", BEFORE, commit(watermarks={"s": 4})),
        ("watermarks_never_go_back", BEFORE, commit(watermarks={})),
        ("segments_are_of_this_epoch", BEFORE, commit(segments=[record(operator=1)])),
        ("one_segment_per_hop_lane_and_operator", BEFORE, commit(segments=[record(), record(slots=[2, 4])])),
        ("every_slot_once_per_hop", BEFORE, commit(segments=[record(), record(name=OTHER_LANE)])),
        ("ranges_ascend_inside_their_segments", BEFORE, commit(segments=[record(offsets=[0, 2, 1])])),
        ("ranges_ascend_inside_their_segments", BEFORE, commit(segments=[record(offsets=[0, 1, 3])])),
        ("ranges_ascend_inside_their_segments", BEFORE, commit(segments=[record(slots=[3, 1])])),
        ("folds_are_within_their_chains", BEFORE, commit(segments=[record(folded=[1, 0])])),
        ("segments_exist", BEFORE, commit()),
    ],
)
def test_a_commit_that_breaks_an_invariant_is_refused_by_its_name(store, predicate, manifest, broken) -> None:
    with pytest.raises(CheckpointError, match=f"invariant {predicate}"):
        check(manifest, broken, store)


def test_a_good_commit_breaks_none(store: MemoryStore) -> None:
    store.put_if_absent(record().name, b"")
    check(BEFORE, commit(), store)
    assert len(PREDICATES) == len({predicate.__name__ for predicate in PREDICATES})


def test_a_later_hop_can_fold_what_an_earlier_one_wrote() -> None:
    name = segment_name(SegmentId(0, 1, 0, 0), "d")
    later = record(name=name, folded=[1, 1])
    assert all(predicate(BEFORE, commit(segments=[later, record()])) for predicate in PREDICATES)


def test_a_refused_commit_writes_nothing(store: MemoryStore) -> None:
    checkpoint = open_checkpoint(store)
    claim = checkpoint.claim(make_claim(checkpoint))
    before = dict(store.blobs)
    with pytest.raises(CheckpointError):
        checkpoint.commit(make_commit(checkpoint, claim, [record()]))
    assert store.blobs == before


def test_a_missing_flow_record_is_damage_and_not_a_new_checkpoint(store: MemoryStore) -> None:
    open_checkpoint(store)
    store.delete(["flow"])
    with pytest.raises(DamagedError, match="'flow' is missing"):
        open_checkpoint(store)
