"""A running flow on real Spark levels itself, does as it is told, and comes out as if nothing had moved."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import Result
from pyspark.sql import SparkSession
from tests.spark.chaos_flow import chaos, expected, found, make_input
from tests.spark.helpers import bids, latest, stream, totals, write_batches
from tests.spark.processes import ROOT, Process
from typer.testing import CliRunner

import trimtab as tt
from trimtab.cli.app import app
from trimtab.errors import FlowError
from trimtab.planners import PLANNERS
from trimtab.planners.plan import Plan
from trimtab.state.envelope import read_record
from trimtab.state.keyhash import hash_keys, slot_of
from trimtab.state.records import Claim, claim_name
from trimtab.state.store import open_store

SLOTS = 12
LANES = 3
SECONDS_PER_ROW = 0.0005


class Slow(tt.Logic):
    """A total per auction that takes its time for every row, as an expensive operator does."""

    state = "total long, bids long"
    output = "auction long, total long, bids long"

    def on_rows(self, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> pa.Table:
        time.sleep(rows.num_rows * SECONDS_PER_ROW)
        held = dict(zip(rows["auction"].to_pylist(), state.get(rows).to_pylist(), strict=True))
        for auction, price in zip(rows["auction"].to_pylist(), rows["price"].to_pylist(), strict=True):
            total, count = held[auction]["total"] or 0, held[auction]["bids"] or 0
            held[auction] = {"total": total + price, "bids": count + 1}
        columns = {name: [each[name] for each in held.values()] for name in ("total", "bids")}
        result = pa.table({"auction": list(held), **columns})
        state.put(result)
        return result


def auctions_of(lane: int, number: int) -> list[int]:
    """Auctions whose slots are on a lane at first."""
    candidates = list(range(1000))
    slots = slot_of(hash_keys([pa.array(candidates)]), SLOTS)
    return [auction for auction, slot in zip(candidates, slots, strict=True) if slot % LANES == lane][:number]


def skewed(epochs: int, rows: int = 300) -> list[pa.Table]:
    """Batches of which four rows of five are for auctions on lane 0."""
    hot, cold = auctions_of(0, 12), auctions_of(1, 6) + auctions_of(2, 6)
    tables = []
    for seed in range(epochs):
        table = bids(seed, rows, keys=12)
        picks = [(hot if number % 5 else cold)[key] for number, key in enumerate(table["auction"].to_pylist())]
        tables.append(table.set_column(0, "auction", pa.array(picks)))
    return tables


def started(spark: SparkSession, folder: Path, **options: Any) -> tuple[tt.Run, tt.sinks.MemorySink]:
    sink = tt.sinks.memory()
    flow = tt.Flow("slow")
    flow.source(stream(spark, folder / "in")).key_by("auction", slots=SLOTS, name="totals").process(Slow()).sink(sink)
    options = {"lanes": LANES, "trigger": "availableNow", **options}
    return flow.start(spark, str(folder / "ckpt"), **options), sink


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "what the test waits for did not come"
        time.sleep(0.02)


def test_a_skewed_flow_levels_itself_and_says_how(spark: SparkSession, tmp_path: Path) -> None:
    batches = skewed(12)
    write_batches(tmp_path / "in", batches)
    run, sink = started(spark, tmp_path, planner=tt.planners.Hotspot(), control=tt.Control(window=2))
    run.await_termination()
    assert latest(sink.table()) == totals(batches)
    history = run.history()
    before, after = ([each.work for each in history.measures[epoch].lanes] for epoch in (0, -1))
    assert max(before) > 2 * sum(before) / LANES
    assert max(after) < 1.5 * sum(after) / LANES
    assert all("of the mean" in move.why for _, move in history.moves)
    assert history.of_kind("effect")
    kept = tt.history(str(tmp_path / "ckpt"))
    assert [measure.epoch for measure in kept.measures] == list(range(12))
    assert kept.moves == history.moves
    measure = kept.measures[3]
    assert measure.rows == 300 == sum(measure.slots[0].rows) == sum(each.rows for each in measure.lanes)
    assert sum(measure.slots[0].busy) == pytest.approx(sum(each.busy + each.write for each in measure.lanes), rel=0.2)


@pytest.mark.parametrize("name", sorted(PLANNERS))
def test_every_planner_drives_a_run_to_its_end(spark: SparkSession, tmp_path: Path, name: str) -> None:
    batches = skewed(5, rows=60)
    write_batches(tmp_path / "in", batches)
    control = tt.Control(window=1, cool_down=0)
    run, sink = started(spark, tmp_path, planner=PLANNERS[name](), control=control)
    run.await_termination()
    assert latest(sink.table()) == totals(batches)
    assert not run.history().of_kind("dropped")


class ToTheLast:
    """Puts every slot on the last lane that stays: a policy of a user's own."""

    def plan(self, snapshot: Any) -> Plan:
        lanes = snapshot.lane.copy()
        lanes[snapshot.load == 0] = snapshot.staying[-1]
        return Plan(lanes, "slots without load are put aside")


