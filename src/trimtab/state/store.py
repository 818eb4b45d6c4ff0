"""Object stores: blobs under names, put if absent.

`open_store` picks one by address. Names are flat inside their folder: `list("segments/")` never descends further.
"""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem

from trimtab.errors import CheckpointError
from trimtab.ports import ObjectStore

TEMPORARY = "tmp/"


def open_store(url: str) -> ObjectStore:
    """The store at a path or an address that fsspec knows, such as "s3://bucket/folder"."""
    filesystem, root = fsspec.core.url_to_fs(url)
    if isinstance(filesystem, LocalFileSystem):
        return LocalStore(root)
    return FsspecStore(filesystem, root)


class LocalStore:
    """Blobs as files below a folder on a disk that has hard links.

    A blob is written under `tmp/`, synced, and linked to its name, so that a name always shows a whole blob and at
    most one writer wins it. What a killed writer leaves under `tmp/` is for garbage collection.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(root).absolute()
        self.url = str(self._root)

    def put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        target = self._root / name
        temporary = self._write(data)
        try:
            return _link(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    def read(self, name: str) -> pa.Buffer:
        path = self._root / name
        # An empty file cannot be mapped.
        if path.stat().st_size == 0:
            return pa.py_buffer(b"")
        with pa.memory_map(str(path)) as file:
            return file.read_buffer()

    def exists(self, name: str) -> bool:
        return (self._root / name).exists()

    def list(self, prefix: str) -> list[str]:
        try:
            with os.scandir(self._root / prefix) as entries:
                return sorted(prefix + entry.name for entry in entries if not entry.is_dir())
        except FileNotFoundError:
            return []

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            (self._root / name).unlink(missing_ok=True)

    def _write(self, data: bytes | pa.Buffer) -> Path:
        file, path = self._temporary()
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        except BaseException:
            Path(path).unlink(missing_ok=True)
            raise
        return Path(path)

    def _temporary(self) -> tuple[int, str]:
        folder = self._root / TEMPORARY
        try:
            return tempfile.mkstemp(dir=folder)
        except FileNotFoundError:
            folder.mkdir(parents=True, exist_ok=True)
            return tempfile.mkstemp(dir=folder)


def _link(source: Path, target: Path) -> bool:
    """Give a synced file its name for good. False when the name is taken, which then is durable as well."""
    try:
        won = _try_link(source, target)
    except FileNotFoundError:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sync_folder(target.parent.parent)
        won = _try_link(source, target)
    # Also when the name is taken: whoever linked it may not have come as far as syncing it.
    _sync_folder(target.parent)
    return won


def _try_link(source: Path, target: Path) -> bool:
    try:
        target.hardlink_to(source)
    except FileExistsError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FsspecStore:
    """Blobs on any filesystem that fsspec knows and that can create a file only if it is absent, in one request.

    S3, Google Cloud Storage and Azure do so by a conditional put. A filesystem that would merely look first is refused:
    between looking and writing another driver fits. So is a server that ignores the condition, when a checkpoint is
    opened on it.
    """

    def __init__(self, filesystem: Any, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")
        self.url = str(filesystem.unstrip_protocol(self._root))
        if not _creates_atomically(filesystem):
            raise CheckpointError(
                f"The filesystem of {self.url} ({type(filesystem).__name__}) cannot create a file only if it "
                "is absent, which exactly-once state needs: put the checkpoint on a local disk, S3, Google Cloud "
                "Storage or Azure."
            )

    def put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        try:
            self._filesystem.pipe_file(self._path(name), bytes(data), mode="create")
        except FileExistsError:
            return False
        return True

    def read(self, name: str) -> pa.Buffer:
        return pa.py_buffer(self._filesystem.cat_file(self._path(name)))

    def exists(self, name: str) -> bool:
        # Other drivers and tasks write here too: a listing that was kept in memory would hide what they did.
        self._filesystem.invalidate_cache()
        return bool(self._filesystem.exists(self._path(name)))

    def list(self, prefix: str) -> list[str]:
        self._filesystem.invalidate_cache()
        try:
            found = self._filesystem.ls(self._path(prefix.rstrip("/")), detail=True)
        except FileNotFoundError:
            return []
        return sorted(prefix + entry["name"].rsplit("/", 1)[-1] for entry in found if entry["type"] == "file")

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                self._filesystem.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def _creates_atomically(filesystem: Any) -> bool:
    """Whether `pipe_file(mode="create")` is the filesystem's own, and not fsspec's look-then-write."""
    own = getattr(filesystem, "_pipe_file", None) or filesystem.pipe_file
    inherited = getattr(own, "__func__", own) is fsspec.AbstractFileSystem.pipe_file
    return not inherited and "mode" in inspect.signature(own).parameters
