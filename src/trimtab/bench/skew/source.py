"""An open-loop source: row i arrives i / rate seconds after the start, whether or not the rows before it were taken.

An epoch takes at most `cap` rows, as one would set a limit on a Kafka source. Without it, every epoch of an overloaded
stream is longer than the one before by the overload's factor, and a minute holds four of them.

Spark's own `rate` source knows no such limit and gives out whole seconds only; so this is one in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from trimtab.ports import SystemClock
from trimtab.state.keyhash import hash_keys, slot_of

Ints: TypeAlias = npt.NDArray[np.int64]

SLOTS = 120
CANDIDATES = 100_000
PARTITIONS = 2


class Phase(msgspec.Struct, frozen=True):
    """For so many seconds, `share` percent of the rows are for slots that began on the lanes `hot`; else all alike."""

    seconds: float
    share: int = 0
    hot: tuple[int, ...] = ()


class Input(msgspec.Struct, frozen=True):
    """Which rows come when. `keys` has one key for every slot; the last phase goes on for ever."""

    rate: int
    cap: int
    lanes: int
    keys: tuple[int, ...]
    phases: tuple[Phase, ...] = (Phase(0),)

    def auctions(self, rows: Ints) -> Ints:
        """The auctions of some rows by their numbers: every hundred rows have the phase's share, each key in turn."""
        ends = np.cumsum([phase.seconds * self.rate for phase in self.phases])[:-1]
        where = np.searchsorted(ends, rows, side="right")
        result = np.empty_like(rows)
        for place, phase in enumerate(self.phases):
            here = where == place
            result[here] = self._of_phase(phase, rows[here])
        return result

    def _of_phase(self, phase: Phase, rows: Ints) -> Ints:
        keys, began = np.asarray(self.keys, np.int64), np.arange(len(self.keys)) % self.lanes
        hot = keys[np.isin(began, phase.hot)]
        cold = keys[~np.isin(began, phase.hot)]
        block, place = rows // 100, rows % 100
        to_hot = (block * phase.share + place) % (len(hot) or 1)
        to_cold = (block * (100 - phase.share) + place - phase.share) % len(cold)
        chosen = place < phase.share
        result = np.empty_like(rows)
        result[chosen], result[~chosen] = hot[to_hot[chosen]], cold[to_cold[~chosen]]
        return result


def keys_for(spark: SparkSession, lanes: int, slots: int = SLOTS) -> tuple[int, ...]:
    """A key for every slot, which Spark's own shuffle puts into the partition with the number of the slot's lane.

    So that what crowds on a lane of Trimtab's crowds on a partition of Spark's just the same.
    """
    numbers = np.arange(CANDIDATES)
    slot = slot_of(hash_keys([pa.array(numbers)]), slots)
    partition = F.pmod(F.hash("id"), F.lit(lanes)).cast("long").alias("partition")
    there = spark.range(CANDIDATES).select("id", partition).toArrow().sort_by("id")["partition"].to_numpy()
    fitting = there == slot % lanes
    found, first = np.unique(slot[fitting], return_index=True)
    assert len(found) == slots, "more candidates are needed"
    return tuple(numbers[fitting][first].tolist())


def stream(spark: SparkSession, input: Input) -> DataFrame:
    """The rows as a streaming DataFrame, each with its auction and price."""
    spark.dataSource.register(OpenLoop)
    return spark.readStream.format(OpenLoop.name()).option("input", msgspec.json.encode(input).decode()).load()


class Range(InputPartition):
    """The rows of a partition, by number."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class OpenLoop(DataSource):
    """The source, as Spark knows it."""

    @classmethod
    def name(cls) -> str:
        return "trimtab_open_loop"

    def schema(self) -> str:
        return "auction long, price long"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return Reader(msgspec.json.decode(self.options["input"], type=Input))


class Reader(DataSourceStreamReader):
    """Offsets are the number of rows taken and when the first one came, so that they tell how late a row is."""

    def __init__(self, input: Input) -> None:
        self._input = input
        self._clock = SystemClock()
        self._begin = self._clock.now()

    def initialOffset(self) -> dict[str, float]:  # noqa: N802 - Spark's name
        return {"row": 0, "begin": self._begin}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._input.cap)

    def latestOffset(self, start: dict[str, float], limit: ReadLimit) -> dict[str, float]:  # noqa: N802 - Spark's name
        arrived = int((self._clock.now() - start["begin"]) * self._input.rate)
        most = start["row"] + (limit.max_rows if isinstance(limit, ReadMaxRows) else arrived)
        return {"row": max(start["row"], min(arrived, most)), "begin": start["begin"]}

    def partitions(self, start: dict[str, float], end: dict[str, float]) -> Sequence[InputPartition]:
        cuts = np.linspace(start["row"], end["row"], PARTITIONS + 1).astype(np.int64).tolist()
        return [Range(one, other) for one, other in pairwise(cuts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        rows = np.arange(partition.start, partition.end, dtype=np.int64)
        yield pa.record_batch({"auction": self._input.auctions(rows), "price": rows % 100})
