"""What must hold between a manifest and the commit that is to follow it. Each is a predicate, checked before a commit.

A violation is a mistake in Trimtab: the error names the predicate, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from trimtab.errors import CheckpointError
from trimtab.ports import ObjectStore
from trimtab.state.chains import Chains
from trimtab.state.manifest import NO_CHAINS, Manifest
from trimtab.state.records import Commit, SegmentRecord, parse_segment

Predicate = Callable[[Manifest, Commit], bool]


def epochs_have_no_gap(manifest: Manifest, commit: Commit) -> bool:
    return commit.epoch == manifest.epoch + 1


def the_term_never_goes_back(manifest: Manifest, commit: Commit) -> bool:
    return commit.term >= manifest.term


def batches_never_go_back(manifest: Manifest, commit: Commit) -> bool:
    if manifest.last_batch is None:
        return commit.last_batch == commit.batch
    expected = manifest.last_batch if commit.batch is None else commit.batch
    return commit.last_batch == expected and expected >= manifest.last_batch


def watermarks_never_go_back(manifest: Manifest, commit: Commit) -> bool:
    return all(commit.watermarks.get(source, mark - 1) >= mark for source, mark in manifest.watermarks.items())


def segments_are_of_this_epoch(manifest: Manifest, commit: Commit) -> bool:
    parsed = [(parse_segment(each.name), each) for each in commit.segments]
    return all(name.epoch == commit.epoch and name.operator == each.operator for name, each in parsed)


def one_segment_per_hop_lane_and_operator(manifest: Manifest, commit: Commit) -> bool:
    return _unique(parse_segment(each.name) for each in commit.segments)


def every_slot_once_per_hop(manifest: Manifest, commit: Commit) -> bool:
    return _unique(
        (each.operator, parse_segment(each.name).hop, slot) for each in commit.segments for slot in each.slots
    )


def ranges_ascend_inside_their_segments(manifest: Manifest, commit: Commit) -> bool:
    return all(_ranges_fit(each) for each in commit.segments)


def folds_are_within_their_chains(manifest: Manifest, commit: Commit) -> bool:
    """Checked hop by hop, since a hop can fold what an earlier one wrote."""
    for hop in sorted({parse_segment(each.name).hop for each in commit.segments}):
        layer = [each for each in commit.segments if parse_segment(each.name).hop == hop]
        if not all(_folds_fit(manifest.chains.get(each.operator, NO_CHAINS), each) for each in layer):
            return False
        manifest = manifest.extended(layer)
    return True


PREDICATES: tuple[Predicate, ...] = (
    epochs_have_no_gap,
    the_term_never_goes_back,
    batches_never_go_back,
    watermarks_never_go_back,
    segments_are_of_this_epoch,
    one_segment_per_hop_lane_and_operator,
    every_slot_once_per_hop,
    ranges_ascend_inside_their_segments,
    folds_are_within_their_chains,
)


def check(manifest: Manifest, commit: Commit, store: ObjectStore) -> None:
    """Raise a CheckpointError naming the first predicate that does not hold."""
    for predicate in PREDICATES:
        if not predicate(manifest, commit):
            raise _violation(predicate.__name__, commit)
    for segment in commit.segments:
        if not store.exists(segment.name):
            raise _violation(f"segments_exist ({segment.name} does not)", commit)


def _violation(name: str, commit: Commit) -> CheckpointError:
    return CheckpointError(
        f"The commit of epoch {commit.epoch} breaks the invariant {name} and was not written. This is a mistake in "
        "Trimtab; restart the query to run the epoch again, and please report it."
    )


def _unique(items: Iterable[object]) -> bool:
    listed = list(items)
    return len(set(listed)) == len(listed)


def _ranges_fit(record: SegmentRecord) -> bool:
    slots, offsets = np.asarray(record.slots), np.asarray(record.offsets)
    return (
        len(offsets) == len(slots) + 1
        and len(record.folded) == len(slots)
        and offsets[0] == 0
        and offsets[-1] == record.rows
        and bool((np.diff(offsets) >= 0).all() and (np.diff(slots) > 0).all())
    )


def _folds_fit(chains: Chains, record: SegmentRecord) -> bool:
    bound = max([*record.slots, int(chains.slot.max(initial=0))], default=0) + 1
    lengths = np.bincount(chains.slot, minlength=bound)[record.slots]
    return bool((np.asarray(record.folded) <= lengths).all() and (np.asarray(record.folded) >= 0).all())