def test_a_policy_of_ones_own_plugs_in(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", skewed(4, rows=60))
    run, _ = started(spark, tmp_path, planner=ToTheLast(), control=tt.Control(window=1))
    run.await_termination()
    assert not run.history().of_kind("dropped")


def test_by_hand_in_a_flow_that_is_quiet(spark: SparkSession, tmp_path: Path) -> None:
    batches = skewed(2, rows=60)
    write_batches(tmp_path / "in", batches)
    run, sink = started(spark, tmp_path, trigger=None)
    try:
        run.process_all_available()
        run.move("totals", 0, 2)
        until(lambda: run.routing.slots[0][0] == 2)
        run.scale(5)
        until(lambda: len(run.routing.running) == 5)
        run.drain(1)
        until(lambda: 1 not in run.routing.running)
        with pytest.raises(FlowError, match="There is no lane 1"):
            run.move("totals", 3, 1)
        more = skewed(4, rows=60)[2:]
        write_batches(tmp_path / "in", more, first=2)
        run.process_all_available()
        assert latest(sink.table()) == totals(batches + more)
        assert {each.lane for each in run.history().measures[-1].lanes} == {0, 2, 3, 4}
    finally:
        run.stop()
    again, _ = started(spark, tmp_path, lanes=None)
    again.await_termination()
    assert again.routing == run.routing


def test_a_drain_is_finished_at_the_end_of_available_now(spark: SparkSession, tmp_path: Path) -> None:
    batches = skewed(3, rows=60)
    write_batches(tmp_path / "in", batches)
    run, sink = started(spark, tmp_path, planner=tt.planners.Auto())
    run.drain(2)
    run.await_termination()
    assert run.routing.running == (0, 1)
    assert latest(sink.table()) == totals(batches)


def test_another_process_steers_through_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", skewed(2, rows=60))
    run, _ = started(spark, tmp_path, trigger=None)
    checkpoint = str(tmp_path / "ckpt")
    try:
        run.process_all_available()
        answer = ctl(checkpoint, "move", "totals", "1,4", "2", "--wait", "60", "--json")
        assert json.loads(answer.stdout)["answer"] == "It took effect."
        assert (run.routing.slots[0][1], run.routing.slots[0][4]) == (2, 2)
        refused = here(checkpoint, "drain", "8")
        assert "There is no lane 8" in str(refused.exception)
        assert "It took effect" in here(checkpoint, "scale", "2", "--wait", "60").stdout
        until(lambda: run.routing.running == (0, 1))
    finally:
        run.stop()
    assert here(checkpoint, "plan", "--wait", "0.5").exit_code == 4


def ctl(checkpoint: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trimtab.cli", "ctl", checkpoint, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)


def here(checkpoint: str, *arguments: str) -> Result:
    """The same command without a process of its own, which takes seconds to start."""
    return CliRunner().invoke(app, ["ctl", checkpoint, *arguments])


def test_bad_policies_are_refused_before_anything_starts(spark: SparkSession, tmp_path: Path) -> None:
    for options, message in (
        ({"planner": "hotspot"}, "planner= was given 'hotspot', which is no Planner"),
        ({"planner": tt.planners.Hotspot}, "which is no Planner"),
        ({"control": {"window": 3}}, "which is no Control"),
        ({"scaler": tt.planners.TargetUtilisation()}, "a scaler needs a planner"),
        ({"planner": tt.planners.Hotspot(window=9)}, r"say, control=tt.Control\(window=9\)"),
    ):
        with pytest.raises(FlowError, match=message):
            started(spark, tmp_path, **options)
    for settings, message in (({"window": 0}, "window=0"), ({"change": -1}, "change=-1"), ({"load": "x"}, "load='x'")):
        with pytest.raises(FlowError, match=message):
            tt.Control(**settings)
    assert not (tmp_path / "ckpt").exists()


def test_hot_keys_are_named_where_balancing_cannot_help(spark: SparkSession, tmp_path: Path) -> None:
    hot = auctions_of(0, 1)[0]
    tables = [table.set_column(0, "auction", pa.array([hot] * 280 + list(range(20)))) for table in skewed(4)]
    write_batches(tmp_path / "in", tables)
    run, _ = started(spark, tmp_path, planner=tt.planners.Hotspot(), control=tt.Control(window=2))
    run.await_termination()
    [advice] = run.history().of_kind("advice")
    assert f"Its hottest keys are {hot} (" in advice.why
    assert "A key is never split" in advice.why


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_chaos_changes_nothing(tmp_path: Path) -> None:
    """Random moves in every epoch, drains, lanes 3, 5, 1, 4, and kills: row for row what it would be without."""
    log = chaos(tmp_path, seed=7, epochs=40, kills=2)
    assert int(log.split("done, ")[1].split(" ")[0]) > 100


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("failpoint", ["after_claim", "before_commit"])
def test_the_epoch_of_a_move_is_replayed(tmp_path: Path, failpoint: str) -> None:
    """Killed between claim and commit, with slots on their way: the replay runs under the same claim."""
    batches = make_input(tmp_path, 12)
    killed = Process(tmp_path, "tests.spark.chaos_flow", "3", failpoint=f"{failpoint}@6")
    killed.wait()
    claimed = (tmp_path / "ckpt" / "claims" / f"{6:012d}").read_text()
    assert json.loads(claimed.split("\n", 1)[1])["message"]["moves"]
    log = Process(tmp_path, "tests.spark.chaos_flow", "4").wait()
    assert "done" in log, log
    claims = [claim_of(tmp_path / "ckpt", epoch) for epoch in range(12)]
    assert (tmp_path / "ckpt" / "claims" / f"{6:012d}").read_text() == claimed
    # What the claim changed is not undone when another driver goes on from there.
    for before, claim in pairwise(claims):
        assert claim.routing == before.routing.apply(claim.message)
    assert found(tmp_path) == expected(batches)


def claim_of(checkpoint: Path, epoch: int) -> Claim:
    return read_record(open_store(str(checkpoint)), claim_name(epoch), Claim)


def test_numbers_of_numpy_are_numbers_and_others_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", skewed(2, rows=60))
    run, _ = started(spark, tmp_path, trigger=None)
    try:
        run.process_all_available()
        for ask in (lambda: run.scale(4.0), lambda: run.drain(True), lambda: run.move("totals", "12", 1)):
            with pytest.raises(FlowError, match="has to be a whole number"):
                ask()
        run.move("totals", np.flatnonzero(np.asarray(run.routing.slots[0]) == 0), np.int64(2))
        until(lambda: 0 not in run.routing.slots[0])
        run.move("totals", np.int64(3), 0)
        until(lambda: run.routing.slots[0][3] == 0)
    finally:
        run.stop()
