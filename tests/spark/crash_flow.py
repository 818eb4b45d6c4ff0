"""A flow in a process of its own, for tests that kill it: `python -m tests.spark.crash_flow FOLDER LANES [MASTER]`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.spark.helpers import stream

import trimtab as tt


def main(folder: Path, lanes: int, master: str) -> None:
    spark = tt.session(master=master, app="crash", memory="1g")
    spark.sparkContext.setLogLevel("OFF")
    flow = tt.Flow("crash")
    source = flow.source(stream(spark, folder / "in"))
    keyed = source.key_by("auction", slots=16)
    keyed.aggregate(total=tt.sum("price"), bids=tt.count(), first=tt.first("price"), last=tt.last("price")).sink(
        tt.sinks.parquet(str(folder / "out"))
    )
    flow.start(spark, str(folder / "ckpt"), lanes=lanes, trigger="availableNow").await_termination()
    print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "local[2]")
