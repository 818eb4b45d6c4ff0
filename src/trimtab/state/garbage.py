"""Garbage: what no recovery can need any more.

With the two newest full manifests kept, that is all that only epochs below the older of them used. A segment of such
an epoch which that manifest does not refer to is never referred to again, so a driver that has been overtaken takes
nothing from the one that overtook it, however late it deletes.
"""

from __future__ import annotations

from collections.abc import Collection

from trimtab.ports import ObjectStore
from trimtab.state.envelope import read_record
from trimtab.state.manifest import Manifest
from trimtab.state.records import (
    CLAIMS,
    COMMITS,
    MANIFESTS,
    SEGMENTS,
    ManifestRecord,
    number_of,
    parse_segment,
)

KEPT = 2


def find_garbage(store: ObjectStore, current: Manifest) -> list[str]:
    """Names that can go, in the order in which they must: what refers to others first."""
    manifests = store.list(MANIFESTS)
    if len(manifests) < KEPT:
        return []
    oldest = manifests[-KEPT]
    epoch = number_of(oldest)
    needed = Manifest.from_record(read_record(store, oldest, ManifestRecord)).referenced | current.referenced
    records = [name for prefix in (COMMITS, CLAIMS) for name in store.list(prefix) if number_of(name) < epoch]
    return [*manifests[:-KEPT], *records, *_unreferenced(store.list(SEGMENTS), epoch, needed)]


def _unreferenced(segments: list[str], epoch: int, needed: Collection[str]) -> list[str]:
    return [name for name in segments if parse_segment(name).epoch < epoch and name not in needed]
