"""`tt.Flow`: a topology that Spark can start."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from trimtab.errors import FlowError
from trimtab.flow.topology import Topology
from trimtab.ports import SystemClock, SystemRng
from trimtab.spark.compile import compile_flow
from trimtab.spark.driver import SPARK_FOLDER, EpochDriver
from trimtab.spark.engine import Engine
from trimtab.spark.run import Run
from trimtab.spark.shape import HeldShape, current_shape, shaped
from trimtab.state.protocol import Checkpoint
from trimtab.state.records import Claim
from trimtab.state.store import open_store

STEADY = {
    # Adaptive execution may merge or skip the partitions that lanes are.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}


class Flow(Topology):
    """A flow: sources, keyed operators and sinks under a name, to be started on Spark.

    >>> flow = Flow("auctions")
    >>> flow.name
    'auctions'
    """

    def start(self, spark: SparkSession, checkpoint: str, lanes: int = 0, trigger: str | None = None) -> Run:
        """Start or go on with the flow.

        `checkpoint` is a folder or an fsspec address, the flow's own, that holds its state. `lanes` is how many tasks
        share the work, by default one per core; it may differ at every start. `trigger` is an interval such as
        "1 second", "availableNow" to end when all rows there are now are through, or None for one epoch after another.
        """
        lanes = lanes if lanes else spark.sparkContext.defaultParallelism
        store = open_store(checkpoint)
        compiled = compile_flow(self, lanes, store.url)
        rng, clock = SystemRng(), SystemClock()
        spark_folder = f"{store.url.rstrip('/')}/{SPARK_FOLDER}"

        def replayable(claim: Claim) -> bool:
            """Spark brings a batch again unless it has committed it."""
            return claim.batch is None or not store.exists(f"{SPARK_FOLDER}/commits/{claim.batch}")

        state = Checkpoint.open(store, compiled.record, clock=clock, rng=rng, replayable=replayable)
        frame = compiled.frames[0]
        shape, held = current_shape(frame.sparkSession), HeldShape(frame.sparkSession)
        driver = EpochDriver(compiled.program, Engine(spark, compiled), state, store, lanes, shape, held, clock, rng)
        writer = triggered(frame.writeStream.queryName(self.name), trigger)
        pending = state.pending_claim()
        settings = shape if pending is None or pending.batch is None else pending.settings
        if settings != shape:
            held.hold(settings)
        try:
            with shaped(frame.sparkSession, {**STEADY, **settings}):
                query = writer.foreachBatch(driver.on_batch).option("checkpointLocation", spark_folder).start()
        except BaseException:
            held.release()
            raise
        return Run(query, driver, spark, self.name)


def triggered(writer: DataStreamWriter, trigger: str | None) -> DataStreamWriter:
    """The writer with the trigger set."""
    if trigger is None:
        return writer
    if trigger == "availableNow":
        return writer.trigger(availableNow=True)
    try:
        return writer.trigger(processingTime=trigger)
    except Exception as error:
        raise FlowError(f"A trigger is an interval such as '1 second', or 'availableNow', not {trigger!r}.") from error
