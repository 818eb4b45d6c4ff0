"""Every object store passes the same checks."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from tests.state.doubles import MemoryStore

from trimtab.errors import CheckpointError
from trimtab.ports import ObjectStore
from trimtab.state.store import FsspecStore, LocalStore, open_store


@pytest.fixture(params=["local", "fsspec", "double"])
def store(request, tmp_path: Path) -> ObjectStore:
    if request.param == "local":
        return open_store(str(tmp_path / "new" / "checkpoint"))
    if request.param == "fsspec":
        return open_store(f"memory://{tmp_path}")
    return MemoryStore()


def test_the_first_put_wins(store: ObjectStore) -> None:
    assert store.put_if_absent("a/1", b"one")
    assert not store.put_if_absent("a/1", b"two")
    assert bytes(store.read("a/1")) == b"one"


def test_blobs_may_be_buffers_or_empty(store: ObjectStore) -> None:
    store.put_if_absent("buffer", pa.py_buffer(b"xyz"))
    store.put_if_absent("empty", b"")
    assert bytes(store.read("buffer")) == b"xyz"
    assert bytes(store.read("empty")) == b""


def test_names_are_listed_in_order_and_by_folder(store: ObjectStore) -> None:
    for name in ("a/2", "a/1", "b/3", "a/10"):
        store.put_if_absent(name, b"")
    assert store.list("a/") == ["a/1", "a/10", "a/2"]
    assert store.list("c/") == []


def test_what_is_missing_is_said_to_be(store: ObjectStore) -> None:
    store.put_if_absent("a/1", b"")
    assert store.exists("a/1")
    assert not store.exists("a/2")
    assert not store.exists("b/1")
    with pytest.raises(FileNotFoundError):
        store.read("a/2")


def test_deleting_twice_is_no_error(store: ObjectStore) -> None:
    store.put_if_absent("a/1", b"")
    store.delete(["a/1", "a/2", "b/1"])
    store.delete(["a/1"])
    assert not store.exists("a/1")
    assert store.put_if_absent("a/1", b"again")


def test_a_url_opens_the_same_blobs(store: ObjectStore) -> None:
    store.put_if_absent("a/1", b"one")
    if not isinstance(store, MemoryStore):
        assert bytes(open_store(store.url).read("a/1")) == b"one"


def test_of_many_writers_at_once_one_wins(tmp_path: Path) -> None:
    store, won, start = LocalStore(tmp_path), [], threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        if store.put_if_absent("a/1", str(number).encode()):
            won.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert bytes(store.read("a/1")) == str(won[0]).encode()
    assert store.list("tmp/") == []


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    store = LocalStore(tmp_path)

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, step, fail)
        with pytest.raises(OSError, match="No space left"):
            store.put_if_absent("a/1", b"one")
    assert store.list("tmp/") == []
    assert not store.exists("a/1")
    assert store.put_if_absent("a/1", b"two")


def test_local_reads_are_mapped(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put_if_absent("a", bytes(1 << 20))
    before = pa.total_allocated_bytes()
    held = store.read("a")
    assert held.size == 1 << 20
    assert pa.total_allocated_bytes() == before


def test_local_addresses_open_local_stores(tmp_path: Path) -> None:
    for url in (str(tmp_path), f"file://{tmp_path}"):
        store = open_store(url)
        assert isinstance(store, LocalStore)
        assert store.url == str(tmp_path)


def test_a_filesystem_that_looks_before_it_writes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="only if it is absent"):
        FsspecStore(fsspec.filesystem("file"), str(tmp_path))
