"""Spark's own ways to keep a sum per key, each at its best settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

ROCKSDB = (
    (
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    ),
    ("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true"),
)
HDFS = (
    (
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    ),
)
OUTPUT = "auction long, total long, bids long"


def native(frame: DataFrame, checkpoint: str) -> tuple[StreamingQuery, Callable[[], object]]:
    """`groupBy.agg` in the JVM."""
    totals = frame.groupBy("auction").agg(F.sum("price").alias("total"), F.count("*").alias("bids"))
    return started(totals, checkpoint)


class Totals(StatefulProcessor):
    """The running total of a key, as one would write it for `transformWithStateInPandas`."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.totals = handle.getValueState("totals", "total long, bids long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        total, bids = self.totals.get() or (0, 0)
        for frame in rows:
            total += int(frame["price"].sum())
            bids += len(frame)
        self.totals.update((total, bids))
        yield pd.DataFrame({"auction": [key[0]], "total": [total], "bids": [bids]})

    def close(self) -> None:
        pass


def tws_pandas(frame: DataFrame, checkpoint: str) -> tuple[StreamingQuery, Callable[[], object]]:
    """`transformWithStateInPandas`, one group per key."""
    grouped = frame.groupBy("auction")
    return started(grouped.transformWithStateInPandas(Totals(), OUTPUT, "Update", "None"), checkpoint)


def apply_pandas(frame: DataFrame, checkpoint: str) -> tuple[StreamingQuery, Callable[[], object]]:
    """`applyInPandasWithState`, one group per key."""

    def add(key: Any, rows: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        total, bids = state.get if state.exists else (0, 0)
        for part in rows:
            total += int(part["price"].sum())
            bids += len(part)
        state.update((total, bids))
        yield pd.DataFrame({"auction": [key[0]], "total": [total], "bids": [bids]})

    totals = frame.groupBy("auction").applyInPandasWithState(
        add, OUTPUT, "total long, bids long", "update", GroupStateTimeout.NoTimeout
    )
    return started(totals, checkpoint)


def started(totals: DataFrame, checkpoint: str) -> tuple[StreamingQuery, Callable[[], object]]:
    """The query with a sink that reads every row and keeps none."""
    writer = totals.writeStream.format("noop").outputMode("update").option("checkpointLocation", checkpoint)
    query = writer.start()
    return query, query.stop
