"""Recovery: last full manifest plus later commits. Reads only; says what is damaged and can go."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from trimtab.errors import DamagedError
from trimtab.ports import ObjectStore
from trimtab.state.envelope import read_record
from trimtab.state.manifest import NO_EPOCH, Manifest
from trimtab.state.records import (
    CLAIMS,
    COMMITS,
    MANIFESTS,
    Claim,
    Commit,
    ManifestRecord,
    claim_name,
    commit_name,
    manifest_name,
    number_of,
)
from trimtab.vocab import Epoch

Replayable = Callable[[Claim], bool]
"""Whether the batch of a claim will come again: Spark has not finished it, or there is none."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recovered:
    """State after the newest commit, the claim of the epoch after it, and what the way there rests on."""

    manifest: Manifest
    claim: Claim | None
    full: Epoch
    """The epoch of the full manifest that recovery started from."""
    useless: tuple[str, ...]
    """Damaged blobs that nothing needs any more; they would be in the way of new ones."""


def recover(store: ObjectStore, replayable: Replayable) -> Recovered:
    """Read the state of a checkpoint. DamagedError, naming the blob, when what is left does not say what it was."""
    listed = _Listed(store)
    start, useless = _newest_manifest(listed)
    commits = _commits_after(listed, start.epoch, useless)
    manifest = start
    for epoch in commits:
        try:
            manifest = manifest.apply(read_record(store, commit_name(epoch), Commit))
        except DamagedError as error:
            if epoch != commits[-1]:
                raise
            _check_torn(store, epoch, replayable, error)
            useless.append(commit_name(epoch))
    claim = _pending(listed, manifest.epoch + 1, replayable, useless)
    return Recovered(manifest, claim, start.epoch, tuple(useless))


class _Listed:
    """The epochs of which a checkpoint has a manifest, a commit, a claim; in ascending order."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        # What proves that something else is there comes first: a driver may be at work while this is read.
        self.claims = [number_of(name) for name in store.list(CLAIMS)]
        self.commits = [number_of(name) for name in store.list(COMMITS)]
        self.manifests = [number_of(name) for name in store.list(MANIFESTS)]

    def newest_committed(self) -> Epoch:
        """A later claim, and a full manifest even if damaged, prove that an epoch was committed."""
        claimed = max(self.claims, default=0) - 1
        return max([NO_EPOCH, claimed, *self.manifests[-1:], *self.commits[-1:]])


def _newest_manifest(listed: _Listed) -> tuple[Manifest, list[str]]:
    """The newest full manifest that is whole, or that of a new checkpoint; and the names of damaged ones."""
    damaged: list[str] = []
    for epoch in reversed(listed.manifests):
        name = manifest_name(epoch)
        try:
            return Manifest.from_record(read_record(listed.store, name, ManifestRecord)), damaged
        except DamagedError as error:
            log.warning("%s Falling back to an older manifest and the commits after it.", error)
            damaged.append(name)
    return Manifest(), damaged


def _commits_after(listed: _Listed, start: Epoch, damaged: list[str]) -> list[Epoch]:
    """The epochs to apply after a manifest: none may be missing."""
    wanted = range(start + 1, listed.newest_committed() + 1)
    there = set(listed.commits)
    for epoch in wanted:
        if epoch not in there:
            also = f" The full manifest {damaged[0]}, which may include it, is damaged." if damaged else ""
            raise DamagedError(
                f"{commit_name(epoch)} is missing from the checkpoint {listed.store.url}, though epoch {epoch} was "
                f"committed.{also} Restore the checkpoint, and Spark's next to it, from a copy."
            )
    return list(wanted)


def _check_torn(store: ObjectStore, epoch: Epoch, replayable: Replayable, error: DamagedError) -> None:
    """Whether the newest commit can be made again: its claim is whole and its rows will come again."""
    if not replayable(read_record(store, claim_name(epoch), Claim)):
        raise DamagedError(
            f"{error} Spark will not bring the rows of epoch {epoch} again. Restore the checkpoint, and Spark's next "
            "to it, from a copy."
        ) from error
    log.warning("%s Epoch %d will run again under its claim.", error, epoch)


def _pending(listed: _Listed, epoch: Epoch, replayable: Replayable, useless: list[str]) -> Claim | None:
    if epoch not in listed.claims:
        return None
    try:
        claim = read_record(listed.store, claim_name(epoch), Claim)
    except DamagedError as error:
        # A claim is in the store as a whole before anything runs under it: torn, it belongs to an epoch that never
        # began. Should a disk have spoiled it later, the epoch still counts once; sinks may see it with other timing.
        log.warning("%s Epoch %d was not committed and is claimed anew.", error, epoch)
        useless.append(claim_name(epoch))
        return None
    if not replayable(claim):
        raise DamagedError(
            f"{commit_name(epoch)} is missing from the checkpoint {listed.store.url}, though Spark has finished batch "
            f"{claim.batch}, which ran as epoch {epoch}. Restore the checkpoint, and Spark's next to it, from a copy."
        )
    return claim
