"""The manifest: which ranges of which segments are the state after an epoch. Immutable; commits make new ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, groupby, pairwise

import numpy as np
import numpy.typing as npt

from trimtab.state.chains import Chains
from trimtab.state.order import Ints
from trimtab.state.records import (
    ChainsRecord,
    Commit,
    LiveSegment,
    ManifestRecord,
    RunRef,
    SegmentRecord,
    parse_segment,
)
from trimtab.vocab import Epoch, OperatorId, Routing

NO_CHAINS = Chains.of([], [], [], [])
NO_EPOCH = -1


@dataclass(frozen=True)
class Manifest:
    """State after `epoch`, with what else the next epoch takes from it. The default one is that of a new checkpoint."""

    epoch: Epoch = NO_EPOCH
    term: int = 0
    watermarks: Mapping[str, int] = field(default_factory=dict)
    told: Mapping[str, int] = field(default_factory=dict)
    last_batch: int | None = None
    query: str | None = None
    routing: Routing | None = None
    fresh: int = 0
    """How many rows logic wrote in that epoch."""
    segments: tuple[LiveSegment, ...] = ()
    chains: Mapping[OperatorId, Chains] = field(default_factory=dict)

    def apply(self, commit: Commit) -> Manifest:
        """The manifest after an epoch more."""
        return replace(
            self.extended(commit.segments),
            epoch=commit.epoch,
            term=commit.term,
            watermarks=commit.watermarks,
            told=commit.told,
            last_batch=commit.last_batch,
            query=commit.query if commit.query is not None else self.query,
            routing=commit.routing if commit.routing is not None else self.routing,
            fresh=sum(segment.fresh for segment in commit.segments),
        )

    def extended(self, records: Sequence[SegmentRecord]) -> Manifest:
        """With some segments on top and all else as it was: what hop k + 1 sees after hop k."""
        numbers = {each.name: number for number, each in enumerate(records, len(self.segments))}
        chains = dict(self.chains)
        ordered = sorted(records, key=_operator_and_hop)
        for (operator, _), group in groupby(ordered, key=_operator_and_hop):
            layer = list(group)
            chains[operator] = chains.get(operator, NO_CHAINS).push(layer, [numbers[each.name] for each in layer])
        added = tuple(LiveSegment(each.name, each.operator, each.bytes, each.rows) for each in records)
        segments, chains = _compacted((*self.segments, *added), chains)
        return replace(self, segments=segments, chains=chains)

    def runs_of(self, operator: OperatorId) -> list[RunRef]:
        """The runs of all slots of an operator, newest first."""
        return self._references(self.chains.get(operator, NO_CHAINS))

    def runs_for(self, operator: OperatorId, slots: Collection[int]) -> list[RunRef]:
        """The runs of some slots of an operator, newest first."""
        chains = self.chains.get(operator, NO_CHAINS)
        return self._references(chains.select(np.isin(chains.slot, np.fromiter(slots, np.int64, len(slots)))))

    @cached_property
    def origin(self) -> Ints:
        """Epoch, hop and lane of every segment, one row each."""
        parsed = [parse_segment(segment.name) for segment in self.segments]
        return np.array([(each.epoch, each.hop, each.lane) for each in parsed], np.int64).reshape(-1, 3)

    @cached_property
    def live_rows(self) -> Ints:
        """How many rows of every segment chains refer to."""
        total = np.zeros(len(self.segments), np.int64)
        for chains in self.chains.values():
            np.add.at(total, chains.segment, chains.rows)
        return total

    @cached_property
    def live_share(self) -> npt.NDArray[np.float64]:
        """The same as a share of all its rows."""
        rows = np.array([max(segment.rows, 1) for segment in self.segments], np.float64)
        return self.live_rows.astype(np.float64) / rows

    def slot_rows(self, operator: OperatorId, slots: int) -> Ints:
        """How many rows the chain of every slot holds, among them versions and tombstones that newer ones hide."""
        chains = self.chains.get(operator, NO_CHAINS)
        return np.bincount(chains.slot, chains.rows, slots).astype(np.int64)

    def slot_bytes(self, operator: OperatorId, slots: int) -> Ints:
        """How many bytes those are: what a slot's state weighs."""
        chains = self.chains.get(operator, NO_CHAINS)
        width = np.array([segment.bytes / max(segment.rows, 1) for segment in self.segments])
        return np.bincount(chains.slot, chains.rows * width[chains.segment], slots).astype(np.int64)

    @property
    def referenced(self) -> frozenset[str]:
        """The names of the segments that the state needs."""
        return frozenset(segment.name for segment in self.segments)

    def to_record(self) -> ManifestRecord:
        return ManifestRecord(
            self.epoch,
            self.term,
            dict(self.watermarks),
            dict(self.told),
            self.last_batch,
            self.query,
            self.routing,
            self.fresh,
            list(self.segments),
            [ChainsRecord(operator, *each.lists()) for operator, each in sorted(self.chains.items())],
        )

    @classmethod
    def from_record(cls, record: ManifestRecord) -> Manifest:
        return cls(
            record.epoch,
            record.term,
            record.watermarks,
            record.told,
            record.last_batch,
            record.query,
            record.routing,
            record.fresh,
            tuple(record.segments),
            {each.operator: Chains.of(each.segment, each.slot, each.start, each.stop) for each in record.chains},
        )

    def _references(self, chains: Chains) -> list[RunRef]:
        epoch, hop, lane = self.origin[chains.segment].T
        chains = chains.select(np.lexsort((chains.slot, lane, -hop, -epoch)))
        cuts = np.flatnonzero(chains.segment[1:] != chains.segment[:-1]) + 1
        bounds = [0, *cuts.tolist(), len(chains)] if len(chains) else []
        return [self._reference(chains, start, stop) for start, stop in pairwise(bounds)]

    def _reference(self, chains: Chains, start: int, stop: int) -> RunRef:
        name = self.segments[int(chains.segment[start])].name
        return RunRef(name, *(each[start:stop].tolist() for each in (chains.slot, chains.start, chains.stop)))


def _operator_and_hop(record: SegmentRecord) -> tuple[int, int]:
    return record.operator, parse_segment(record.name).hop


def _compacted(
    segments: tuple[LiveSegment, ...], chains: dict[OperatorId, Chains]
) -> tuple[tuple[LiveSegment, ...], dict[OperatorId, Chains]]:
    """Without the segments that no chain refers to any more."""
    used = np.zeros(len(segments), np.bool_)
    for each in chains.values():
        used[each.segment] = True
    numbers = np.cumsum(used) - 1
    kept = tuple(compress(segments, used.tolist()))
    return kept, {operator: each.renumber(numbers) for operator, each in chains.items()}
