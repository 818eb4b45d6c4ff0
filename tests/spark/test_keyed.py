"""A keyed flow on real Spark: results, lanes, restarts, sinks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.helpers import bids, latest, stream, totals, write_batches

import trimtab as tt


def run_totals(spark: SparkSession, folder: Path, lanes: int, checkpoint: str = "ckpt") -> tt.sinks.MemorySink:
    """All there is in the folder through a sum and a count, until it is through."""
    sink = tt.sinks.memory()
    flow = tt.Flow("totals")
    source = flow.source(stream(spark, folder / "in"))
    source.key_by("auction", slots=16).aggregate(total=tt.sum("price"), bids=tt.count()).sink(sink)
    flow.start(spark, str(folder / checkpoint), lanes=lanes, trigger="availableNow").await_termination()
    return sink


def test_sums_and_counts_equal_a_plain_computation(spark: SparkSession, tmp_path: Path) -> None:
    batches = [bids(seed) for seed in range(4)]
    write_batches(tmp_path / "in", batches)
    sink = run_totals(spark, tmp_path, lanes=2)
    assert sorted(sink.epochs) == [0, 1, 2, 3]
    assert latest(sink.table()) == totals(batches)


def test_each_epoch_updates_just_the_keys_it_touched(spark: SparkSession, tmp_path: Path) -> None:
    batches = [bids(0, rows=5), bids(1, rows=5)]
    write_batches(tmp_path / "in", batches)
    sink = run_totals(spark, tmp_path, lanes=2)
    for epoch, batch in enumerate(batches):
        touched = sink.epochs[epoch]["auction"].to_pylist()
        assert sorted(touched) == sorted(set(batch["auction"].to_pylist()))


def test_the_lane_count_may_differ_at_every_start(spark: SparkSession, tmp_path: Path) -> None:
    batches = [bids(seed) for seed in range(10)]
    seen: dict[object, object] = {}
    for start, lanes in enumerate([3, 5, 1, 4, 16]):
        write_batches(tmp_path / "in", batches[2 * start : 2 * start + 2], first=2 * start)
        seen |= latest(run_totals(spark, tmp_path, lanes).table())
    assert seen == totals(batches)


def test_null_keys_strings_and_several_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"name": ["a", None, "a", "ü", None], "day": [1, 1, 1, None, 1], "price": [1, 2, None, 4, 5]})
    write_batches(tmp_path / "in", [table, table])
    sink = tt.sinks.memory()
    flow = tt.Flow("names")
    source = flow.source(stream(spark, tmp_path / "in", "name string, day long, price long"))
    source.key_by("name", "day").aggregate(total=tt.sum("price"), last=tt.last("price")).sink(sink)
    flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
    rows = {(row["name"], row["day"]): (row["total"], row["last"]) for row in sink.epochs[1].to_pylist()}
    assert rows == {("a", 1): (2, None), (None, 1): (14, 5), ("ü", None): (8, 4)}


class Changes(tt.Logic):
    """Reports a row when a key's value differs from the one before; forgets keys whose price is null."""

    state = "price long"
    output = "auction long, before long, after long"

    def on_rows(self, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> pa.Table | None:
        gone = rows.filter(pc.is_null(rows["price"]))
        state.delete(gone)
        rows = rows.filter(pc.is_valid(rows["price"]))
        before = state.get(rows)["price"]
        state.put(rows.select(["auction", "price"]))
        changed = pa.table({"auction": rows["auction"], "before": before, "after": rows["price"]})
        return changed.filter(pc.fill_null(pc.not_equal(before, rows["price"]), True))


def test_process_keeps_state_from_epoch_to_epoch(spark: SparkSession, tmp_path: Path) -> None:
    def batch(*rows: tuple[int, int | None]) -> pa.Table:
        auctions, prices = zip(*rows, strict=True)
        return pa.table({"auction": pa.array(auctions, pa.int64()), "price": pa.array(prices, pa.int64())})

    write_batches(tmp_path / "in", [batch((1, 5), (2, 6)), batch((1, 5), (2, 7)), batch((2, None)), batch((2, 7))])
    sink = tt.sinks.memory()
    flow = tt.Flow("changes")
    flow.source(stream(spark, tmp_path / "in", "auction long, price long")).key_by("auction").process(Changes()).sink(
        sink
    )
    flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
    epochs = [sorted(tuple(row.values()) for row in sink.epochs[epoch].to_pylist()) for epoch in range(4)]
    assert epochs == [[(1, None, 5), (2, None, 6)], [(2, 6, 7)], [], [(2, None, 7)]]


def test_steps_before_and_behind_the_operator(spark: SparkSession, tmp_path: Path) -> None:
    def double(rows: pa.Table) -> pa.Table:
        return pa.table({"auction": rows["auction"], "twice": pc.multiply(rows["price"], 2)})

    def label(rows: pa.Table) -> pa.Table:
        return rows.append_column("label", pc.cast(rows["auction"], pa.string()))

    batches = [bids(0)]
    write_batches(tmp_path / "in", batches)
    sink = tt.sinks.memory()
    flow = tt.Flow("steps")
    prepared = flow.source(stream(spark, tmp_path / "in")).filter("price >= 500").select("auction", "price")
    summed = prepared.map_batches(double, "auction long, twice long").key_by("auction").aggregate(total=tt.sum("twice"))
    labelled = summed.map_batches(label, "auction long, total long, label string")
    labelled.filter("total > 0").select("label", "total").sink(sink)
    flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
    dear = batches[0].filter(pc.greater_equal(batches[0]["price"], 500))
    wanted = {str(auction): (2 * total,) for auction, (total, _) in totals([dear]).items()}
    assert latest(sink.table()) == wanted


def test_two_sinks_and_one_that_reads_little_see_every_lane_run_once(spark: SparkSession, tmp_path: Path) -> None:
    batches = [bids(seed) for seed in range(3)]
    write_batches(tmp_path / "in", batches)
    peeked: dict[int, int] = {}

    def peek(frame: DataFrame, epoch: int) -> None:
        peeked[epoch] = len(frame.limit(5).collect())

    whole = tt.sinks.memory()
    flow = tt.Flow("two")
    summed = (
        flow.source(stream(spark, tmp_path / "in"))
        .key_by("auction", slots=8)
        .aggregate(total=tt.sum("price"), n=tt.count())
    )
    summed.sink(peek)
    summed.select("auction", "total", "n").sink(whole)
    flow.start(spark, str(tmp_path / "ckpt"), lanes=8, trigger="availableNow").await_termination()
    assert peeked == {0: 5, 1: 5, 2: 5}
    assert latest(whole.table()) == totals(batches)


def test_lanes_run_though_spark_can_tell_that_a_sink_gets_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    batches = [bids(seed) for seed in range(3)]
    none, sink = tt.sinks.memory(), tt.sinks.memory()

    def run(condition: str, sink: tt.sinks.MemorySink) -> None:
        flow = tt.Flow("filtered")
        keyed = flow.source(stream(spark, tmp_path / "in")).key_by("auction", slots=8)
        keyed.aggregate(total=tt.sum("price"), n=tt.count()).filter(condition).sink(sink)
        flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()

    write_batches(tmp_path / "in", batches[:2])
    run("1 = 0", none)
    write_batches(tmp_path / "in", batches[2:], first=2)
    run("1 = 1", sink)
    assert [none.epochs[epoch].num_rows for epoch in (0, 1)] == [0, 0]
    rows = latest(sink.table())
    assert rows == {auction: row for auction, row in totals(batches).items() if auction in rows}


def test_lanes_that_nobody_asks_for_are_at_most_as_many_as_slots(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.sparkContext.defaultParallelism > 1
    sink = tt.sinks.memory()
    flow = tt.Flow("one")
    flow.source(stream(spark, tmp_path / "in")).key_by("auction", slots=1).aggregate(n=tt.count()).sink(sink)
    write_batches(tmp_path / "in", [bids(0)])
    run = flow.start(spark, tmp_path / "ckpt", trigger="availableNow")
    run.await_termination()
    assert sink.epochs[0].num_rows == 50
    assert [len(measure.lanes) for measure in run.history().measures] == [1]


def test_sinks_of_different_streams(spark: SparkSession, tmp_path: Path) -> None:
    batches = [bids(seed) for seed in range(2)]
    write_batches(tmp_path / "in", batches)
    plain, mapped = tt.sinks.memory("plain"), tt.sinks.memory("mapped")
    flow = tt.Flow("branches")
    summed = (
        flow.source(stream(spark, tmp_path / "in")).key_by("auction").aggregate(total=tt.sum("price"), n=tt.count())
    )
    summed.sink(plain)
    summed.map_batches(lambda rows: rows.select(["n"]), "n long").sink(mapped)
    flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
    assert latest(plain.table()) == totals(batches)
    assert sorted(mapped.epochs[1]["n"].to_pylist()) == sorted(plain.epochs[1]["n"].to_pylist())


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_directories_hold_one_folder_per_epoch(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    batches = [bids(seed) for seed in range(3)]
    write_batches(tmp_path / "in", batches)
    flow = tt.Flow("files")
    summed = (
        flow.source(stream(spark, tmp_path / "in")).key_by("auction").aggregate(total=tt.sum("price"), n=tt.count())
    )
    summed.sink(getattr(tt.sinks, kind)(tmp_path / "out"))
    flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
    read = spark.read.format(kind).schema("auction long, total long, n long, epoch int").load(str(tmp_path / "out"))
    assert latest(read.orderBy("epoch").select("auction", "total", "n").toArrow()) == totals(batches)
    assert sorted(path.name for path in (tmp_path / "out").glob("epoch=*")) == ["epoch=0", "epoch=1", "epoch=2"]


def test_a_sink_that_fails_fails_its_epoch_and_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    batches = [bids(seed) for seed in range(4)]
    write_batches(tmp_path / "in", batches)
    kept: dict[int, pa.Table] = {}
    broken = True

    def fragile(frame: DataFrame, epoch: int) -> None:
        if broken and epoch == 2:
            raise OSError("the disk is full")
        kept[epoch] = frame.toArrow()

    def start() -> tt.Run:
        flow = tt.Flow("fragile")
        summed = (
            flow.source(stream(spark, tmp_path / "in")).key_by("auction").aggregate(total=tt.sum("price"), n=tt.count())
        )
        summed.sink(fragile)
        return flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow")

    with pytest.raises(tt.SinkError, match=r"Flow 'fragile', epoch 2: sink 'fragile' failed\. the disk is full"):
        start().await_termination()
    assert sorted(kept) == [0, 1]
    broken = False
    start().await_termination()
    assert sorted(kept) == [0, 1, 2, 3]
    assert latest(pa.concat_tables([kept[epoch] for epoch in sorted(kept)])) == totals(batches)


def test_process_all_available_waits_for_rows_that_come_later(spark: SparkSession, tmp_path: Path) -> None:
    batches = [bids(seed) for seed in range(3)]
    sink = tt.sinks.memory()
    flow = tt.Flow("later")
    summed = (
        flow.source(stream(spark, tmp_path / "in")).key_by("auction").aggregate(total=tt.sum("price"), n=tt.count())
    )
    summed.sink(sink)
    run = flow.start(spark, str(tmp_path / "ckpt"), lanes=2)
    for number, batch in enumerate(batches):
        write_batches(tmp_path / "in", [batch], first=number)
        run.process_all_available()
        assert latest(sink.table()) == totals(batches[: number + 1])
    run.stop()
    assert not run.is_active
    assert run.exception is None


class Expiring(tt.Logic):
    """Holds the latest moment per key and emits keys once the watermark has passed it."""

    state = "moment timestamp"
    output = "auction long, moment timestamp"

    def on_rows(self, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> pa.Table | None:
        state.put(rows.select(["auction", "moment"]))
        return None

    def on_watermark(self, watermark: object, state: tt.KeyedState, ctx: tt.Context) -> pa.Table | None:
        held = state.scan()
        passed = held.filter(pc.less_equal(held["moment"], pa.scalar(watermark, pa.timestamp("us", "UTC"))))
        state.delete(passed)
        return passed


def test_time_closes_what_it_can_at_the_end_without_more_rows(spark: SparkSession, tmp_path: Path) -> None:
    moments = [10_000_000, 20_000_000, 30_000_000]
    table = pa.table({"auction": [1, 2, 3], "price": [0, 0, 0], "moment": pa.array(moments, pa.timestamp("us", "UTC"))})
    write_batches(tmp_path / "in", [table])
    sink = tt.sinks.memory()
    flow = tt.Flow("expiring")
    source = flow.source(stream(spark, tmp_path / "in")).watermark("moment", "10 seconds")
    source.key_by("auction").process(Expiring()).sink(sink)
    flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
    assert sink.epochs[0].num_rows == 0
    assert sorted(sink.epochs[1]["auction"].to_pylist()) == [1, 2]


def test_a_source_that_is_renamed_or_no_longer_tracked_holds_no_time_up(spark: SparkSession, tmp_path: Path) -> None:
    def run(name: str, first: int, delay: str | None = "10 seconds") -> dict[int, list[int]]:
        moments = pa.array([(first + 10 * row) * 1_000_000 for row in range(3)], pa.timestamp("us", "UTC"))
        table = pa.table({"auction": range(first, first + 3), "price": [0, 0, 0], "moment": moments})
        write_batches(tmp_path / "in", [table], first=first)
        sink = tt.sinks.memory()
        flow = tt.Flow("expiring")
        source = flow.source(stream(spark, tmp_path / "in"), name=name)
        tracked = source if delay is None else source.watermark("moment", delay)
        tracked.key_by("auction").process(Expiring()).sink(sink)
        flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
        return {epoch: sorted(rows["auction"].to_pylist()) for epoch, rows in sink.epochs.items()}

    assert run("one", 10) == {0: [], 1: [10, 11]}
    assert run("two", 110) == {2: [], 3: [12, 110, 111]}
    assert run("two", 210, delay=None) == {4: []}
    assert run("two", 310) == {5: [], 6: [112, 210, 211, 212, 310, 311]}


def test_an_empty_stream_ends_without_an_epoch(spark: SparkSession, tmp_path: Path) -> None:
    assert run_totals(spark, tmp_path, lanes=2).epochs == {}


def test_a_busy_run_stops_between_epochs_and_goes_on_at_the_next_start(spark: SparkSession, tmp_path: Path) -> None:
    sink = tt.sinks.memory()

    def start() -> tt.Run:
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
        flow = tt.Flow("busy")
        flow.source(rows.selectExpr("value % 7 as key", "value")).key_by("key").aggregate(n=tt.count()).sink(sink)
        return flow.start(spark, str(tmp_path / "ckpt"), lanes=2)

    for wanted in (3, 6):
        run = start()
        while len(sink.epochs) < wanted:
            assert not run.await_termination(0.1)
        run.stop()
        assert run.exception is None
    rows = {key: n for (key, (n,)) in latest(sink.table()).items()}
    assert sum(rows.values()) == 100 * len(sink.epochs)
    assert sorted(sink.epochs) == list(range(len(sink.epochs)))
