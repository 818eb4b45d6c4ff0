"""What lanes measure adds up, whatever is combined and however rows are cut; hot keys are found in little memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lane.test_task import KEYS, LANES, SLOTS, aggregates, numbered, partitions, run

from trimtab.lane.hottest import Frequent, hottest_keys
from trimtab.state.keyhash import hash_keys, slot_of
from trimtab.vocab import Routing


@pytest.mark.parametrize("chunk_bytes", [1, 5_000, 10**6])
@pytest.mark.parametrize("combined", [True, False])
def test_rows_work_and_time_by_slot_add_up(tmp_path: Path, chunk_bytes: int, combined: bool) -> None:
    flow, rows = aggregates(tmp_path) if combined else numbered(tmp_path, 1000), partitions(5)
    keys = [key for batches in rows for batch in batches for key in batch["key"].to_pylist()]
    slots = slot_of(hash_keys([pa.array(keys, KEYS.field("key").type)]), SLOTS)
    routing = Routing.spread(LANES, [SLOTS]).slots[0]
    counted: Counter[int] = Counter()
    for report, _ in run(flow, rows, chunk_bytes=chunk_bytes):
        [mine] = report.slots
        assert all(routing[slot] == report.measure.lane for slot in mine.slots)
        counted.update(dict(zip(mine.slots, mine.rows, strict=True)))
        assert sum(mine.work) == report.measure.work
        assert sum(mine.work) < sum(mine.rows) if combined and chunk_bytes > 1 else sum(mine.work) <= sum(mine.rows)
        assert sum(mine.busy) == pytest.approx(report.measure.busy + report.measure.write, rel=0.5)
        assert min(mine.busy) >= 0 < min(mine.bytes)
        assert report.measure.wall == pytest.approx(
            report.measure.read + report.measure.busy + report.measure.write, abs=1e-6
        )
    assert counted == Counter(slots.tolist())


COUNTS = st.lists(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 50), max_size=6), max_size=8)


@given(COUNTS, st.integers(1, 4))
def test_a_frequent_item_is_kept_and_its_count_is_too_low_by_no_more_than_it_says(
    parts: list[dict[str, int]], kept: int
) -> None:
    summary, exact = Frequent(kept), Counter[str]()
    for part in parts:
        summary.add(part)
        exact.update(part)
    assert len(summary.counts) <= kept
    for item, count in exact.items():
        assert count - summary.missed <= summary.counts.get(item, 0) <= count
    assert summary.missed <= exact.total() / (kept + 1)


def test_only_slots_above_a_fair_share_are_looked_into() -> None:
    rows = pa.table({"a b": ["x"] * 6 + ["y"] * 3 + [None] * 2, "n": [1] * 11})
    slots = np.array([1] * 9 + [0, 2])
    found = list(hottest_keys(3, rows, ["a b", "n"], slots, lanes=3))
    assert [(hot.operator, hot.slot, hot.key, hot.rows) for hot in found] == [(3, 1, "x, 1", 6), (3, 1, "y, 1", 3)]
    assert not list(hottest_keys(3, rows, ["a b"], slots, lanes=1))
    assert not list(hottest_keys(3, rows, [], slots, lanes=3))
