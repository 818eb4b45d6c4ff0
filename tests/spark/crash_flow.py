"""A flow in a process of its own, for tests that kill it.

`python -m tests.spark.crash_flow FOLDER LANES WAY MASTER`: in the way `whole` its sink shares the job of the lanes, in
the way `kept` it reads what they left behind.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame
from tests.spark.helpers import stream
from tests.spark.restless import never_at_rest

import trimtab as tt


def main(folder: Path, lanes: int, way: str, master: str) -> None:
    def by_hand(frame: DataFrame, epoch: int) -> None:
        frame.write.mode("overwrite").parquet(str(folder / "out" / f"epoch={epoch}"))

    spark = tt.session(master=master, app="crash", memory="1g")
    spark.sparkContext.setLogLevel("OFF")
    flow = tt.Flow("crash")
    source = flow.source(stream(spark, folder / "in"))
    keyed = source.key_by("auction", slots=16)
    never_at_rest("by_auction", 16)
    keyed.aggregate(total=tt.sum("price"), bids=tt.count(), first=tt.first("price"), last=tt.last("price")).sink(
        tt.sinks.parquet(folder / "out") if way == "whole" else by_hand
    )
    flow.start(spark, str(folder / "ckpt"), lanes=lanes, trigger="availableNow").await_termination()
    print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
