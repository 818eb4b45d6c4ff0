"""Flows that lose tasks and executors on the way: `python -m tests.spark.fault_flow FOLDER MASTER CASE...`.

Every case has a folder of its own below FOLDER with its input. What goes wrong does so in epoch 1, once: whoever makes
the marker first does it. Cases run one after another in one Spark session.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from tests.spark.helpers import stream
from tests.spark.restless import never_at_rest

import trimtab as tt

EXECUTOR = "CoarseGrainedExecutorBackend"
OUTPUT = "auction long, total long, bids long, first long, last long, chain long"
SLOTS = 16
PATIENCE = 60
HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
SETTINGS = {
    # Several map tasks for every file, whose payloads come to a lane in any order.
    "spark.sql.files.maxPartitionBytes": "3000",
    "spark.sql.files.openCostInBytes": "1",
    # A reader finds out at once that an executor is gone.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "1s",
}


def parent_of(process: int) -> int:
    # The name of a program, in parentheses, may hold anything.
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def is_executor(process: int) -> bool:
    return EXECUTOR in Path(f"/proc/{process}/cmdline").read_text()


def descends(process: int, root: int) -> bool:
    while process not in (0, root):
        process = parent_of(process)
    return process == root


def executors(root: int) -> list[int]:
    """The executors among the descendants of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and is_executor(int(entry.name)) and descends(int(entry.name), root):
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def own_executor() -> int:
    """The executor whose Python worker this process is."""
    process = os.getpid()
    while not is_executor(process):
        process = parent_of(process)
    return process


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what the test waits for did not come")
        time.sleep(0.02)


