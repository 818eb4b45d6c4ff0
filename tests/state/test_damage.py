"""Damage of every kind of blob: an error that names it, or a way round that is exact; never other data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.state.doubles import MemoryStore, always, make_claim, open_checkpoint, read_state, run_epoch

from trimtab.errors import DamagedError
from trimtab.ports import ObjectStore
from trimtab.state.records import Claim
from trimtab.state.store import LocalStore

EPOCHS = 44
STATE = {key: max(epoch for epoch in range(EPOCHS) if epoch % 5 == key) for key in range(5)}


def never(claim: Claim) -> bool:
    return claim.batch is None


def coming(claim: Claim) -> bool:
    """Spark has finished all committed batches and brings the pending one again."""
    return claim.batch is None or claim.batch >= EPOCHS


def filled(store: ObjectStore, pending: bool = False) -> ObjectStore:
    """Full manifests after epochs 19 and 39, commits to 43, and perhaps a claim of 44."""
    checkpoint = open_checkpoint(store)
    for epoch in range(EPOCHS):
        run_epoch(checkpoint, {epoch % 5: epoch}, batch=epoch)
    if pending:
        checkpoint.claim(make_claim(checkpoint, batch=EPOCHS))
    return store


TEMPLATE = filled(MemoryStore(), pending=True)


def copy() -> MemoryStore:
    store = MemoryStore()
    assert isinstance(TEMPLATE, MemoryStore)
    store.blobs = dict(TEMPLATE.blobs)
    return store


def flip(blob: bytes) -> bytes:
    middle = len(blob) // 2
    return blob[:middle] + bytes([blob[middle] ^ 1]) + blob[middle + 1 :]


DAMAGES: list[Callable[[bytes], bytes | None]] = [flip, lambda blob: blob[:-7], lambda blob: b"", lambda blob: None]


def hurt(store: MemoryStore, name: str, damage: Callable[[bytes], bytes | None]) -> None:
    blob = damage(store.blobs[name])
    if blob is None:
        del store.blobs[name]
    else:
        store.blobs[name] = blob


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["flow", "commits/000000000041"])
def test_damage_that_cannot_be_mended_is_named(name: str, damage) -> None:
    store = copy()
    hurt(store, name, damage)
    with pytest.raises(DamagedError, match=name):
        open_checkpoint(store)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_segment_is_named_when_it_is_read(damage) -> None:
    store = copy()
    name = sorted(open_checkpoint(store).manifest.referenced)[-1]
    hurt(store, name, damage)
    with pytest.raises(DamagedError, match=name):
        read_state(open_checkpoint(store))


@pytest.mark.parametrize("damage", [flip, lambda blob: blob[: len(blob) // 2], lambda blob: b""])
def test_a_damaged_segment_file_is_named_too(tmp_path: Path, damage) -> None:
    store = filled(LocalStore(tmp_path))
    name = sorted(open_checkpoint(store).manifest.referenced)[-1]
    (tmp_path / name).write_bytes(damage((tmp_path / name).read_bytes()))
    with pytest.raises(DamagedError, match=name):
        read_state(open_checkpoint(LocalStore(tmp_path)))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_manifest_is_worked_round(damage, caplog) -> None:
    store = copy()
    hurt(store, "manifests/000000000039", damage)
    checkpoint = open_checkpoint(store)
    assert read_state(checkpoint) == STATE
    assert not store.exists("manifests/000000000039")
    hurt(store, "manifests/000000000019", damage)
    assert read_state(open_checkpoint(store)) == STATE
    # It is written anew with the next commit, since recovery has become long.
    run_epoch(checkpoint := open_checkpoint(store), {9: 9}, batch=EPOCHS)
    assert store.list("manifests/") == [f"manifests/{EPOCHS:012d}"]
    assert read_state(checkpoint) == STATE | {9: 9}


def test_manifests_that_are_all_damaged_are_named_once_commits_are_collected() -> None:
    store = copy()
    open_checkpoint(store).collect_garbage()
    assert store.list("commits/")[0] == "commits/000000000019"
    for name in store.list("manifests/"):
        hurt(store, name, flip)
    with pytest.raises(DamagedError, match=r"commits/000000000000 is missing .* manifests/000000000039, .* is damaged"):
        open_checkpoint(store)


@pytest.mark.parametrize("damage", [flip, lambda blob: blob[:5], lambda blob: b""])
def test_a_torn_newest_commit_runs_again_if_spark_brings_its_rows(damage) -> None:
    store = copy()
    store.delete([f"claims/{EPOCHS:012d}"])
    hurt(store, "commits/000000000043", damage)
    checkpoint = open_checkpoint(store, always)
    claim = checkpoint.pending_claim()
    assert claim is not None
    assert (claim.epoch, claim.batch) == (43, 43)
    assert not store.exists("commits/000000000043")
    run_epoch(checkpoint, {3: 43}, batch=43)
    assert read_state(open_checkpoint(store)) == STATE


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_torn_newest_commit_whose_rows_are_gone_is_named(damage) -> None:
    store = copy()
    store.delete([f"claims/{EPOCHS:012d}"])
    hurt(store, "commits/000000000043", damage)
    before = {name: blob for name, blob in store.blobs.items() if not name.startswith("terms/")}
    with pytest.raises(DamagedError, match="commits/000000000043"):
        open_checkpoint(store, never)
    assert {name: blob for name, blob in store.blobs.items() if not name.startswith("terms/")} == before


def test_a_missing_commit_before_a_claim_is_named() -> None:
    store = copy()
    store.delete(["commits/000000000043"])
    with pytest.raises(DamagedError, match="commits/000000000043 is missing"):
        open_checkpoint(store, always)


def test_a_missing_newest_commit_runs_again_under_its_claim() -> None:
    store = copy()
    store.delete(["commits/000000000043", f"claims/{EPOCHS:012d}"])
    checkpoint = open_checkpoint(store, always)
    claim = checkpoint.pending_claim()
    assert claim is not None
    assert claim.batch == 43


@pytest.mark.parametrize("damage", [flip, lambda blob: b""])
def test_a_torn_claim_is_made_anew(damage) -> None:
    store = copy()
    hurt(store, f"claims/{EPOCHS:012d}", damage)
    checkpoint = open_checkpoint(store)
    assert checkpoint.pending_claim() is None
    run_epoch(checkpoint, {7: 7}, batch=EPOCHS)
    assert read_state(open_checkpoint(store)) == STATE | {7: 7}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_claim_of_a_committed_epoch_is_not_needed(damage) -> None:
    store = copy()
    hurt(store, "claims/000000000043", damage)
    assert read_state(open_checkpoint(store)) == STATE


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_flipped_bit_anywhere_never_changes_state(data: st.DataObject) -> None:
    store = copy()
    name = data.draw(st.sampled_from(sorted(store.blobs)))
    position = data.draw(st.integers(0, len(store.blobs[name]) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    blob = store.blobs[name]
    store.blobs[name] = blob[:position] + bytes([blob[position] ^ bit]) + blob[position + 1 :]
    try:
        state = read_state(open_checkpoint(store, coming))
    except DamagedError as error:
        assert name in str(error)  # noqa: PT017
    else:
        assert state == STATE
