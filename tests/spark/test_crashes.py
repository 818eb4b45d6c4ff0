"""`kill -9` at every step of an epoch, and at random: after a restart, all is as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.helpers import bids, latest, write_batches

from trimtab.ports import FAILPOINT

ROOT = Path(__file__).parent.parent.parent

FAILPOINTS = (
    ("before_claim", 1),
    ("after_claim", 3),
    ("before_segment", 4),
    ("after_segment", 6),
    ("before_sink", 7),
    ("after_sink", 9),
    ("before_commit", 11),
    ("after_commit", 12),
    # The first full manifest comes after 20 epochs; killed before it is written, the next driver writes one later.
    ("before_manifest", 19),
    ("after_manifest", 20),
    ("before_collect", 21),
    ("after_collect", 22),
)
EPOCHS = 30


class Process:
    """The flow in a process group of its own, so that its Java machine dies with it."""

    def __init__(self, folder: Path, lanes: int, failpoint: str = "", master: str = "local[2]") -> None:
        environment = {**os.environ, FAILPOINT: failpoint, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
        command = [sys.executable, "-m", "tests.spark.crash_flow", str(folder), str(lanes), master]
        self._log = (folder / "log").open("w+")
        self._process = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True
        )

    def wait(self, timeout: float | None = 120) -> str:
        """Its output once it has ended, or after `timeout`; whatever is left of it is killed then."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        self.kill()
        self._log.seek(0)
        return self._log.read()

    @property
    def code(self) -> int | None:
        """How the process ended, before anything that was left of it was killed."""
        return self._process.returncode

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def oracle(batches: list[pa.Table]) -> dict[int, tuple[int, int, int, int]]:
    """Sum, count, first and last price by auction, computed plainly."""
    result: dict[int, tuple[int, int, int, int]] = {}
    for table in batches:
        for auction, price in zip(table["auction"].to_pylist(), table["price"].to_pylist(), strict=True):
            total, count, first, _ = result.get(auction, (0, 0, price, price))
            result[auction] = (total + price, count + 1, first, price)
    return result


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


def input_batches(folder: Path) -> list[pa.Table]:
    batches = [bids(seed, rows=60, keys=20) for seed in range(EPOCHS)]
    write_batches(folder / "in", batches)
    return batches


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_driver_killed_at_every_step_of_an_epoch(tmp_path: Path) -> None:
    batches = input_batches(tmp_path)
    for number, (failpoint, epoch) in enumerate(FAILPOINTS):
        process = Process(tmp_path, lanes=1 + number % 3, failpoint=f"{failpoint}@{epoch}")
        log = process.wait()
        # Segments are written by Spark's Python workers: killing one of those ends the driver with an error.
        killed = process.code == -signal.SIGKILL or (
            "segment" in failpoint and "the job of its lanes and of sink" in log
        )
        assert killed, f"{failpoint} was not reached: {log}"
    log = Process(tmp_path, lanes=2).wait()
    assert "done" in log, log
    assert output(tmp_path) == oracle(batches)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1])
def test_a_driver_killed_at_random(tmp_path: Path, seed: int) -> None:
    batches = input_batches(tmp_path)
    chance = random.Random(seed)
    for _ in range(4):
        Process(tmp_path, lanes=chance.randint(1, 4)).wait(timeout=chance.uniform(5, 9))
    log = Process(tmp_path, lanes=2).wait()
    assert "done" in log, log
    assert output(tmp_path) == oracle(batches)