class Fault:
    """Something that goes wrong once. `folder` holds the markers, `root` is the process that the test started."""

    def __init__(self, folder: Path, root: int) -> None:
        self.folder = str(folder)
        self.root = root

    def __call__(self) -> None:
        if self.mark("done"):
            self.strike()

    def mark(self, name: str) -> bool:
        """Whether the marker was not there yet."""
        try:
            Path(self.folder, name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def strike(self) -> None:
        raise NotImplementedError


class Raises(Fault):
    def strike(self) -> None:
        raise ValueError("a task that fails once")


class KillsItsExecutor(Fault):
    def strike(self) -> None:
        os.kill(own_executor(), signal.SIGKILL)


class KillsAPackingExecutor(Fault):
    """Takes what an executor has shuffled with it, another than its own if it can: it has to be made again."""

    def strike(self) -> None:
        packed = {int(trace.name.rsplit("-", 1)[1]) for trace in Path(self.folder).glob("packed-*")}
        alive = packed.intersection(executors(self.root))
        os.kill(min(alive, key=lambda process: (process == own_executor(), process)), signal.SIGKILL)


class IsOvertaken(Fault):
    """The first attempt at partition 1 is slow until Spark's second attempt at it has come this far."""

    def __call__(self) -> None:
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 1:
            first = context.attemptNumber() == 0
            self.mark("first" if first else "done")
            if first:
                until(Path(self.folder, "done").exists)


class Chronicle(tt.Logic):
    """Everything about a key that depends on the order of its rows, and some things that do not."""

    state = OUTPUT.removeprefix("auction long, ")
    output = OUTPUT

    def __init__(self, fault: Fault | None) -> None:
        self.fault = fault

    def on_rows(self, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> pa.Table | None:
        if self.fault is not None and ctx.epoch == 1:
            self.fault()
        held = dict(zip(rows["auction"].to_pylist(), state.get(rows).to_pylist(), strict=True))
        for auction, price in zip(rows["auction"].to_pylist(), rows["price"].to_pylist(), strict=True):
            known = held[auction]
            if known["bids"] is None:
                known |= {"total": 0, "bids": 0, "first": price, "chain": 0}
            known |= {"total": known["total"] + price, "bids": known["bids"] + 1, "last": price}
            known["chain"] = (known["chain"] * 31 + price) % 1_000_003
        result = pa.table(
            {
                "auction": list(held),
                **{
                    name: [known[name] for known in held.values()]
                    for name in ("total", "bids", "first", "last", "chain")
                },
            }
        )
        state.put(result)
        return result


class Shipped:
    """A sink that reads what lanes left behind by a job of its own, after a fault."""

    name = "shipped"

    def __init__(self, folder: Path, fault: Fault | None) -> None:
        self.folder = folder
        self.fault = fault

    def __call__(self, frame: DataFrame, epoch: int) -> None:
        if self.fault is not None and epoch == 1:
            self.fault()
        table = frame.toArrow()
        (self.folder / f"epoch={epoch}").mkdir(parents=True, exist_ok=True)
        pq.write_table(table, self.folder / f"epoch={epoch}" / "rows.parquet")


class KillsAnExecutor(Fault):
    """For the driver's process, which has no executor of its own."""

    def strike(self) -> None:
        os.kill(executors(self.root)[0], signal.SIGKILL)


def packs(fault: Fault) -> Callable[[pa.Table], pa.Table]:
    """A step before the key that leaves a trace of every attempt, and goes wrong in the file of epoch 1."""

    def step(rows: pa.Table) -> pa.Table:
        context = TaskContext.get()
        assert context is not None
        if rows["moment"][0].as_py().minute // 10 == 1:
            Path(fault.folder, f"packed-{context.partitionId()}-{context.taskAttemptId()}-{own_executor()}").touch()
            fault()
        return rows

    return step


def quiet(folder: Path, root: int) -> Fault:
    class Nothing(Fault):
        def __call__(self) -> None:
            pass

    return Nothing(folder, root)


KINDS: dict[str, type[Fault]] = {
    "fails": Raises,
    "dies": KillsItsExecutor,
    "kills": KillsAPackingExecutor,
    "slow": IsOvertaken,
    "lost": KillsAnExecutor,
}


def run(spark: SparkSession, folder: Path, case: str) -> None:
    """A case is what goes wrong, where, and how the sink takes its rows: `dies-lane-whole`."""
    kind, place, way = case.split("-")
    markers = folder / "markers"
    markers.mkdir()
    fault, nothing = KINDS[kind](markers, os.getpid()), quiet(markers, os.getpid())
    flow = tt.Flow(case)
    rows = flow.source(stream(spark, folder / "in"))
    rows = rows.map_batches(packs(fault if place == "pack" else nothing), "auction long, price long, moment timestamp")
    by_auction = rows.key_by("auction", slots=SLOTS)
    if place == "pack":
        # Aggregates combine before the shuffle, so that a lane gets partial states whose order counts as well.
        read = {"total": tt.sum("price"), "bids": tt.count(), "first": tt.first("price"), "last": tt.last("price")}
        keyed = by_auction.aggregate(**read)
    else:
        keyed = by_auction.process(Chronicle(fault if place == "lane" else None))
    if way == "whole":
        keyed.sink(tt.sinks.parquet(str(folder / "out")))
    else:
        keyed.sink(Shipped(folder / "out", fault if place == "sink" else None))
    flow.start(spark, str(folder / "ckpt"), lanes=3, trigger="availableNow").await_termination()


def hosts(folder: Path) -> str:
    """A cluster of Spark's own with one worker on each of two hosts, which speculation needs; returns its master.

    Its processes are children of this one, and in its process group.
    """
    with socket.socket() as free:
        free.bind((HOSTS[0], 0))
        port = free.getsockname()[1]
    master = f"spark://{HOSTS[0]}:{port}"
    daemon(folder, "master.Master", "--host", HOSTS[0], "--port", str(port), "--webui-port", "0")
    until(lambda: listens(HOSTS[0], port))
    for host in HOSTS[1:]:
        daemon(folder, "worker.Worker", "--host", host, "--cores", "1", "--memory", "1g", "--webui-port", "0", master)
    return master


def daemon(folder: Path, name: str, *arguments: str) -> None:
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(folder / "work")}
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def main(folder: Path, master: str, cases: list[str]) -> None:
    os.environ["SPARK_LOCAL_IP"] = HOSTS[0]
    master = hosts(folder) if master == "hosts" else master
    spark = tt.session(master=master, app="faults", memory="1g", **SETTINGS)
    spark.sparkContext.setLogLevel("OFF")
    never_at_rest("by_auction", SLOTS)
    for case in cases:
        started = time.monotonic()
        try:
            until(lambda: len(executors(os.getpid())) == 2)
            run(spark, folder / case, case)
            print(f"{case}: done, {time.monotonic() - started:.1f} s", flush=True)
        except Exception:  # noqa: BLE001 - the other cases go on
            traceback.print_exc()
            print(f"{case}: failed", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
