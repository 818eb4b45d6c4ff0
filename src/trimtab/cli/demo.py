"""`trimtab demo`: a skewed auction stream through Trimtab and through Spark's own operators."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from rich.console import Console
from rich.table import Table

from trimtab.bench.contenders import trimtab
from trimtab.bench.figures import Figure
from trimtab.bench.peers import ROCKSDB, native, tws_pandas
from trimtab.bench.streams import Contender, generated, interleaved, seconds_of

ROWS = 200_000
AUCTIONS = 5_000


class DemoResult(msgspec.Struct, frozen=True):
    """Seconds per epoch and rows per second by contender."""

    rows: int
    auctions: int
    seconds: dict[str, Figure]
    rows_per_s: dict[str, int]


def skewed_bids(spark: SparkSession, partitions: int) -> DataFrame:
    """Bids of which half go to one auction."""
    value = F.col("value")
    anywhere = F.pmod(F.xxhash64(value), F.lit(AUCTIONS))
    auction = F.when(value % 2 == 0, F.lit(0)).otherwise(anywhere).cast("long").alias("auction")
    return generated(spark, ROWS, partitions).select(auction, F.pmod(value, F.lit(100)).alias("price"))


def demo(spark: SparkSession, progress: Callable[[str], None]) -> DemoResult:
    """Run the stream through each contender once."""
    lanes = spark.sparkContext.defaultParallelism
    partitions = ("spark.sql.shuffle.partitions", str(lanes))
    contenders = [
        Contender("trimtab", trimtab(lanes), settings=(partitions,)),
        Contender("native", native, settings=(partitions, *ROCKSDB)),
        Contender("tws_pandas", tws_pandas, 1, 3, (partitions, *ROCKSDB), rehearsed=False),
    ]
    seconds = seconds_of(interleaved(spark, skewed_bids(spark, lanes), contenders, 1, progress))
    rates = {name: round(ROWS / each.median) for name, each in seconds.items()}
    return DemoResult(ROWS, AUCTIONS, seconds, rates)


LABELS = {
    "trimtab": "Trimtab (Python operators on Arrow tables)",
    "native": "Spark groupBy.agg (JVM)",
    "tws_pandas": "Spark transformWithStateInPandas",
}


def show(result: DemoResult, as_json: bool) -> None:
    """Print the outcome."""
    if as_json:
        typer.echo(msgspec.json.encode(result).decode())
        return
    table = Table("running total per auction", "rows/s", "seconds per epoch", title="Half of all bids on one auction")
    for name, rate in result.rows_per_s.items():
        table.add_row(LABELS[name], f"{rate:,}", str(result.seconds[name]))
    Console().print(table)
