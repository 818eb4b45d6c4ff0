"""Streams whose rows a test knows: a folder of parquet files, one micro-batch per file."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

YEAR_2024 = 1_704_067_200
SCHEMA = "auction long, price long, moment timestamp"


def write_batches(folder: Path, batches: list[pa.Table], first: int = 0) -> None:
    """One file per table; the names and times keep them in order."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(batches, first):
        hidden = folder / f".{number:05d}.parquet"
        pq.write_table(table, hidden)
        # Spark takes files in the order of their times, which tell no two of them apart that were just written.
        os.utime(hidden, (YEAR_2024 + number, YEAR_2024 + number))
        hidden.rename(folder / f"{number:05d}.parquet")


def stream(spark: SparkSession, folder: Path, schema: str = SCHEMA, files: int = 1) -> DataFrame:
    """The folder as a stream, `files` files per micro-batch."""
    folder.mkdir(parents=True, exist_ok=True)
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(folder))


def bids(seed: int, rows: int = 400, keys: int = 50) -> pa.Table:
    """Random bids; their moments go up by a second a row from the seed's minute on."""
    random = np.random.default_rng(seed)
    moments = (seed * 60 + np.arange(rows)) * 1_000_000
    return pa.table(
        {
            "auction": random.integers(0, keys, rows),
            "price": random.integers(0, 1000, rows),
            "moment": pa.array(moments, pa.timestamp("us", "UTC")),
        }
    )


def totals(batches: list[pa.Table]) -> dict[Any, tuple[int, int]]:
    """What a sum and a count per auction come to, computed plainly."""
    result: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    for table in batches:
        for auction, price in zip(table["auction"].to_pylist(), table["price"].to_pylist(), strict=True):
            result[auction][0] += price
            result[auction][1] += 1
    return {auction: (total, count) for auction, (total, count) in result.items()}


def latest(table: pa.Table | None) -> dict[Any, tuple[Any, ...]]:
    """The last row of every key of an update stream: the first column is the key."""
    assert table is not None
    return {row[0]: tuple(row[1:]) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)}
