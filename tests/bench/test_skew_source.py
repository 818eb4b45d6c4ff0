"""The open-loop source: which rows come when, and to whom."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions
from pyspark.sql.streaming.datasource import ReadMaxRows

from trimtab.bench.skew import moving, spikes
from trimtab.bench.skew.source import SLOTS, Input, Phase, Reader, keys_for
from trimtab.state.keyhash import hash_keys, slot_of

LANES = 3
RATE = 1000
KEYS = tuple(range(0, 60 * 7, 7))


def input_of(*phases: Phase) -> Input:
    return Input(RATE, 2 * RATE, LANES, KEYS, phases or (Phase(0),))


def lanes_of(input: Input, rows: np.ndarray) -> np.ndarray:
    """How many of the rows are for the slots of each lane."""
    slot = np.searchsorted(np.array(input.keys), input.auctions(rows))
    return np.bincount(slot % LANES, minlength=LANES)


@pytest.mark.parametrize(("share", "hot"), [(50, (0,)), (80, (2,)), (60, (0, 1)), (80, (0, 1))])
def test_every_hundred_rows_have_their_share(share: int, hot: tuple[int, ...]) -> None:
    input = input_of(Phase(0, share, hot))
    for start in (0, 700, 12_300):
        lanes = lanes_of(input, np.arange(start, start + 100))
        assert lanes[list(hot)].sum() == share


def test_keys_have_equal_parts_of_what_is_hot_and_of_what_is_not() -> None:
    for input in (input_of(), input_of(Phase(0, 80, (0,)))):
        counts = np.unique(input.auctions(np.arange(60_000)), return_counts=True)[1]
        assert len(counts) == len(KEYS)
        assert sum(counts.max() - counts.min() > 1 for counts in np.split(np.sort(counts), [40])) == 0


def test_phases_follow_one_another_and_the_last_goes_on() -> None:
    input = input_of(Phase(2), Phase(3, 80, (1,)), Phase(0))
    shares = [lanes_of(input, np.arange(second * RATE, (second + 1) * RATE))[1] for second in range(8)]
    assert [share == 800 for share in shares] == [False, False, True, True, True, False, False, False]
    split = np.concatenate([input.auctions(part) for part in np.array_split(np.arange(8000), 7)])
    assert (split == input.auctions(np.arange(8000))).all()


def test_an_epoch_takes_what_has_arrived_and_no_more_than_its_cap() -> None:
    reader = Reader(input_of())
    begin = reader.initialOffset()["begin"]
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(2 * RATE)
    just_now, long_ago = {"row": 0, "begin": begin - 0.5}, {"row": 100, "begin": begin - 60}
    assert RATE / 2 <= reader.latestOffset(just_now, limit)["row"] < 2 * RATE
    assert reader.latestOffset(long_ago, limit) == {"row": 100 + 2 * RATE, "begin": begin - 60}
    ahead = {"row": 10**9, "begin": begin}
    assert reader.latestOffset(ahead, limit) == ahead


def test_partitions_cover_the_rows_once() -> None:
    reader = Reader(input_of())
    parts = reader.partitions({"row": 5, "begin": 0.0}, {"row": 1006, "begin": 0.0})
    rows = pa.Table.from_batches([batch for part in parts for batch in reader.read(part)])
    assert rows["auction"].to_pylist() == input_of().auctions(np.arange(5, 1006)).tolist()
    assert rows["price"].to_pylist() == [number % 100 for number in range(5, 1006)]


def test_inputs_travel_as_text() -> None:
    input = input_of(Phase(1, 80, (0, 1)), Phase(0))
    assert msgspec.json.decode(msgspec.json.encode(input), type=Input) == input


def test_hotspots_move_every_time_and_spikes_end() -> None:
    lanes = [phase.hot for phase in moving.by_chance(50)]
    assert all(one != other for one, other in pairwise(lanes))
    assert {phase.hot for phase in moving.in_turn(80)} == {(0,), (1,), (2,)}
    assert [phase.share for phase in spikes.setting(10).phases] == [0, 80, 0]


def test_keys_crowd_on_sparks_partitions_as_on_lanes(spark: SparkSession) -> None:
    keys = keys_for(spark, LANES)
    assert slot_of(hash_keys([pa.array(keys)]), SLOTS).tolist() == list(range(SLOTS))
    frame = spark.createDataFrame([(key,) for key in keys], "auction long").repartition(LANES, "auction")
    partition = {
        row.auction: row.partition for row in frame.withColumn("partition", functions.spark_partition_id()).collect()
    }
    assert [partition[key] for key in keys] == [slot % LANES for slot in range(SLOTS)]
