"""The most frequent keys of a stream in little memory: Misra and Gries's summary, which merges.

A lane cannot be relieved of a single slot, nor a slot of a single key: where one of them weighs more than a lane's fair
share, all that is left is to name it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from trimtab.state.order import Ints
from trimtab.vocab import HotKey, OperatorId, SlotId

KEPT = 8


class Frequent:
    """At most `kept` items with their counts, each too low by no more than `missed`.

    >>> summary = Frequent(kept=2)
    >>> summary.add({"a": 5, "b": 1, "c": 2})
    >>> summary.counts, summary.missed
    ({'a': 4, 'c': 1}, 1)
    """

    def __init__(self, kept: int = KEPT) -> None:
        self.kept = kept
        self.counts: dict[str, int] = {}
        self.missed = 0

    def add(self, counts: Mapping[str, int]) -> None:
        """Merge counts of items, or the counts of another summary."""
        for item, count in counts.items():
            self.counts[item] = self.counts.get(item, 0) + count
        if len(self.counts) > self.kept:
            least = sorted(self.counts.values(), reverse=True)[self.kept]
            self.missed += least
            self.counts = {item: count - least for item, count in self.counts.items() if count > least}

    def top(self, number: int) -> list[tuple[str, int]]:
        """The items with the highest counts."""
        return sorted(self.counts.items(), key=lambda each: (-each[1], each[0]))[:number]


def merged(hot: Iterable[HotKey]) -> list[HotKey]:
    """What several parts of a stream say of their hot keys, as one: a few keys for each slot."""
    summaries: dict[tuple[OperatorId, SlotId], Frequent] = {}
    for each in hot:
        summaries.setdefault((each.operator, each.slot), Frequent()).add({each.key: each.rows})
    return [HotKey(*place, key, rows) for place, found in summaries.items() for key, rows in found.top(KEPT)]


def hottest_keys(
    operator: OperatorId, rows: pa.Table, keys: Sequence[str], slots: Ints, lanes: int
) -> Iterable[HotKey]:
    """The hottest keys of those slots that alone have more than a lane's fair share of some rows; none without keys."""
    if not keys or lanes < 2:
        return
    for slot in np.flatnonzero(np.bincount(slots) * lanes > len(slots)).tolist():
        yield from _of_slot(operator, slot, rows.select(list(keys)).filter(pa.array(slots == slot)))


def _of_slot(operator: OperatorId, slot: SlotId, rows: pa.Table) -> Iterable[HotKey]:
    names = [f"{place}" for place in range(rows.num_columns)]
    counted = rows.rename_columns(names).group_by(names, use_threads=False).aggregate([([], "count_all")])
    hottest = counted.sort_by([("count_all", "descending")]).slice(0, KEPT).to_pylist()
    for row in hottest:
        count = row.pop("count_all")
        yield HotKey(operator, slot, ", ".join(map(_text, row.values())), count)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode().strip('"')
