"""Names, types and values that are allowed but seldom: they work like any other, or are refused before data is read."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.helpers import bids, latest, stream, totals, write_batches

import trimtab as tt


def of_two_batches(spark: SparkSession, folder: Path, *columns: str) -> tuple[DataFrame, list[pa.Table]]:
    """Two epochs of bids, with the columns that SQL expressions make of them."""
    batches = [bids(seed, rows=60, keys=5) for seed in range(2)]
    write_batches(folder / "in", batches)
    return stream(spark, folder / "in").selectExpr(*columns), batches


def ended(flow: tt.Flow, spark: SparkSession, folder: Path) -> None:
    flow.start(spark, str(folder / "ckpt"), lanes=2, trigger="availableNow").await_termination()


def test_aggregates_of_columns_with_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    columns = ["auction as `a.b`", "price as `p``q`", "moment as `t.x y`", "price as `Größe`", "price as `größe`"]
    rows, batches = of_two_batches(spark, tmp_path, *columns, "1 as `*`", "2 as ``")
    sink = tt.sinks.memory()
    flow = tt.Flow("odd names")
    keyed = flow.source(rows).watermark("t.x y", "1 second").key_by("a.b")
    wanted = {"s.u m": tt.sum("p`q"), "": tt.count(), ".x": tt.max("größe"), "a`b": tt.first("Größe")}
    keyed.aggregate(**wanted).sink(sink)
    ended(flow, spark, tmp_path)
    table = sink.table()
    assert table is not None and table.column_names == ["a.b", *wanted]
    assert latest(table.select([0, 1, 2])) == totals(batches)


class Dotted(tt.Logic):
    """The sum so far, all of its columns under names that Spark takes for paths."""

    state = "`s.t` long"
    output = "`a.b` long, `.s` long"

    def on_rows(self, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> pa.Table:
        sums = rows.group_by("a.b", use_threads=False).aggregate([("p", "sum")]).rename_columns(["a.b", "s.t"])
        before = pc.fill_null(state.get(sums)["s.t"], 0)
        sums = sums.set_column(1, "s.t", pc.add(before, sums["s.t"]))
        state.put(sums)
        return sums.rename_columns(["a.b", ".s"])


def test_logic_and_sinks_of_columns_with_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    rows, batches = of_two_batches(spark, tmp_path, "auction as `a.b`", "price as p", "1 as `nobody.reads.it`")
    whole, folder = tt.sinks.memory(), tt.sinks.json(str(tmp_path / "out"))
    flow = tt.Flow("dotted")
    summed = flow.source(rows).key_by("a.b").process(Dotted())
    summed.sink(whole)
    summed.map_batches(lambda table: table, "`a.b` long, `.s` long").sink(folder)
    ended(flow, spark, tmp_path)
    assert {key: total for key, (total,) in latest(whole.table()).items()} == {
        key: total for key, (total, _) in totals(batches).items()
    }
    assert sorted(spark.read.json(str(tmp_path / "out")).columns) == [".s", "a.b", "epoch"]


class Keeps(tt.Logic):
    """Puts what comes and returns what was there."""

    state = "tags array<string>, pair struct<a: long, b: array<string>>, named map<string, long>"
    output = f"auction long, {state}"

    def on_rows(self, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> pa.Table:
        before = state.get(rows)
        state.put(rows)
        return before.add_column(0, "auction", rows["auction"])


def test_nested_state_takes_what_spark_says_is_never_null(spark: SparkSession, tmp_path: Path) -> None:
    nested = ["split('x y', ' ') as tags", "named_struct('a', 7L, 'b', array('z')) as pair", "map('k', 8L) as named"]
    rows, _ = of_two_batches(spark, tmp_path, "auction", *nested)
    sink = tt.sinks.memory()
    flow = tt.Flow("nested")
    flow.source(rows).key_by("auction").process(Keeps()).sink(sink)
    ended(flow, spark, tmp_path)
    assert {str(each) for each in latest(sink.epochs[1]).values()} == {
        str((["x", "y"], {"a": 7, "b": ["z"]}, [("k", 8)]))
    }


def test_a_key_without_a_type_is_one_key_in_every_epoch(spark: SparkSession, tmp_path: Path) -> None:
    rows, batches = of_two_batches(spark, tmp_path, "null as nothing", "price")
    sink = tt.sinks.memory()
    flow = tt.Flow("void")
    flow.source(rows).key_by("nothing").aggregate(n=tt.count()).sink(sink)
    ended(flow, spark, tmp_path)
    assert sink.epochs[1].to_pylist() == [{"nothing": None, "n": sum(len(batch) for batch in batches)}]


def test_an_event_time_beyond_pythons_years_stops_no_later_epoch(spark: SparkSession, tmp_path: Path) -> None:
    far = pa.array([1_700_000_000_000 * 1_000_000] * 60, pa.timestamp("us", "UTC"))
    batches = [bids(seed, rows=60, keys=5) for seed in range(3)]
    batches[0] = batches[0].set_column(2, "moment", far)
    write_batches(tmp_path / "in", batches)
    sink = tt.sinks.memory()
    flow = tt.Flow("far")
    source = flow.source(stream(spark, tmp_path / "in")).watermark("moment", "1 second")
    source.key_by("auction").aggregate(total=tt.sum("price"), n=tt.count()).sink(sink)
    ended(flow, spark, tmp_path)
    assert latest(sink.table()) == totals(batches)


class Told(tt.Logic):
    """Tells how often it was called and what it was told of time."""

    state = "n long"
    output = "calls long, watermark timestamp"
    calls = 0

    def on_rows(self, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> pa.Table:
        self.calls += 1
        moments = pa.array([ctx.watermark], pa.timestamp("us", "UTC"))
        return pa.table({"calls": [self.calls], "watermark": moments})


def test_logic_starts_every_epoch_as_it_was_written(spark: SparkSession, tmp_path: Path) -> None:
    batches = [bids(seed, rows=60, keys=5) for seed in range(4)]
    write_batches(tmp_path / "in", batches)
    sink = tt.sinks.memory()
    flow = tt.Flow("told")
    source = flow.source(stream(spark, tmp_path / "in")).watermark("moment", "0 seconds")
    source.key_by("auction").process(Told()).sink(sink)
    ended(flow, spark, tmp_path)
    assert {row["calls"] for table in sink.epochs.values() for row in table.to_pylist()} == {1}
    assert set(sink.epochs[1]["watermark"].to_pylist()) == {datetime(1970, 1, 1, 0, 0, 59, tzinfo=timezone.utc)}


def test_a_key_with_a_collation_is_refused_behind_a_function_too(spark: SparkSession, tmp_path: Path) -> None:
    flow = tt.Flow("collated")
    source = flow.source(stream(spark, tmp_path / "in")).map_batches(lambda rows: rows, "k string collate UTF8_LCASE")
    source.key_by("k").aggregate(n=tt.count()).sink(tt.sinks.noop())
    with pytest.raises(tt.FlowError, match=r"^Flow 'collated', operator 'by_k': key column 'k' has the collation"):
        flow.start(spark, str(tmp_path / "ckpt"), lanes=2)


def test_the_least_of_intervals_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rows = stream(spark, tmp_path / "in").selectExpr("auction", "make_dt_interval(price) as span")
    flow = tt.Flow("intervals")
    flow.source(rows).key_by("auction").aggregate(least=tt.min("span")).sink(tt.sinks.noop())
    with pytest.raises(tt.FlowError, match=r"^Flow 'intervals'.* asks for the min of column 'span', which has type"):
        flow.start(spark, str(tmp_path / "ckpt"), lanes=2)
