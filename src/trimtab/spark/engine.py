"""Spark as the engine of an epoch: one job per hop, and what the lanes report."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import msgspec
from pyspark.cloudpickle import dumps
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType
from pyspark.storagelevel import StorageLevel

from trimtab.errors import EpochError, SinkError, TrimtabError
from trimtab.lane.task import HopPlan, LaneReport
from trimtab.ports import reached
from trimtab.spark.compile import Compiled, SinkPlan
from trimtab.spark.failures import brief, unmarked
from trimtab.spark.tasks import PACKED_SCHEMA, HopTask, PackTask, ReportsParam, decode_reports


class Engine:
    """Runs hops of one flow on a Spark session."""

    def __init__(self, spark: SparkSession, compiled: Compiled) -> None:
        self._compiled = compiled
        self._program: bytes = dumps(compiled.program)  # type: ignore[no-untyped-call]
        self._reports = spark.sparkContext.accumulator({}, ReportsParam())
        self._leaves = [from_arrow_schema(leaf.schema) for leaf in compiled.program.leaves]

    def run(
        self, session: SparkSession, frame: DataFrame | None, plan: HopPlan, before_sinks: Callable[[], None]
    ) -> list[LaneReport]:
        """Run the hop on every lane once, hand its rows to the sinks, and return the reports.

        `frame` is None in an epoch without input. `before_sinks` is called before any sink can see a row. A single
        sink that reads every row shares the lanes' job; otherwise the lanes run by an action of their own, and the
        sinks read what was kept of it, so that no sink decides whether a lane runs.
        """
        self._reports.value = {}
        rows = self._lanes(session, frame, plan)
        sinks = self._compiled.sinks
        if len(sinks) == 1 and sinks[0].whole:
            before_sinks()
            return self._share(rows, plan, sinks[0])
        return self._keep(rows, plan, before_sinks)

    def _share(self, rows: DataFrame, plan: HopPlan, sink: SinkPlan) -> list[LaneReport]:
        self._sink(sink, rows, plan, f"the job of its lanes and of sink '{sink.name}' failed")
        if sink.expressions and not self._reports.value:
            # Behind a filter that Spark can tell to be false there are no rows, and it leaves out what makes them.
            self._run_lanes(rows, plan)
        return self._collect(plan)

    def _keep(self, rows: DataFrame, plan: HopPlan, before_sinks: Callable[[], None]) -> list[LaneReport]:
        rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self._run_lanes(rows, plan)
            reports = self._collect(plan)
            reached("after_lanes", plan.epoch)
            before_sinks()
            for sink in self._compiled.sinks:
                self._sink(sink, self._leaf(rows, sink.leaf), plan, f"sink '{sink.name}' failed", SinkError)
            return reports
        finally:
            rows.unpersist()

    def _run_lanes(self, rows: DataFrame, plan: HopPlan) -> None:
        self._act(lambda: rows.write.format("noop").mode("overwrite").save(), plan, "its lanes failed", EpochError)

    def _lanes(self, session: SparkSession, frame: DataFrame | None, plan: HopPlan) -> DataFrame:
        """The hop's rows, not computed yet."""
        task = HopTask(self._program, msgspec.msgpack.encode(plan), self._reports)
        packed = self._packed(session, frame, plan)
        lanes = packed.repartitionById(len(plan.routing.running), F.col("task"))
        return lanes.mapInArrow(task, self._output())

    def _packed(self, session: SparkSession, frame: DataFrame | None, plan: HopPlan) -> DataFrame:
        if frame is None:
            # A payload that is null makes the lanes run; an empty relation would be optimised away, lanes and all.
            return session.range(1).select(F.lit(0).alias("task"), F.lit(None).cast("binary").alias("payload"))
        operator = self._compiled.program.sources[0].operator
        routing = plan.routing
        task = PackTask(self._program, 0, routing.slots[operator], routing.running, plan.epoch)
        return frame.mapInArrow(task, PACKED_SCHEMA)

    def _output(self) -> StructType:
        if len(self._leaves) == 1:
            return self._leaves[0]
        return StructType([StructField(f"leaf{place}", leaf) for place, leaf in enumerate(self._leaves)])

    def _leaf(self, rows: DataFrame, leaf: int) -> DataFrame:
        if len(self._leaves) == 1:
            return rows
        return rows.where(F.col(f"leaf{leaf}").isNotNull()).select(f"leaf{leaf}.*")

    def _sink(
        self, sink: SinkPlan, rows: DataFrame, plan: HopPlan, failure: str, kind: type[EpochError] = EpochError
    ) -> None:
        wanted = reduce(lambda frame, express: express(frame), sink.expressions, rows)
        reached("before_sink", plan.epoch)
        self._act(lambda: sink.function(wanted, plan.epoch), plan, failure, kind)
        reached("after_sink", plan.epoch)

    def _act(self, action: Callable[[], object], plan: HopPlan, failure: str, kind: type[EpochError]) -> None:
        try:
            action()
        except TrimtabError:
            raise
        except Exception as error:
            if (inside := unmarked(error)) is not None:
                raise inside from None
            flow = self._compiled.program.flow
            raise kind(f"Flow '{flow}', epoch {plan.epoch}: {failure}. {brief(error)}") from error

    def _collect(self, plan: HopPlan) -> list[LaneReport]:
        reports = decode_reports(self._reports.value)
        missing = set(plan.routing.running) - {report.lane for report in reports}
        if missing:
            raise EpochError(
                f"Flow '{self._compiled.program.flow}', epoch {plan.epoch}: lanes {sorted(missing)} did not run. "
                "A sink that says `whole` has to read every row of its DataFrame in one action."
            )
        return reports
