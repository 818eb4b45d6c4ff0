"""The rules of writing a checkpoint, and the one object that keeps them.

    flow ─> term ─> recover ─> [ claim ─> segments ─> sinks ─> commit ─> (full manifest) ─> garbage ]*

1. The flow record is settled before a term is taken: a driver of the wrong flow must not fence the right one.
2. A driver takes the next term before it reads state. Whoever holds an older term finds the newer one at its next
   claim, before sinks, before its commit and before it deletes, and stops.
3. An epoch's claim is in the store before anything runs under it, and never changes. Whoever claims the same epoch
   again gets the claim in force.
4. Segments are in the store before the results that report them, those before the commit that refers to them. A
   segment that no commit refers to means nothing.
5. A commit is one put-if-absent of one blob, hence there is one per epoch, with no gaps; the invariants are checked
   just before. Between a driver's look at the term and its put, another may take over: then one of the two puts loses,
   and its driver stops. Both ran the epoch under the same claim, so either commit is right.
6. A full manifest only repeats what commits say, so failing to write it fails nothing.
7. Garbage goes last, what refers before what is referred to: see garbage.py for what that is. A commit that an
   overtaken driver puts below the kept manifests is never read, and goes the same way.
8. The only other deletions are at open, after the term is taken and checked: damaged blobs that would be in the way.

Names: `flow`, `terms/`, `claims/`, `commits/`, `manifests/`, `segments/`, `tmp/`. Terms are never removed, since a term
is found to be old by the presence of the next. `requests/`, `history/` and `measures/` are control's, and no rule needs
them.
"""

from __future__ import annotations

import logging

from trimtab.errors import CheckpointError, DamagedError, FencedError
from trimtab.ports import Clock, ObjectStore, Rng, reached
from trimtab.state.envelope import encode, read_record
from trimtab.state.garbage import find_garbage
from trimtab.state.identity import settle_flow
from trimtab.state.invariants import check
from trimtab.state.records import (
    TERMS,
    Claim,
    Commit,
    FlowRecord,
    TermRecord,
    claim_name,
    commit_name,
    manifest_name,
    number_of,
    term_name,
)
from trimtab.state.recovery import Recovered, Replayable, recover
from trimtab.state.store import TEMPORARY
from trimtab.vocab import Epoch, Routing

FULL_EVERY = 20
DELETIONS = 256

log = logging.getLogger(__name__)


