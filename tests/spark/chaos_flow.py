"""A flow whose slots and lanes never rest, to be killed: `python -m tests.spark.chaos_flow FOLDER SEED`.

With `soak` as a third argument it makes its input, is run and killed many times, and compared: for long runs.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.spark.fault_flow import Chronicle, Shipped
from tests.spark.helpers import bids, stream, write_batches
from tests.spark.processes import Process
from tests.spark.restless import LANES, Restless

import trimtab as tt

SLOTS = 16
KEYS = 20


def main(folder: Path, seed: int) -> None:
    spark = tt.session(master="local[2]", app="chaos", memory="1g")
    spark.sparkContext.setLogLevel("OFF")
    flow = tt.Flow("chaos")
    keyed = flow.source(stream(spark, folder / "in")).key_by("auction", slots=SLOTS).process(Chronicle(None))
    keyed.sink(Shipped(folder / "out", None))
    control = tt.Control(window=1, cool_down=0)
    planner = tt.planners.Hotspot()
    run = flow.start(spark, str(folder / "ckpt"), trigger="availableNow", planner=planner, control=control)
    Restless("by_auction", SLOTS, seed, LANES).watch(run)
    run.await_termination()
    moves = len(tt.history(str(folder / "ckpt")).moves)
    print(f"done, {moves} moves, lanes {list(run.routing.running)}", flush=True)


def make_input(folder: Path, epochs: int, first: int = 0) -> list[pa.Table]:
    batches = [bids(seed, rows=60, keys=KEYS) for seed in range(first, first + epochs)]
    write_batches(folder / "in", batches, first=first)
    return batches


def expected(batches: list[pa.Table]) -> list[list[tuple[int, ...]]]:
    """What each batch puts out, computed plainly, in the order of keys."""
    state: dict[int, tuple[int, int, int, int, int]] = {}
    outputs = []
    for table in batches:
        for auction, price in zip(table["auction"].to_pylist(), table["price"].to_pylist(), strict=True):
            total, count, first, _, chain = state.get(auction, (0, 0, price, price, 0))
            state[auction] = (total + price, count + 1, first, price, (chain * 31 + price) % 1_000_003)
        outputs.append(sorted((auction, *state[auction]) for auction in set(table["auction"].to_pylist())))
    return outputs


def found(folder: Path) -> list[list[tuple[int, ...]]]:
    """What reached the sink, epoch after epoch; epochs without input put nothing out."""
    epochs = sorted(int(each.name.split("=")[1]) for each in (folder / "out").glob("epoch=*"))
    tables = [pq.read_table(folder / "out" / f"epoch={epoch}" / "rows.parquet") for epoch in epochs]
    return [
        sorted(zip(*(column.to_pylist() for column in table.columns), strict=True)) for table in tables if len(table)
    ]


def chaos(folder: Path, seed: int, epochs: int, kills: int) -> str:
    """Run the flow to its end through some kills; returns what it says at last."""
    batches = make_input(folder, epochs)
    chance = random.Random(seed)
    for kill in range(kills):
        Process(folder, "tests.spark.chaos_flow", str(seed + kill)).wait(timeout=chance.uniform(6, 14))
    log = Process(folder, "tests.spark.chaos_flow", str(seed + kills)).wait(timeout=240)
    assert "done" in log, log
    assert found(folder) == expected(batches)
    return log


if __name__ == "__main__":
    if len(sys.argv) > 3:
        print(chaos(Path(sys.argv[1]), int(sys.argv[2]), epochs=400, kills=30))
    else:
        main(Path(sys.argv[1]), int(sys.argv[2]))
