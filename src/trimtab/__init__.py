"""Trimtab keeps stateful PySpark streams level.

A flow in a few lines, and what it means: keys hash to slots, slots own state, slots sit on lanes, and a lane is one
Spark task per epoch that works on whole Arrow tables.

    import trimtab as tt

    spark = tt.session()
    flow = tt.Flow("auctions")
    totals = flow.source(bids).key_by("auction", slots=256).aggregate(total=tt.sum("price"), bids=tt.count())
    totals.sink(tt.sinks.parquet("out/totals"))
    run = flow.start(spark, checkpoint="ckpt/auctions", lanes=4, trigger="1 second")
    run.await_termination()
"""

from trimtab import planners
from trimtab.control.history import History
from trimtab.control.settings import Control
from trimtab.errors import (
    CheckpointError,
    DamagedError,
    EpochError,
    FencedError,
    FlowError,
    LogicError,
    SinkError,
    TrimtabError,
)
from trimtab.flow import sinks
from trimtab.flow.aggregates import count, first, last, max, mean, min, sum
from trimtab.flow.logic import Logic
from trimtab.lane.context import Context
from trimtab.lane.logic import KeyedState
from trimtab.spark.flow import Flow, history
from trimtab.spark.run import Run
from trimtab.spark.session import doctor, session

__version__ = "0.1.0"

__all__ = [
    "CheckpointError",
    "Context",
    "Control",
    "DamagedError",
    "EpochError",
    "FencedError",
    "Flow",
    "FlowError",
    "History",
    "KeyedState",
    "Logic",
    "LogicError",
    "Run",
    "SinkError",
    "TrimtabError",
    "count",
    "doctor",
    "first",
    "history",
    "last",
    "max",
    "mean",
    "min",
    "planners",
    "session",
    "sinks",
    "sum",
]
