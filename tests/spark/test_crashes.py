"""`kill -9` at every step of an epoch, and at random: after a restart, all is as if nothing had happened."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.helpers import bids, latest, oracle, write_batches
from tests.spark.processes import crash_flow

from trimtab.state.envelope import read_record
from trimtab.state.records import CLAIMS, Claim
from trimtab.state.store import open_store

# By step and epoch; the sink shares the job of the lanes, or reads what was kept of it.
FAILPOINTS = (
    ("before_claim", 1, "whole"),
    ("after_lanes", 2, "kept"),
    ("after_claim", 3, "whole"),
    ("before_segment", 4, "whole"),
    ("after_segment", 6, "whole"),
    ("before_sink", 7, "whole"),
    ("after_sink", 9, "whole"),
    ("before_commit", 11, "kept"),
    ("after_commit", 12, "whole"),
    # The first full manifest comes after 20 epochs; killed before it is written, the next driver writes one later.
    ("before_manifest", 19, "whole"),
    ("after_manifest", 20, "whole"),
    ("before_collect", 21, "whole"),
    ("after_collect", 22, "whole"),
)
EPOCHS = 30


def output(folder: Path) -> dict[int, tuple[int, ...]]:
    """What the sink's folders come to, epoch after epoch; no epoch may have a key twice."""
    rows: dict[int, tuple[int, ...]] = {}
    for epoch in range(EPOCHS):
        table = pq.ParquetDataset(folder / "out" / f"epoch={epoch}").read()
        auctions = table["auction"].to_pylist()
        assert len(auctions) == len(set(auctions))
        rows |= latest(table)  # type: ignore[arg-type]
    assert len(list((folder / "out").glob("epoch=*"))) == EPOCHS
    return rows


def moves_in_every_epoch(folder: Path) -> bool:
    """Whether slots moved at the beginning of every epoch whose claim is still there and that had lanes to move to."""
    store = open_store(str(folder / "ckpt"))
    claims = [read_record(store, name, Claim) for name in store.list(CLAIMS)]
    return all(claim.message.moves for claim in claims if len(claim.routing.staying) > 1)


def input_batches(folder: Path) -> list[pa.Table]:
    batches = [bids(seed, rows=60, keys=20) for seed in range(EPOCHS)]
    write_batches(folder / "in", batches)
    return batches


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_driver_killed_at_every_step_of_an_epoch(tmp_path: Path) -> None:
    batches = input_batches(tmp_path)
    for number, (failpoint, epoch, way) in enumerate(FAILPOINTS):
        process = crash_flow(tmp_path, lanes=1 + number % 3, failpoint=f"{failpoint}@{epoch}", way=way)
        log = process.wait()
        # Segments are written by Spark's Python workers: killing one of those ends the driver with an error.
        killed = process.code == -signal.SIGKILL or (
            "segment" in failpoint and "the job of its lanes and of sink" in log
        )
        assert killed, f"{failpoint} was not reached: {log}"
    log = crash_flow(tmp_path, lanes=2).wait()
    assert "done" in log, log
    assert moves_in_every_epoch(tmp_path)
    assert output(tmp_path) == oracle(batches)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1])
def test_a_driver_killed_at_random(tmp_path: Path, seed: int) -> None:
    batches = input_batches(tmp_path)
    chance = random.Random(seed)
    for _ in range(4):
        crash_flow(tmp_path, lanes=chance.randint(1, 4)).wait(timeout=chance.uniform(5, 9))
    log = crash_flow(tmp_path, lanes=2).wait()
    assert "done" in log, log
    assert output(tmp_path) == oracle(batches)
