"""Tasks, executors and drivers that fail or are overtaken: afterwards, all is as if nothing had happened."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.fault_flow import HOSTS
from tests.spark.helpers import Recorder, bids, durable, latest, oracle, results, stream, write_batches
from tests.spark.processes import Process, crash_flow

import trimtab as tt
from trimtab.errors import FencedError
from trimtab.state.envelope import read_record
from trimtab.state.keyed import KeyedTable, StateSchema
from trimtab.state.records import Claim, Commit, claim_name, commit_name
from trimtab.state.recovery import recover
from trimtab.state.runs import open_runs
from trimtab.state.store import open_store

EPOCHS = 3
SLOTS = 16
KEYS = pa.schema([("auction", pa.int64())])
VALUES = pa.schema([(name, pa.int64()) for name in ("total", "bids", "first", "last", "chain")])

# What goes wrong, where, and whether the sink shares the lanes' job.
CASES = (
    "slow-lane-whole",
    "fails-lane-kept",
    "fails-pack-whole",
    "dies-lane-whole",
    "dies-pack-kept",
    "kills-lane-kept",
    "lost-sink-kept",
)


def chronicle(batches: list[pa.Table]) -> dict[int, tuple[int, ...]]:
    """What the flow keeps of every auction, computed plainly."""
    chains: dict[int, int] = {}
    for table in batches:
        for auction, price in zip(table["auction"].to_pylist(), table["price"].to_pylist(), strict=True):
            chains[auction] = (chains.get(auction, 0) * 31 + price) % 1_000_003
    return {auction: (*row, chains[auction]) for auction, row in oracle(batches).items()}


def written(folder: Path) -> list[dict[int, tuple[int, ...]]]:
    """The output by epoch."""
    assert len(list((folder / "out").glob("epoch=*"))) == EPOCHS
    tables = [pq.ParquetDataset(folder / "out" / f"epoch={epoch}").read() for epoch in range(EPOCHS)]
    return [latest(table) for table in tables]  # type: ignore[misc]


def state(checkpoint: Path) -> dict[int, tuple[int, ...]]:
    """All keys of the newest commit with their state."""
    store = open_store(str(checkpoint))
    manifest = recover(store, lambda claim: False).manifest
    assert manifest.epoch == EPOCHS - 1
    schema = StateSchema(KEYS, VALUES, SLOTS, "by")
    return latest(KeyedTable(schema, open_runs(store, manifest.runs_of(0), SLOTS), range(SLOTS)).scan())  # type: ignore[return-value]


@dataclass(frozen=True)
class Cluster:
    """What a run of all cases on one cluster left behind."""

    folder: Path
    batches: list[pa.Table]
    log: str


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two executors on two hosts where this machine has several addresses of its own, else on one."""
    folder = tmp_path_factory.mktemp("cluster")
    batches = [bids(10 * epoch, rows=400, keys=12) for epoch in range(EPOCHS)]
    for case in CASES:
        write_batches(folder / case / "in", batches, rows_per_group=50)
    master, cases = ("hosts", CASES) if several_hosts() else ("local-cluster[2,1,1024]", CASES[1:])
    process = Process(folder, "tests.spark.fault_flow", master, *cases)
    try:
        yield Cluster(folder, batches, process.wait(280))
    finally:
        process.kill()


def several_hosts() -> bool:
    try:
        for host in HOSTS:
            with socket.socket() as probe:
                probe.bind((host, 0))
    except OSError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_state_and_output_are_as_if_nothing_had_happened(cluster: Cluster, case: str) -> None:
    kind, place, _ = case.split("-")
    if kind == "slow" and not several_hosts():
        pytest.skip("Spark speculates on another host only")
    folder = cluster.folder / case
    expected: Callable[[list[pa.Table]], Mapping[int, tuple[int, ...]]] = oracle if place == "pack" else chronicle
    marks = {path.name for path in (folder / "markers").iterdir()}
    assert re.search(rf"^{case}: done", cluster.log, re.MULTILINE), cluster.log
    assert "done" in marks, "nothing went wrong, so nothing was tested"
    for epoch, rows in enumerate(written(folder)):
        wanted = expected(cluster.batches[: epoch + 1])
        assert rows == {auction: wanted[auction] for auction in cluster.batches[epoch]["auction"].to_pylist()}
    if place != "pack":
        assert state(folder / "ckpt") == expected(cluster.batches)
    claim = read_record(open_store(str(folder / "ckpt")), claim_name(1), Claim)
    assert claim.message.moves, "slots were to move in the epoch of the fault"
    attempts = [mark.split("-")[1] for mark in marks if mark.startswith("packed-")]
    assert len(set(attempts)) > 1, "one map task alone shows nothing about order"
    if kind == "kills" or place == "pack":
        assert len(attempts) > len(set(attempts)), "no map task ran a second time"


@pytest.mark.slow
def test_a_driver_that_another_one_overtakes_during_its_sink_changes_nothing_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = [bids(seed, rows=60, keys=20) for seed in range(EPOCHS + 1)]
    write_batches(tmp_path / "in", batches)
    after: dict[str, tuple[int, bytes]] = {}
    logs: list[str] = []

    class Slow(Recorder):
        def __call__(self, frame: DataFrame, epoch: int) -> None:
            super().__call__(frame, epoch)
            if epoch == 2:
                logs.append(crash_flow(tmp_path, lanes=3).wait())
                after.update(durable(tmp_path / "ckpt"))

    older = Slow()
    flow = tt.Flow("crash")
    keyed = flow.source(stream(spark, tmp_path / "in")).key_by("auction", slots=16)
    keyed.aggregate(total=tt.sum("price"), bids=tt.count(), first=tt.first("price"), last=tt.last("price")).sink(older)
    run = flow.start(spark, str(tmp_path / "ckpt"), lanes=2)
    with pytest.raises(FencedError, match="stopped before it committed epoch 2"):
        run.await_termination(120)
    assert "done" in logs[0], logs[0]
    assert older.epochs == [0, 1, 2]
    assert durable(tmp_path / "ckpt") == after
    store = open_store(str(tmp_path / "ckpt"))
    assert [read_record(store, commit_name(epoch), Commit).term for epoch in range(4)] == [1, 1, 2, 2]
    newer = [latest(pq.ParquetDataset(tmp_path / "out" / f"epoch={epoch}").read()) for epoch in (2, 3)]
    assert newer[0] == latest(older.calls[2][1])
    older.calls.pop()
    assert results(older) | newer[0] | newer[1] == oracle(batches)
