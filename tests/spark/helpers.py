"""Streams whose rows a test knows: a folder of parquet files, one micro-batch per file."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

YEAR_2024 = 1_704_067_200
DURABLE = ("flow", "claims/*", "commits/*", "manifests/*", "segments/*")
SCHEMA = "auction long, price long, moment timestamp"


def write_batches(folder: Path, batches: list[pa.Table], first: int = 0, rows_per_group: int | None = None) -> None:
    """One file per table; the names and times keep them in order."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(batches, first):
        hidden = folder / f".{number:05d}.parquet"
        pq.write_table(table, hidden, row_group_size=rows_per_group)
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


def oracle(batches: list[pa.Table]) -> dict[int, tuple[int, int, int, int]]:
    """Sum, count, first and last price by auction, computed plainly."""
    result: dict[int, tuple[int, int, int, int]] = {}
    for table in batches:
        for auction, price in zip(table["auction"].to_pylist(), table["price"].to_pylist(), strict=True):
            total, count, first, _ = result.get(auction, (0, 0, price, price))
            result[auction] = (total + price, count + 1, first, price)
    return result


@dataclass
class Recorder:
    """Keeps what it sees, call by call; after it has read the rows of a failing epoch it raises."""

    whole: bool = True
    failing: set[int] = field(default_factory=set)
    calls: list[tuple[int, pa.Table]] = field(default_factory=list)
    name: str = "recorder"

    def __call__(self, frame: DataFrame, epoch: int) -> None:
        self.calls.append((epoch, frame.toArrow()))
        if epoch in self.failing:
            raise OSError("the sink broke")

    @property
    def epochs(self) -> list[int]:
        return [epoch for epoch, _ in self.calls]


def results(*sinks: Recorder) -> dict[int, tuple[int, ...]]:
    """What keys came to at last."""
    found: dict[int, tuple[int, ...]] = {}
    for sink in sinks:
        for _, rows in sink.calls:
            found |= latest(rows)  # type: ignore[arg-type]
    return found


def durable(checkpoint: Path) -> dict[str, tuple[int, bytes]]:
    """Inode and bytes of all of a checkpoint but terms and what is temporary: what a fenced driver must not touch."""
    found = sorted(path for pattern in DURABLE for path in checkpoint.glob(pattern))
    return {str(path.relative_to(checkpoint)): (path.stat().st_ino, path.read_bytes()) for path in found}
