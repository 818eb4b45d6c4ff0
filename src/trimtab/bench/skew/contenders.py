"""The ways to keep the totals: Trimtab without and with a planner, and plain Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming.query import StreamingQuery

from trimtab.bench.peers import ROCKSDB, started
from trimtab.bench.skew.service import Service, Totals, TotalsByKey
from trimtab.bench.skew.source import SLOTS, Input
from trimtab.control.settings import Control
from trimtab.flow import sinks
from trimtab.planners.plan import Answer, Planner
from trimtab.planners.snapshot import ClusterSnapshot
from trimtab.ports import SystemClock
from trimtab.spark.flow import Flow
from trimtab.spark.run import Run

Started = tuple[StreamingQuery, Callable[[], object]]


@dataclass(frozen=True)
class TimedPlanner:
    """A planner that notes the seconds of its plans. Called as the one inside it is."""

    planner: Planner
    seconds: list[float] = field(default_factory=list)

    def plan(self, snapshot: ClusterSnapshot) -> Answer:
        clock = SystemClock()
        start = clock.monotonic()
        answer = self.planner.plan(snapshot)
        self.seconds.append(clock.monotonic() - start)
        return answer


@dataclass(frozen=True)
class Contender:
    """One way to do the job on one input; `start` begins it on a frame and a checkpoint folder.

    `runs` and `planners` are those of Trimtab's own runs, in the order in which they were started.
    """

    name: str
    input: Input
    start: Callable[[DataFrame, str], Started]
    settings: tuple[tuple[str, str], ...] = ()
    runs: list[Run] = field(default_factory=list)
    planners: list[TimedPlanner] = field(default_factory=list)


def trimtab(
    name: str, input: Input, service: Service, planner: Planner | None = None, control: Control | None = None
) -> Contender:
    """Trimtab; without a planner slots stay where they are."""
    runs: list[Run] = []
    planners: list[TimedPlanner] = []

    def start(frame: DataFrame, checkpoint: str) -> Started:
        timed = None if planner is None else TimedPlanner(planner)
        flow = Flow("skew")
        totals = flow.source(frame).key_by("auction", slots=SLOTS, name="totals").process(Totals(service))
        totals.sink(sinks.noop())
        run = flow.start(frame.sparkSession, checkpoint, lanes=input.lanes, planner=timed, control=control)
        runs.append(run)
        planners.extend([timed] if timed else [])
        return run.query, run.stop

    return Contender(name, input, start, runs=runs, planners=planners)


def tws_pandas(name: str, input: Input, service: Service) -> Contender:
    """`transformWithStateInPandas`, a partition for every lane."""

    def start(frame: DataFrame, checkpoint: str) -> Started:
        totals = frame.groupBy("auction").transformWithStateInPandas(
            TotalsByKey(service), Totals.output, "Update", "None"
        )
        return started(totals, checkpoint)

    return Contender(name, input, start, plain(input.lanes))


def native_behind_stage(name: str, input: Input, service: Service) -> Contender:
    """`groupBy.agg` behind a `mapInArrow` of the rows by key, which has the service time.

    The JVM's aggregation itself has no place for it.
    """

    def serve(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            service.serve(batch.num_rows)
            yield batch

    def start(frame: DataFrame, checkpoint: str) -> Started:
        served = frame.repartition(input.lanes, "auction").mapInArrow(serve, frame.schema)
        return started(served.groupBy("auction").agg(F.sum("price").alias("total")), checkpoint)

    return Contender(name, input, start, plain(input.lanes))


def plain(lanes: int) -> tuple[tuple[str, str], ...]:
    """Spark's settings: as many partitions as there are lanes."""
    return (("spark.sql.shuffle.partitions", str(lanes)), *ROCKSDB)
