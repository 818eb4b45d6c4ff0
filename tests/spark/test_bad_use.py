"""Bad use gets a clear error, before any data is read where that is possible."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from tests.spark.helpers import bids, stream, write_batches

import trimtab as tt


class Good(tt.Logic):
    state = "price long"
    output = "auction long"

    def on_rows(self, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> pa.Table | None:
        return rows.select(["auction"])


def with_attributes(**attributes: object) -> tt.Logic:
    return type("Custom", (Good,), attributes)()  # type: ignore[no-any-return]


def lock_kept() -> Callable[[pa.Table], pa.Table]:
    """A function that drags a lock along."""
    lock = threading.Lock()

    def locked(*given: object) -> pa.Table:
        with lock:
            return given[0]

    return locked


Build = Callable[[tt.Flow, DataFrame], object]

REFUSED: dict[str, tuple[Build, str]] = {
    "no sink": (lambda f, s: f.source(s).key_by("auction").aggregate(n=tt.count()), "it has no sink"),
    "unknown key": (
        lambda f, s: f.source(s).key_by("nobody").aggregate(n=tt.count()).sink(tt.sinks.noop()),
        "there is no column 'nobody'; the input has",
    ),
    "unknown column": (
        lambda f, s: f.source(s).key_by("auction").aggregate(n=tt.sum("nothing")).sink(tt.sinks.noop()),
        "there is no column 'nothing'",
    ),
    "key given twice": (
        lambda f, s: f.source(s).key_by("auction", "auction").aggregate(n=tt.count()),
        "'auction' twice",
    ),
    "no key": (lambda f, s: f.source(s).key_by().aggregate(n=tt.count()), "takes the names of its key columns"),
    "key as a Spark column": (lambda f, s: f.source(s).key_by(F.col("auction")), "not Column<'auction'>"),
    "keys as a list": (lambda f, s: f.source(s).key_by(["auction", "price"]), "not ['auction', 'price']"),
    "duplicate columns": (
        lambda f, s: (
            f.source(s.select("auction", "price", "price")).key_by("auction").aggregate(n=tt.count()).sink(print)
        ),
        "column 'price' is there twice",
    ),
    "reserved column": (
        lambda f, s: (
            f.source(s.withColumnRenamed("price", "__trimtab_x")).key_by("auction").aggregate(n=tt.count()).sink(print)
        ),
        "begins with '__trimtab'",
    ),
    "key without a stable hash": (
        lambda f, s: (
            f.source(s.selectExpr("array(auction) as list")).key_by("list").aggregate(n=tt.count()).sink(print)
        ),
        "key column 'list' cannot be a key",
    ),
    "key with a collation": (
        lambda f, s: (
            f.source(s.selectExpr("cast(auction as string) collate UTF8_LCASE as name"))
            .key_by("name")
            .aggregate(n=tt.count())
            .sink(print)
        ),
        "has the collation UTF8_LCASE",
    ),
    "no slots": (lambda f, s: f.source(s).key_by("auction", slots=0).aggregate(n=tt.count()), "asks for 0 slots"),
    **{
        f"slots={slots!r}": (
            lambda f, s, slots=slots: f.source(s).key_by("auction", slots=slots).aggregate(n=tt.count()),
            f"asks for {slots!r} slots",
        )
        for slots in ("8", 8.0, True)
    },
    "more lanes than slots": (
        lambda f, s: f.source(s).key_by("auction", slots=1).aggregate(n=tt.count()).sink(print),
        "cannot run on 2 lanes",
    ),
    "no aggregate": (lambda f, s: f.source(s).key_by("auction").aggregate(), "has no aggregate"),
    "not an aggregate": (lambda f, s: f.source(s).key_by("auction").aggregate(n="sum"), "'n' is 'sum'; use tt.sum"),
    "aggregate of a Spark column": (
        lambda f, s: f.source(s).key_by("auction").aggregate(n=tt.sum(F.col("price"))),
        "'n': tt.sum() takes the name of a column, not Column<'price'>",
    ),
    "count of a Spark column": (
        lambda f, s: f.source(s).key_by("auction").aggregate(n=tt.count(F.col("price"))),
        "'n': tt.count() takes the name of a column, not Column<'price'>",
    ),
    "aggregate of no column": (
        lambda f, s: f.source(s).key_by("auction").aggregate(n=tt.max("")),
        "'n': tt.max() takes the name of a column, not ''",
    ),
    "aggregate like the key": (
        lambda f, s: f.source(s).key_by("auction").aggregate(auction=tt.count()),
        "named 'auction' like its key",
    ),
    "sum of text": (
        lambda f, s: (
            f.source(s.selectExpr("auction", "'x' as text")).key_by("auction").aggregate(n=tt.sum("text")).sink(print)
        ),
        "asks for the sum of column 'text', which has type string",
    ),
    "two sinks of one name": (
        lambda f, s: [f.source(s).key_by("auction").aggregate(n=tt.count()).sink(print, name="a") for _ in range(2)],
        "two sinks are called 'a'",
    ),
    "sink that cannot be called": (
        lambda f, s: f.source(s).key_by("auction").aggregate(n=tt.count()).sink("out"),
        "cannot be called with",
    ),
    "sink before the key": (lambda f, s: f.source(s).sink(tt.sinks.noop()), "has no keyed operator before it"),
    "logic class instead of an instance": (
        lambda f, s: f.source(s).key_by("auction").process(Good),
        "takes an instance",
    ),
    "bad DDL": (
        lambda f, s: f.source(s).key_by("auction").process(with_attributes(state="price wrong")).sink(print),
        "is not a list of columns in Spark's DDL",
    ),
    "no DDL": (
        lambda f, s: f.source(s).key_by("auction").process(with_attributes(output=None)).sink(print),
        "output has to declare its columns",
    ),
    "state named like the key": (
        lambda f, s: f.source(s).key_by("auction").process(with_attributes(state="auction long")).sink(print),
        "'auction' is there twice, or named like a key",
    ),
    "watermark on a number": (
        lambda f, s: f.source(s).watermark("price", "1 second").key_by("auction").aggregate(n=tt.count()).sink(print),
        "needs a timestamp column",
    ),
    "strange delay": (
        lambda f, s: f.source(s).watermark("moment", "soon").key_by("auction").aggregate(n=tt.count()).sink(print),
        "a delay reads like '10 seconds'",
    ),
    "watermark on a Spark column": (
        lambda f, s: f.source(s).watermark(F.col("moment"), "1 second"),
        "watermark() takes the name of a column",
    ),
    "map_batches without a function": (
        lambda f, s: f.source(s).map_batches("halve", "auction long"),
        "takes a function over Arrow tables, not 'halve'",
    ),
    "unknown column behind the operator": (
        lambda f, s: f.source(s).key_by("auction").aggregate(n=tt.count()).filter("price > 1").sink(print, name="out"),
        "sink 'out': Spark cannot do the select(), filter() or with_columns() before it, where there are the columns "
        "['auction', 'n']. [UNRESOLVED_COLUMN",
    ),
    "another frame's column behind the operator": (
        lambda f, s: f.source(s).key_by("auction").aggregate(n=tt.count()).select(s.price).sink(print),
        "Spark cannot do the select()",
    ),
    "output columns that differ by case": (
        lambda f, s: f.source(s).key_by("auction").aggregate(Auction=tt.count()).sink(print),
        "its columns 'auction' and 'Auction' have the same name to Spark",
    ),
    "an output column given twice": (
        lambda f, s: f.source(s).key_by("auction").aggregate(n=tt.count()).select("n", "n").sink(print),
        "its columns 'n' and 'n' have the same name to Spark",
    ),
    "a column named like the folders of a sink": (
        lambda f, s: f.source(s).key_by("auction").aggregate(Epoch=tt.count()).sink(tt.sinks.json("out")),
        "sink 'json:out': column 'Epoch' cannot be told from the sink's own column of that name",
    ),
    "logic that cannot travel": (
        lambda f, s: f.source(s).key_by("auction").process(with_attributes(on_watermark=lock_kept())).sink(print),
        "the logic of operator 'by_auction' cannot travel to Spark's tasks: cannot pickle '_thread.lock' object.",
    ),
    "a step that cannot travel": (
        lambda f, s: (
            f.source(s)
            .map_batches(lock_kept(), "auction long")
            .key_by("auction")
            .aggregate(n=tt.count())
            .sink(tt.sinks.noop())
        ),
        "the function of map_batches(locked) cannot travel to Spark's tasks",
    ),
    "second operator": (
        lambda f, s: f.source(s).key_by("auction").aggregate(n=tt.count()).key_by("n"),
        "would be a second keyed operator",
    ),
    "expression between steps": (
        lambda f, s: f.source(s).map_batches(lambda rows: rows, "auction long").filter("auction > 1"),
        "filter() cannot follow map_batches() before the key",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_flow_is_refused_before_data_is_read(spark: SparkSession, tmp_path: Path, case: str) -> None:
    build, message = REFUSED[case]
    flow = tt.Flow("wrong")
    with pytest.raises(tt.FlowError) as error:  # noqa: PT012 - a verb or start() refuses, as soon as it can
        build(flow, stream(spark, tmp_path / "in"))
        flow.start(spark, str(tmp_path / "ckpt"), lanes=2)
    assert message in str(error.value)
    assert str(error.value).startswith("Flow 'wrong'")
    assert not spark.streams.active
    # Neither was another driver overtaken.
    assert not (tmp_path / "ckpt").exists()


@pytest.mark.parametrize(
    ("lanes", "trigger", "message"),
    [
        (-1, None, "-1 lanes"),
        (0, None, "0 lanes"),
        ("2", None, "'2' lanes"),
        (2.5, None, "2.5 lanes"),
        (True, None, "True lanes"),
        (2, "1 sceond", "A trigger is an interval"),
        (2, 5, "A trigger is an interval"),
    ],
)
def test_wrong_ways_to_start(
    spark: SparkSession, tmp_path: Path, lanes: int, trigger: str | None, message: str
) -> None:
    with pytest.raises(tt.FlowError, match=message):
        totals_flow(spark, tmp_path).start(spark, str(tmp_path / "ckpt"), lanes=lanes, trigger=trigger)
    assert not (tmp_path / "ckpt").exists()


@pytest.mark.parametrize("checkpoint", ["", None, 5, b"ckpt"])
def test_a_checkpoint_that_is_no_address(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    flow = totals_flow(spark, tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tt.FlowError, match=r"A checkpoint is a folder of the flow's own.* is none\."):
        flow.start(spark, checkpoint)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("path", ["", None, 5])
def test_a_directory_sink_without_a_path(path: str) -> None:
    with pytest.raises(tt.FlowError, match="A directory sink takes the path of a folder"):
        tt.sinks.parquet(path)


@pytest.mark.parametrize("name", ["", " padded", 5, None])
def test_a_flow_without_a_name(name: str) -> None:
    with pytest.raises(tt.FlowError, match="A flow needs a printable name"):
        tt.Flow(name)


def test_names_that_differ_by_case_are_fine_where_spark_tells_it(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", [bids(0, keys=5)])
    sink = tt.sinks.memory()
    session = spark.newSession()
    session.conf.set("spark.sql.caseSensitive", "true")
    flow = tt.Flow("case")
    flow.source(stream(session, tmp_path / "in")).key_by("auction").aggregate(Auction=tt.count()).sink(sink)
    flow.start(session, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
    assert sink.epochs[0].column_names == ["auction", "Auction"]


@pytest.mark.parametrize("trigger", [None, "1 sceond"])
def test_a_second_start_by_mistake_leaves_the_first_run_alone(
    spark: SparkSession, tmp_path: Path, trigger: str | None
) -> None:
    sink = tt.sinks.memory()

    def start(spark: SparkSession, trigger: str | None) -> tt.Run:
        flow = tt.Flow("twice")
        flow.source(stream(spark, tmp_path / "in")).key_by("auction").aggregate(n=tt.count()).sink(sink)
        return flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger=trigger)

    write_batches(tmp_path / "in", [bids(0)])
    run = start(spark, None)
    run.process_all_available()
    # In a session of its own a query may have any name.
    with pytest.raises(tt.FlowError, match=r"is running in this Spark session|A trigger is an interval"):
        start(spark.newSession() if trigger else spark, trigger)
    write_batches(tmp_path / "in", [bids(1)], first=1)
    run.process_all_available()
    run.stop()
    assert sorted(sink.epochs) == [0, 1]


def test_a_batch_frame_is_no_source(spark: SparkSession) -> None:
    with pytest.raises(tt.FlowError, match="this is a batch DataFrame"):
        tt.Flow("wrong").source(spark.range(3))


def totals_flow(
    spark: SparkSession, folder: Path, name: str = "totals", key: str = "auction", slots: int = 8
) -> tt.Flow:
    flow = tt.Flow(name)
    keyed = flow.source(stream(spark, folder / "in")).key_by(key, slots=slots, name="by")
    keyed.aggregate(n=tt.sum("price")).sink(tt.sinks.noop())
    return flow


def other_state(spark: SparkSession, folder: Path) -> tt.Flow:
    flow = tt.Flow("totals")
    keyed = flow.source(stream(spark, folder / "in", "auction long, price double")).key_by(
        "auction", slots=8, name="by"
    )
    keyed.aggregate(n=tt.sum("price")).sink(tt.sinks.noop())
    return flow


OTHERS: dict[str, tuple[Callable[[SparkSession, Path], tt.Flow], str]] = {
    "flow": (lambda spark, folder: totals_flow(spark, folder, name="another"), "another"),
    "slots": (lambda spark, folder: totals_flow(spark, folder, slots=16), "slots"),
    "key": (lambda spark, folder: totals_flow(spark, folder, key="price"), "key"),
    "state": (other_state, "state"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_checkpoint_of_another_flow_is_refused(spark: SparkSession, tmp_path: Path, case: str) -> None:
    write_batches(tmp_path / "in", [bids(0)])
    checkpoint = str(tmp_path / "ckpt")
    totals_flow(spark, tmp_path).start(spark, checkpoint, lanes=2, trigger="availableNow").await_termination()
    build, message = OTHERS[case]
    with pytest.raises(tt.CheckpointError, match=message):
        build(spark, tmp_path).start(spark, checkpoint, lanes=2)


def test_an_exception_in_logic_names_where_and_shows_the_users_traceback_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    class Failing(Good):
        def on_rows(self, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> pa.Table | None:
            return self.divide(rows, 0)

        def divide(self, rows: pa.Table, by: int) -> pa.Table:
            return rows.slice(1 // by)

    write_batches(tmp_path / "in", [bids(0)])
    flow = tt.Flow("failing")
    flow.source(stream(spark, tmp_path / "in")).key_by("auction", name="mine").process(Failing()).sink(tt.sinks.noop())
    run = flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow")
    with pytest.raises(tt.LogicError) as error:
        run.await_termination()
    text = str(error.value)
    assert text.startswith("Traceback (most recent call last):\n  File ")
    assert "in divide" in text and "ZeroDivisionError" in text and "trimtab/" not in text
    assert "Flow 'failing', operator 'mine', epoch 0, lane " in text
    assert "in Failing.on_rows." in text


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({"wrong": [1]}, "returned the columns ['wrong'], but its output declares ['auction']"),
        ({"auction": ["text"]}, "returned column 'auction' as string"),
        ([1], "returned list instead of a pyarrow.Table"),
    ],
)
def test_output_that_does_not_match_its_ddl(
    spark: SparkSession, tmp_path: Path, returned: object, message: str
) -> None:
    def on_rows(self: tt.Logic, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> object:
        return pa.table(returned) if isinstance(returned, dict) else returned

    write_batches(tmp_path / "in", [bids(0)])
    flow = tt.Flow("failing")
    source = flow.source(stream(spark, tmp_path / "in"))
    source.key_by("auction").process(with_attributes(on_rows=on_rows)).sink(tt.sinks.noop())
    with pytest.raises(tt.LogicError) as error:
        flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
    assert message in str(error.value)


def test_map_batches_names_its_function(spark: SparkSession, tmp_path: Path) -> None:
    def halve(rows: pa.Table) -> pa.Table:
        raise ValueError("no halves")

    write_batches(tmp_path / "in", [bids(0)])
    flow = tt.Flow("failing")
    source = flow.source(stream(spark, tmp_path / "in")).map_batches(halve, "auction long")
    source.key_by("auction").aggregate(n=tt.count()).sink(tt.sinks.noop())
    with pytest.raises(tt.LogicError, match=r"(?s)^Traceback.*no halves.*epoch 0, in map_batches\(halve\)\."):
        flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
