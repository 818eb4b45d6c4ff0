"""Trimtab as a contender, and the two queries that show what an epoch costs without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from trimtab.bench.streams import Start
from trimtab.flow import sinks
from trimtab.flow.aggregates import count, sum
from trimtab.spark.flow import Flow
from trimtab.spark.run import Run
from trimtab.spark.tasks import settle_worker


def trimtab(lanes: int, slots: int = 256, seen: Callable[[Run], object] = lambda run: None) -> Start:
    """The running total and count of every auction; `seen` is called with the run."""

    def start(frame: DataFrame, checkpoint: str) -> tuple[StreamingQuery, Callable[[], object]]:
        flow = Flow("bench")
        totals = flow.source(frame).key_by("auction", slots=slots).aggregate(total=sum("price"), bids=count())
        totals.sink(sinks.noop())
        run = flow.start(frame.sparkSession, checkpoint, lanes=lanes)
        seen(run)
        return run.query, run.stop

    return start


def empty_stage(frame: DataFrame, checkpoint: str) -> tuple[StreamingQuery, Callable[[], object]]:
    """A `foreachBatch` with one `mapInArrow` that reads its rows and returns none: the least that Python can cost."""

    def swallow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        settle_worker("empty")
        return iter(())

    def each(batch: DataFrame, number: int) -> None:
        batch.mapInArrow(swallow, "nothing long").write.format("noop").mode("overwrite").save()

    query = frame.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint).start()
    return query, query.stop