class Checkpoint:
    """A checkpoint under one driver's term: the state it holds, and the steps of an epoch that change it."""

    def __init__(self, store: ObjectStore, term: int, recovered: Recovered) -> None:
        """For `open`."""
        self.store = store
        self.term = term
        self.manifest = recovered.manifest
        self._claim = recovered.claim
        self._full = recovered.full
        self._leftovers = frozenset(store.list(TEMPORARY))
        self._collectable = True

    @classmethod
    def open(
        cls, store: ObjectStore, flow: FlowRecord, *, rng: Rng, clock: Clock, replayable: Replayable
    ) -> Checkpoint:
        """Create or recover the checkpoint in a store and take it over from any other driver.

        `replayable` says of a claim whether its batch will be brought again. CheckpointError when the checkpoint does
        not fit the flow; DamagedError, naming the blob, when its state cannot be told.
        """
        settle_flow(store, flow)
        term = _take_term(store, rng.identity(), clock.now())
        recovered = recover(store, replayable)
        if recovered.useless:
            _check_term(store, term, "it removed damaged blobs")
            store.delete(recovered.useless)
        return cls(store, term, recovered)

    @property
    def next_epoch(self) -> Epoch:
        return self.manifest.epoch + 1

    @property
    def watermarks(self) -> dict[str, int]:
        """Those of the next epoch."""
        return dict(self.manifest.watermarks)

    @property
    def told(self) -> dict[str, int]:
        """Those that were in force in the newest committed epoch."""
        return dict(self.manifest.told)

    @property
    def last_batch(self) -> int | None:
        """The newest Spark batch that is committed."""
        return self.manifest.last_batch

    @property
    def query(self) -> str | None:
        """The Spark query that committed batches came from."""
        return self.manifest.query

    @property
    def routing(self) -> Routing | None:
        """The routing of the newest committed epoch that had one."""
        return self.manifest.routing

    def pending_claim(self) -> Claim | None:
        """The claim under which the next epoch must run, if it is claimed."""
        return self._claim

    def claim(self, claim: Claim) -> Claim:
        """Claim the next epoch; returns the claim in force, which may be that of an earlier attempt or driver."""
        if claim.epoch != self.next_epoch:
            raise CheckpointError(f"Epoch {claim.epoch} was to be claimed, but the next one is {self.next_epoch}.")
        if self._claim is None:
            self.check_term(f"it claimed epoch {claim.epoch}")
            reached("before_claim", claim.epoch)
            self._claim = self._put_claim(claim)
            reached("after_claim", claim.epoch)
        return self._claim

    def commit(self, commit: Commit) -> None:
        """Make the next epoch count. FencedError when another driver has made it count in its own way."""
        check(self.manifest, commit, self.store)
        self.check_term(f"it committed epoch {commit.epoch}")
        reached("before_commit", commit.epoch)
        if not self.store.put_if_absent(commit_name(commit.epoch), encode(commit)):
            self._compare(commit)
        reached("after_commit", commit.epoch)
        self.manifest = self.manifest.apply(commit)
        self._claim = None
        if commit.epoch - self._full >= FULL_EVERY:
            self._write_manifest()

    def check_term(self, step: str) -> None:
        """FencedError when another driver has taken over; `step`, as in "its sinks", is what this one stops before."""
        _check_term(self.store, self.term, step)

    def collect_garbage(self) -> None:
        """Delete what no recovery needs, a bounded number of blobs a call. Cheap when there is nothing new to find."""
        if not self._collectable:
            return
        self.check_term("it collected garbage")
        reached("before_collect", self.manifest.epoch)
        try:
            self._collect()
        except (OSError, DamagedError) as error:
            # The next full manifest brings the next chance; no epoch depends on it.
            log.warning("Garbage of the checkpoint %s stays for now: %s", self.store.url, error)
            self._collectable = False
        reached("after_collect", self.manifest.epoch)

    def _collect(self) -> None:
        left = self.store.list(TEMPORARY)
        # What lay there the last time already is no writer's that is still at work.
        garbage = [*find_garbage(self.store, self.manifest), *self._leftovers.intersection(left)]
        self.store.delete(garbage[:DELETIONS])
        self._collectable = len(garbage) > DELETIONS
        if not self._collectable:
            self._leftovers = frozenset(left)

    def _put_claim(self, claim: Claim) -> Claim:
        name = claim_name(claim.epoch)
        if self.store.put_if_absent(name, encode(claim)):
            return claim
        found = read_record(self.store, name, Claim)
        if found.term > self.term:
            raise _fenced(self.store, self.term, found.term, f"it claimed epoch {claim.epoch}")
        return found

    def _compare(self, commit: Commit) -> None:
        """The name is taken: by this very commit, if an earlier try of ours came through after all."""
        found = read_record(self.store, commit_name(commit.epoch), Commit)
        if encode(found) == encode(commit):
            return
        if found.term < self.term:
            raise FencedError(
                f"The driver with term {found.term}, which this one (term {self.term}) has taken the checkpoint "
                f"{self.store.url} over from, committed epoch {commit.epoch} at the last moment. Nothing is lost: stop "
                "that driver if it still runs, and start this query again."
            )
        raise _fenced(self.store, self.term, found.term, f"it committed epoch {commit.epoch}")

    def _write_manifest(self) -> None:
        epoch = self.manifest.epoch
        reached("before_manifest", epoch)
        try:
            self.store.put_if_absent(manifest_name(epoch), encode(self.manifest.to_record()))
        except OSError as error:
            log.warning("%s was not written and is tried again next epoch: %s", manifest_name(epoch), error)
            return
        self._full = epoch
        self._collectable = True
        reached("after_manifest", epoch)


def _take_term(store: ObjectStore, driver: str, now: float) -> int:
    """The next term, won against any other driver that opens the checkpoint at this moment."""
    term = max(map(number_of, store.list(TERMS)), default=0)
    won = False
    while not won:
        term += 1
        won = store.put_if_absent(term_name(term), encode(TermRecord(term, driver, now)))
    # A server may accept the condition and ignore it; then all that follows would be unsafe.
    if store.put_if_absent(term_name(term), encode(TermRecord(term, driver, now))):
        raise CheckpointError(
            f"The store of the checkpoint {store.url} wrote over a blob that it was told to create only if absent. "
            "Exactly-once state cannot be kept there: use a store with conditional puts."
        )
    return term


def _check_term(store: ObjectStore, term: int, step: str) -> None:
    if store.exists(term_name(term + 1)):
        raise _fenced(store, term, max(map(number_of, store.list(TERMS))), step)


def _fenced(store: ObjectStore, term: int, newer: int, step: str) -> FencedError:
    return FencedError(
        f"Another driver with term {newer} has taken over the checkpoint {store.url}; this one (term {term}) stopped "
        f"before {step}. Stop one of them."
    )
