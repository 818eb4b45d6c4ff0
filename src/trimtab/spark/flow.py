"""`tt.Flow`: a topology that Spark can start."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from trimtab.control.background import Background
from trimtab.control.history import History
from trimtab.control.log import ControlLog, newest_measures
from trimtab.control.loop import Controller, Policy
from trimtab.control.measure import Layout
from trimtab.control.settings import Control
from trimtab.errors import FlowError
from trimtab.flow.topology import Topology
from trimtab.lane.program import Program
from trimtab.planners.hotspot import Hotspot
from trimtab.planners.plan import Planner
from trimtab.planners.scaler import NoScaling, Scaler
from trimtab.ports import ObjectStore, SystemClock, SystemRng
from trimtab.spark.address import SPARK_FOLDER, Address
from trimtab.spark.checks import check_not_running, check_sinks, engine_for
from trimtab.spark.compile import compile_flow
from trimtab.spark.driver import EpochDriver
from trimtab.spark.run import Run
from trimtab.spark.shape import HeldShape, shaped
from trimtab.state.protocol import Checkpoint
from trimtab.state.records import Claim, FlowRecord
from trimtab.vocab import Routing

STEADY = {
    # Adaptive execution may merge or skip the partitions that lanes are.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}

EXAMPLES = {"planner": "planners.Hotspot()", "scaler": "planners.TargetUtilisation()", "control": "Control(window=5)"}


class Flow(Topology):
    """A flow: sources, keyed operators and sinks under a name, to be started on Spark.

    >>> flow = Flow("auctions")
    >>> flow.name
    'auctions'
    """

    def start(
        self,
        spark: SparkSession,
        checkpoint: str | os.PathLike[str],
        lanes: int | None = None,
        trigger: str | None = None,
        planner: Planner | None = None,
        scaler: Scaler | None = None,
        control: Control | None = None,
    ) -> Run:
        """Start or go on with the flow.

        `checkpoint` is a folder or an fsspec address, the flow's own, that holds its state. `lanes` is how many tasks
        share the work; it may differ at every start, and left out it is what the checkpoint had last, or one per core.
        `trigger` is an interval such as "1 second", "availableNow" to end when all rows there now are through, or
        None for one epoch after another. `planner` moves slots between lanes while the flow runs, `scaler` adds and
        drains lanes, and `control` has the settings of both; without them slots stay where they are.

        A start that raises a FlowError has changed nothing: a run that is on the checkpoint already goes on.
        """
        check_policy(self.name, planner, scaler, control)
        address = Address.of(checkpoint)
        compiled = compile_flow(self, 1 if lanes is None else lanes, address.lanes)
        frame = compiled.frames[0]
        check_not_running(frame.sparkSession, self.name)
        check_sinks(frame.sparkSession, compiled)
        engine = engine_for(spark, compiled)
        writer = triggered(frame.writeStream.queryName(self.name), trigger)
        shape = HeldShape(frame.sparkSession)
        policy = Policy(planner, scaler or NoScaling(), control or Control())
        # All that can be refused has been: from here on, another driver of this checkpoint is overtaken.
        state = open_checkpoint(address.store, compiled.record)
        pending = state.pending_claim()
        # An epoch that is claimed runs again with all that its claim changes, and later ones go on from there.
        last = state.routing if pending is None else pending.routing
        routing = first_routing(last, lanes, compiled.program, spark.sparkContext.defaultParallelism)
        background = background_of(compiled.program, policy, state, routing)
        driver = EpochDriver(compiled.program, engine, state, routing, background, shape, SystemClock(), SystemRng())
        query = started(writer.option("checkpointLocation", address.spark), driver, shape, pending)
        return Run(query, driver, background.controller, spark, self.name)


def open_checkpoint(store: ObjectStore, flow: FlowRecord) -> Checkpoint:
    """Take the checkpoint over; a batch comes again unless Spark has committed it."""

    def replayable(claim: Claim) -> bool:
        return claim.batch is None or not store.exists(f"{SPARK_FOLDER}/commits/{claim.batch}")

    return Checkpoint.open(store, flow, clock=SystemClock(), rng=SystemRng(), replayable=replayable)


def first_routing(last: Routing | None, lanes: int | None, program: Program, cores: int) -> Routing:
    """The checkpoint's own where it has as many lanes as are asked for, or none are; else slots are dealt out anew."""
    if last is not None and lanes in (None, len(last.running), len(last.staying)):
        return last
    slots = [operator.slots for operator in program.operators]
    return Routing.spread(min(cores, *slots) if lanes is None else lanes, slots)


def background_of(program: Program, policy: Policy, state: Checkpoint, routing: Routing) -> Background:
    """Control of a flow, at work, with what earlier runs on the checkpoint measured."""
    controller = Controller(layout_of(program), policy, SystemClock())
    controller.begin(routing, newest_measures(state.store, policy.settings.window))
    return Background(controller, ControlLog(state.store, state.term, state.check_term), SystemClock())


def started(writer: DataStreamWriter, driver: EpochDriver, shape: HeldShape, pending: Claim | None) -> StreamingQuery:
    """Spark's query, at work. A batch that is claimed already comes in the shape that it had."""
    settings = shape.usual if pending is None or pending.batch is None else pending.settings
    try:
        if settings != shape.usual:
            shape.hold(settings)
        with shaped(shape.session, {**STEADY, **settings}):
            return writer.foreachBatch(driver.on_batch).start()
    except BaseException:
        driver.close()
        raise


def layout_of(program: Program) -> Layout:
    """What control knows of a flow."""
    return Layout(
        tuple(operator.name for operator in program.operators), tuple(operator.slots for operator in program.operators)
    )


def check_policy(flow: str, planner: object, scaler: object, control: object) -> None:
    """Refuse what is no planner, scaler or settings before anything starts."""
    wanted = {"planner": (planner, Planner), "scaler": (scaler, Scaler), "control": (control, Control)}
    for name, (given, kind) in wanted.items():
        if given is not None and (isinstance(given, type) or not isinstance(given, kind)):
            raise FlowError(
                f"Flow '{flow}': {name}= was given {given!r}, which is no {kind.__name__}; "
                f"say, {name}=tt.{EXAMPLES[name]}."
            )
    if scaler is not None and planner is None:
        raise FlowError(f"Flow '{flow}': a scaler needs a planner to move slots; say, planner=tt.planners.Auto().")
    kept = (control if isinstance(control, Control) else Control()).window
    if isinstance(planner, Hotspot) and (planner.window or 0) > kept:
        raise FlowError(
            f"Flow '{flow}': Hotspot(window={planner.window}) looks at more epochs than are kept; "
            f"say, control=tt.Control(window={planner.window})."
        )


def history(checkpoint: str | os.PathLike[str]) -> History:
    """What the runs on a checkpoint measured and decided, as far as it is kept; needs no Spark."""
    return History.of(Address.of(checkpoint).store)


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
