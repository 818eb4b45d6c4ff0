"""Faults that leave the process alive: replays, damage, full disks, rivals, checkpoints that do not belong."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.spark.helpers import Recorder, bids, durable, latest, oracle, results, stream, totals, write_batches

import trimtab as tt
from trimtab.errors import CheckpointError, DamagedError, FencedError
from trimtab.ports import SystemClock, SystemRng
from trimtab.state import protocol
from trimtab.state.envelope import read_record
from trimtab.state.protocol import Checkpoint
from trimtab.state.records import FLOW, Claim, Commit, FlowRecord, claim_name, commit_name
from trimtab.state.store import LocalStore, open_store


def start(
    spark: SparkSession,
    folder: Path,
    sink: Recorder,
    lanes: int = 2,
    trigger: str | None = "availableNow",
    files: int = 1,
    checkpoint: str = "ckpt",
) -> tt.Run:
    """Sum, count, first and last of the folder's bids."""
    flow = tt.Flow("faults")
    keyed = flow.source(stream(spark, folder / "in", files=files)).key_by("auction", slots=16)
    keyed.aggregate(total=tt.sum("price"), bids=tt.count(), first=tt.first("price"), last=tt.last("price")).sink(sink)
    return flow.start(spark, str(folder / checkpoint), lanes=lanes, trigger=trigger)


def finish(spark: SparkSession, folder: Path, lanes: int = 2, whole: bool = True, files: int = 1) -> Recorder:
    """The flow once through all there is."""
    sink = Recorder(whole)
    start(spark, folder, sink, lanes, files=files).await_termination()
    return sink


def feed(folder: Path, first: int, count: int) -> list[pa.Table]:
    """Batches number `first` and later; every one has each of the keys."""
    batches = [bids(seed, rows=200, keys=12) for seed in range(first, first + count)]
    write_batches(folder / "in", batches, first=first)
    return batches


def spark_forgets(checkpoint: Path, batch: int) -> None:
    """As when Spark was killed after our commit of a batch and before its own."""
    for name in (f"{batch}", f".{batch}.crc"):
        (checkpoint / "spark" / "commits" / name).unlink()


def claim_of(folder: Path, epoch: int) -> Claim:
    return read_record(open_store(str(folder / "ckpt")), claim_name(epoch), Claim)


def take_over(checkpoint: Path) -> Checkpoint:
    """What another driver does first."""
    store = open_store(str(checkpoint))
    record = read_record(store, FLOW, FlowRecord)
    return Checkpoint.open(store, record, rng=SystemRng(), clock=SystemClock(), replayable=lambda claim: True)


@contextmanager
def configured(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """The session with some settings that it does not have otherwise."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


class Killed(BaseException):
    """Stands for the end of the process: nothing handles it."""


class TestOpening:
    @pytest.mark.parametrize("written", [False, True])
    @pytest.mark.parametrize("blob", ["flow", "terms/"])
    def test_a_driver_that_dies_while_it_opens_a_checkpoint_is_no_harm(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blob: str, written: bool
    ) -> None:
        put = LocalStore.put_if_absent

        def dying(store: LocalStore, name: str, data: bytes) -> bool:
            if name.startswith(blob):
                if written:
                    put(store, name, data)
                raise Killed
            return put(store, name, data)

        batches = feed(tmp_path, 0, 1)
        with monkeypatch.context() as patch:
            patch.setattr(LocalStore, "put_if_absent", dying)
            with pytest.raises(Killed):
                start(spark, tmp_path, Recorder())
        assert results(finish(spark, tmp_path)) == oracle(batches)


class TestReplay:
    def test_a_committed_batch_that_spark_brings_again_is_adopted(self, spark: SparkSession, tmp_path: Path) -> None:
        batches = feed(tmp_path, 0, 3)
        before = finish(spark, tmp_path)
        kept = durable(tmp_path / "ckpt")
        spark_forgets(tmp_path / "ckpt", 2)
        assert finish(spark, tmp_path, lanes=3).calls == []
        assert durable(tmp_path / "ckpt") == kept
        spark_forgets(tmp_path / "ckpt", 2)
        batches += feed(tmp_path, 3, 1)
        after = finish(spark, tmp_path, lanes=3)
        assert after.epochs == [3]
        assert durable(tmp_path / "ckpt").items() > kept.items()
        assert results(before, after) == oracle(batches)

    @pytest.mark.parametrize("whole", [True, False])
    def test_a_batch_whose_sink_ran_reaches_it_again_with_the_same_rows(
        self, spark: SparkSession, tmp_path: Path, whole: bool
    ) -> None:
        batches = feed(tmp_path, 0, 4)
        broken = Recorder(whole, failing={2})
        with pytest.raises(tt.EpochError, match=r"epoch 2.*the sink broke"):
            start(spark, tmp_path, broken, lanes=3).await_termination()
        claim = claim_of(tmp_path, 2)
        again = finish(spark, tmp_path, lanes=5, whole=whole)
        assert (broken.epochs, again.epochs) == ([0, 1, 2], [2, 3])
        assert again.calls[0][1].equals(broken.calls[2][1])
        assert claim_of(tmp_path, 2) == claim
        assert (claim.routing.lanes, claim_of(tmp_path, 3).routing.lanes) == (3, 5)
        assert results(broken, again) == oracle(batches)

    @pytest.mark.parametrize(
        "other",
        [
            {"spark.sql.leafNodeDefaultParallelism": "2"},
            {"spark.sql.files.maxPartitionBytes": "25000"},
        ],
        ids=lambda settings: next(iter(settings)).rsplit(".", 1)[-1],
    )
    def test_a_replay_keeps_the_order_of_rows_under_settings_that_would_change_it(
        self, spark: SparkSession, tmp_path: Path, other: dict[str, str]
    ) -> None:
        # Spark deals pieces of files out by length. Whole, the file of 41 KB comes before the one of 20 KB; in two
        # pieces, its second one comes behind that, and so is the last to be read.
        batches = [bids(seed, rows=2400 - 1200 * (seed % 2), keys=12) for seed in range(4)]
        write_batches(tmp_path / "in", batches, rows_per_group=150)
        base = {"spark.sql.leafNodeDefaultParallelism": "1", "spark.sql.files.openCostInBytes": "1"}
        broken, elsewhere = Recorder(failing={0}), Recorder()
        with configured(spark, base), pytest.raises(tt.EpochError, match="the sink broke"):
            start(spark, tmp_path, broken, files=2).await_termination()
        with configured(spark, {**base, **other}):
            start(spark, tmp_path, elsewhere, files=2, checkpoint="elsewhere").await_termination()
            again = finish(spark, tmp_path, lanes=3, files=2)
        assert not elsewhere.calls[0][1].equals(broken.calls[0][1]), "the settings change nothing: no test"
        assert again.epochs == [0, 1]
        assert again.calls[0][1].equals(broken.calls[0][1])
        counted = {key: row[:2] for key, row in results(broken, again).items()}
        assert counted == totals(batches)
        assert claim_of(tmp_path, 1).settings.items() >= other.items()

    def test_an_adopted_batch_is_not_run_after_an_epoch_without_input(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        feed(tmp_path, 0, 1)
        first = Recorder()
        start_passing(spark, tmp_path, first).await_termination()
        assert first.epochs == [0, 1]
        spark_forgets(tmp_path / "ckpt", 0)
        second = Recorder()
        start_passing(spark, tmp_path, second).await_termination()
        assert second.calls == []


class Passing(tt.Logic):
    """Holds every key's latest row and lets it go once the watermark has passed it."""

    state = "price long, moment timestamp"
    output = "auction long, price long"

    def on_rows(self, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> pa.Table | None:
        state.put(rows.select(["auction", "price", "moment"]))
        return None

    def on_watermark(self, watermark: object, state: tt.KeyedState, ctx: tt.Context) -> pa.Table | None:
        held = state.scan()
        passed = held.filter(pc.less_equal(held["moment"], pa.scalar(watermark, pa.timestamp("us", "UTC"))))
        state.delete(passed)
        return passed.select(["auction", "price"])


def start_passing(spark: SparkSession, folder: Path, sink: Recorder, lanes: int = 2, files: int = 1) -> tt.Run:
    flow = tt.Flow("passing")
    source = flow.source(stream(spark, folder / "in", files=files)).watermark("moment", "10 seconds")
    source.key_by("auction", slots=16).process(Passing()).sink(sink)
    return flow.start(spark, str(folder / "ckpt"), lanes=lanes, trigger="availableNow")


class TestEpochsWithoutInput:
    @pytest.mark.parametrize("whole", [True, False])
    def test_one_that_is_pending_runs_first_after_a_restart(
        self, spark: SparkSession, tmp_path: Path, whole: bool
    ) -> None:
        feed(tmp_path, 0, 1)
        broken, again = Recorder(whole, failing={1}), Recorder(whole)
        with pytest.raises(tt.EpochError, match=r"epoch 1.*the sink broke"):
            start_passing(spark, tmp_path, broken, lanes=3).await_termination()
        claim = claim_of(tmp_path, 1)
        assert claim.batch is None
        feed(tmp_path, 1, 1)
        start_passing(spark, tmp_path, again, lanes=2).await_termination()
        assert again.epochs == [1, 2, 3]
        assert again.calls[0][1].equals(broken.calls[1][1])
        assert again.calls[0][1].num_rows > 0
        assert claim_of(tmp_path, 1) == claim
        assert [claim_of(tmp_path, epoch).batch for epoch in range(4)] == [0, None, 1, None]
        assert [claim_of(tmp_path, epoch).routing.lanes for epoch in range(4)] == [3, 3, 2, 2]

    def test_one_that_fails_ends_the_run_for_whoever_waits(self, spark: SparkSession, tmp_path: Path) -> None:
        class Late(Passing):
            def on_watermark(self, watermark: object, state: tt.KeyedState, ctx: tt.Context) -> pa.Table | None:
                raise ValueError("too late")

        feed(tmp_path, 0, 1)
        flow = tt.Flow("late")
        source = flow.source(stream(spark, tmp_path / "in")).watermark("moment", "10 seconds")
        source.key_by("auction", slots=16).process(Late()).sink(Recorder())
        run = flow.start(spark, str(tmp_path / "ckpt"), lanes=2)
        with pytest.raises(tt.LogicError, match="too late"):
            run.process_all_available()
        with pytest.raises(tt.LogicError, match="too late"):
            run.await_termination(60)
        assert not run.is_active
        assert not run.query.isActive

    def test_one_that_is_pending_does_not_shape_the_batch_behind_it(self, spark: SparkSession, tmp_path: Path) -> None:
        batches = [bids(seed, rows=2400 - 1200 * (seed % 2), keys=12) for seed in range(4)]
        write_batches(tmp_path / "in", batches[:2], rows_per_group=150)
        idle, behind, replayed = Recorder(failing={1}), Recorder(failing={3}), Recorder()
        with pytest.raises(tt.EpochError, match="epoch 1"):
            start_passing(spark, tmp_path, idle, files=2).await_termination()
        write_batches(tmp_path / "in", batches[2:], first=2, rows_per_group=150)
        with configured(spark, {"spark.sql.files.maxPartitionBytes": "25000"}):
            with pytest.raises(tt.EpochError, match="epoch 3"):
                start_passing(spark, tmp_path, behind, files=2).await_termination()
            other = LocalStore(tmp_path / "ckpt")
            segments = {name for name in other.list("segments/") if "/000000000002-" in name}
        # Epoch 2 once more, under what its claim says: it has to write the very same segments.
        for name in (commit_name(2), claim_name(3), "spark/commits/1", "spark/commits/.1.crc"):
            (tmp_path / "ckpt" / name).unlink()
        start_passing(spark, tmp_path, replayed, files=2).await_termination()
        assert segments
        assert {name for name in other.list("segments/") if "/000000000002-" in name} == segments


def truncate(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


class TestDamage:
    @pytest.mark.parametrize("size", [0, 60])
    def test_a_torn_newest_commit_makes_its_epoch_run_again(
        self, spark: SparkSession, tmp_path: Path, size: int
    ) -> None:
        batches = feed(tmp_path, 0, 3)
        before = finish(spark, tmp_path)
        claim = claim_of(tmp_path, 2)
        truncate(tmp_path / "ckpt" / commit_name(2), size)
        spark_forgets(tmp_path / "ckpt", 2)
        batches += feed(tmp_path, 3, 1)
        after = finish(spark, tmp_path, lanes=3)
        assert after.epochs == [2, 3]
        assert after.calls[0][1].equals(before.calls[2][1])
        assert claim_of(tmp_path, 2) == claim
        assert results(before, after) == oracle(batches)

    def test_a_torn_commit_of_a_batch_that_spark_has_committed_is_named(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        feed(tmp_path, 0, 2)
        finish(spark, tmp_path)
        truncate(tmp_path / "ckpt" / commit_name(1), 60)
        kept = durable(tmp_path / "ckpt")
        sink = Recorder()
        with pytest.raises(DamagedError, match=rf"{commit_name(1)} is damaged.*rows of epoch 1"):
            start(spark, tmp_path, sink)
        assert sink.calls == []
        assert durable(tmp_path / "ckpt") == kept

    @pytest.mark.parametrize("whole", [True, False])
    @pytest.mark.parametrize("damage", ["flipped", "truncated", "missing"])
    def test_a_damaged_segment_ends_the_run_and_is_named(
        self, spark: SparkSession, tmp_path: Path, damage: str, whole: bool
    ) -> None:
        batches = feed(tmp_path, 0, 2)
        before = finish(spark, tmp_path)
        newest = max((tmp_path / "ckpt" / "segments").iterdir())
        good = newest.read_bytes()
        newest.unlink()
        if damage == "flipped":
            # The middle of the file is in the values of its columns.
            newest.write_bytes(bytes([*good[: len(good) // 2], good[len(good) // 2] ^ 1, *good[len(good) // 2 + 1 :]]))
        elif damage == "truncated":
            newest.write_bytes(good[:-100])
        batches += feed(tmp_path, 2, 1)
        sink = Recorder(whole)
        with pytest.raises(DamagedError, match=newest.name):
            start(spark, tmp_path, sink).await_termination()
        assert sink.calls == []
        assert not (tmp_path / "ckpt" / commit_name(2)).exists()
        newest.write_bytes(good)
        after = finish(spark, tmp_path, whole=whole)
        assert after.epochs == [2]
        assert results(before, after) == oracle(batches)


def full_disk(prefix: str, put: Callable[[LocalStore, str, bytes], bool]) -> Callable[[LocalStore, str, bytes], bool]:
    """The store's put, for a disk that has no room for some blobs."""

    def failing(self: LocalStore, name: str, data: bytes) -> bool:
        if name.startswith(prefix):
            raise OSError(errno.ENOSPC, "No space left on device", name)
        return put(self, name, data)

    return failing


class Bulky(tt.Logic):
    """Keeps the newest long text of every key and says how long it is and how it ends."""

    state = "text string, seen long"
    output = "name long, length long, tail string, seen long"

    def on_rows(self, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> pa.Table | None:
        seen = pc.add(pc.fill_null(state.get(rows)["seen"], 0), 1)
        state.put(rows.append_column("seen", seen))
        length = pc.cast(pc.utf8_length(rows["text"]), pa.int64())
        tail = pc.utf8_slice_codeunits(rows["text"], -3)
        return pa.table({"name": rows["name"], "length": length, "tail": tail, "seen": seen})


def bulk(number: int, size: int, keys: int = 4) -> pa.Table:
    """A long text for each of some keys."""
    return pa.table({"name": list(range(keys)), "text": [f"{'x' * size}{number:03d}"] * keys})


def start_bulky(spark: SparkSession, folder: Path, sink: Recorder) -> tt.Run:
    flow = tt.Flow("bulky")
    keyed = flow.source(stream(spark, folder / "in", "name long, text string")).key_by("name", slots=8)
    keyed.process(Bulky()).sink(sink)
    return flow.start(spark, str(folder / "ckpt"), lanes=2, trigger="availableNow")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2.6 MB, where this process may mount one."""
    folder = tmp_path / "ckpt"
    folder.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=2600k", "tmpfs", folder], check=False).returncode
    ):
        pytest.skip("needs the right to mount a file system")
    yield folder
    # Lazily: Python workers of Spark may still have segments mapped.
    subprocess.run(["umount", "-l", folder], check=True)


class TestFullDisk:
    @pytest.mark.parametrize("prefix", ["claims/", "commits/"])
    def test_no_room_for_a_record_fails_its_epoch_and_loses_nothing(
        self, spark: SparkSession, tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        batches = feed(tmp_path, 0, 2)
        before, failed = finish(spark, tmp_path), Recorder()
        kept = durable(tmp_path / "ckpt")
        batches += feed(tmp_path, 2, 2)
        with monkeypatch.context() as full:
            full.setattr(LocalStore, "put_if_absent", full_disk(prefix, LocalStore.put_if_absent))
            with pytest.raises(
                tt.EpochError, match=rf"(?s)its (claim|commit) could not be written.*No space left on device.*{prefix}"
            ):
                start(spark, tmp_path, failed).await_termination()
        assert failed.epochs == ([2] if prefix == "commits/" else [])
        assert durable(tmp_path / "ckpt").items() >= kept.items()
        after = finish(spark, tmp_path)
        assert after.epochs == [2, 3]
        assert all(rows.equals(after.calls[0][1]) for _, rows in failed.calls)
        assert results(before, failed, after) == oracle(batches)

    def test_no_room_for_a_full_manifest_stops_nothing(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(protocol, "FULL_EVERY", 2)
        batches = feed(tmp_path, 0, 4)
        with monkeypatch.context() as full:
            full.setattr(LocalStore, "put_if_absent", full_disk("manifests/", LocalStore.put_if_absent))
            before = finish(spark, tmp_path)
        assert not list((tmp_path / "ckpt").glob("manifests/*"))
        batches += feed(tmp_path, 4, 5)
        after = finish(spark, tmp_path)
        assert list((tmp_path / "ckpt").glob("manifests/*"))
        assert results(before, after) == oracle(batches)

    def test_no_room_for_a_segment_fails_its_epoch_and_loses_nothing(
        self, spark: SparkSession, tmp_path: Path, small_disk: Path
    ) -> None:
        write_batches(tmp_path / "in", [bulk(number, 250_000) for number in range(4)])
        failed, after = Recorder(), Recorder()
        with pytest.raises(tt.EpochError, match=r"(?s)Flow 'bulky', epoch \d: .*No space left on device"):
            start_bulky(spark, tmp_path, failed).await_termination()
        committed = len(list(small_disk.glob("commits/*")))
        assert failed.epochs == list(range(committed))
        assert 0 < committed < 4
        assert not list(small_disk.glob("tmp/*"))
        subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
        start_bulky(spark, tmp_path, after).await_termination()
        assert failed.epochs + after.epochs == [0, 1, 2, 3]
        for epoch, rows in [*failed.calls, *after.calls]:
            wanted = [(name, 250_003, f"{epoch:03d}", epoch + 1) for name in range(4)]
            assert sorted(tuple(row.values()) for row in rows.to_pylist()) == wanted


class Overtaken(tt.Logic):
    """Has another driver take the checkpoint over while its lanes work."""

    state = "price long"
    output = "auction long, price long"

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def on_rows(self, rows: pa.Table, state: tt.KeyedState, ctx: tt.Context) -> pa.Table | None:
        if ctx.epoch == 1:
            take_over(Path(self.folder))
        state.put(rows.select(["auction", "price"]))
        return rows.select(["auction", "price"])


class TestFencing:
    def test_a_driver_that_was_overtaken_while_idle_stops_at_its_next_epoch(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        batches = feed(tmp_path, 0, 2)
        older = Recorder()
        run = start(spark, tmp_path, older, trigger=None)
        run.process_all_available()
        take_over(tmp_path / "ckpt")
        kept = durable(tmp_path / "ckpt")
        batches += feed(tmp_path, 2, 2)
        with pytest.raises(FencedError, match="stopped before it claimed epoch 2"):
            run.await_termination(60)
        assert isinstance(run.exception, FencedError)
        assert not run.is_active
        assert older.epochs == [0, 1]
        assert durable(tmp_path / "ckpt") == kept
        newer = finish(spark, tmp_path)
        assert newer.epochs == [2, 3]
        assert results(older, newer) == oracle(batches)

    @pytest.mark.parametrize("whole", [True, False])
    def test_a_driver_that_was_overtaken_by_its_lanes_work_commits_nothing(
        self, spark: SparkSession, tmp_path: Path, whole: bool
    ) -> None:
        def overtaken(sink: Recorder, lanes: int) -> None:
            flow = tt.Flow("overtaken")
            keyed = flow.source(stream(spark, tmp_path / "in")).key_by("auction", slots=16)
            keyed.process(Overtaken(str(tmp_path / "ckpt"))).sink(sink)
            flow.start(spark, str(tmp_path / "ckpt"), lanes=lanes, trigger="availableNow").await_termination()

        feed(tmp_path, 0, 2)
        sink = Recorder(whole)
        # A sink that shares the lanes' job is called before the lanes run; any other is not called any more.
        step = "it committed epoch 1" if whole else "before its sinks"
        with pytest.raises(FencedError, match=step):
            overtaken(sink, 2)
        assert sink.epochs == ([0, 1] if whole else [0])
        assert [path.name for path in (tmp_path / "ckpt").glob("commits/*")] == [commit_name(0).split("/")[1]]

    def test_a_driver_that_was_overtaken_deletes_nothing(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(protocol, "FULL_EVERY", 2)
        feed(tmp_path, 0, 10)
        commit = Checkpoint.commit
        kept: dict[str, tuple[int, bytes]] = {}

        def commit_and_lose(self: Checkpoint, record: Commit) -> None:
            commit(self, record)
            if record.epoch == 7:
                take_over(tmp_path / "ckpt")
                kept.update(durable(tmp_path / "ckpt"))

        monkeypatch.setattr(Checkpoint, "commit", commit_and_lose)
        with pytest.raises(FencedError, match="before it collected garbage"):
            finish(spark, tmp_path)
        assert durable(tmp_path / "ckpt") == kept
        assert len(list((tmp_path / "ckpt").glob("manifests/*"))) > 1


class TestCheckpointsThatDoNotBelong:
    @pytest.mark.parametrize("epochs", [1, 3])
    def test_sparks_folder_is_gone(self, spark: SparkSession, tmp_path: Path, epochs: int) -> None:
        batches = feed(tmp_path, 0, epochs)
        before = finish(spark, tmp_path)
        kept = durable(tmp_path / "ckpt")
        (tmp_path / "ckpt" / "spark").rename(tmp_path / "moved")
        batches += feed(tmp_path, epochs, 1)
        refused = Recorder()
        with pytest.raises(CheckpointError, match=r"'spark' do not belong together: .*another Spark query\. Restore"):
            start(spark, tmp_path, refused).await_termination()
        assert refused.calls == []
        assert durable(tmp_path / "ckpt") == kept
        shutil.rmtree(tmp_path / "ckpt" / "spark")
        (tmp_path / "moved").rename(tmp_path / "ckpt" / "spark")
        after = finish(spark, tmp_path)
        assert after.epochs == [epochs]
        assert results(before, after) == oracle(batches)

    def test_sparks_folder_is_gone_while_the_first_epoch_is_claimed(self, spark: SparkSession, tmp_path: Path) -> None:
        batches = feed(tmp_path, 0, 1)
        broken, refused = Recorder(failing={0}), Recorder()
        with pytest.raises(tt.EpochError, match="the sink broke"):
            start(spark, tmp_path, broken).await_termination()
        (tmp_path / "ckpt" / "spark").rename(tmp_path / "moved")
        # What another query's first batch has in it is another matter.
        batches += feed(tmp_path, 1, 1)
        with pytest.raises(CheckpointError, match="another Spark query"):
            start(spark, tmp_path, refused, files=2).await_termination()
        assert refused.calls == []
        shutil.rmtree(tmp_path / "ckpt" / "spark")
        (tmp_path / "moved").rename(tmp_path / "ckpt" / "spark")
        after = finish(spark, tmp_path)
        assert after.epochs == [0, 1]
        assert after.calls[0][1].equals(broken.calls[0][1])
        assert results(after) == oracle(batches)

    @pytest.mark.parametrize("committed", [0, 2])
    def test_sparks_folder_is_ahead(self, spark: SparkSession, tmp_path: Path, committed: int) -> None:
        feed(tmp_path, 0, committed)
        finish(spark, tmp_path)
        older = tmp_path / "older"
        shutil.copytree(tmp_path / "ckpt", older, ignore=shutil.ignore_patterns("spark"))
        feed(tmp_path, committed, 2)
        finish(spark, tmp_path)
        (tmp_path / "ckpt" / "spark").rename(older / "spark")
        shutil.rmtree(tmp_path / "ckpt")
        older.rename(tmp_path / "ckpt")
        kept = durable(tmp_path / "ckpt")
        feed(tmp_path, committed + 2, 1)
        refused = Recorder()
        with pytest.raises(
            CheckpointError, match=rf"batch {committed} is next, but Spark brings batch {committed + 2}"
        ):
            start(spark, tmp_path, refused).await_termination()
        assert refused.calls == []
        assert durable(tmp_path / "ckpt") == kept

    def test_sparks_folder_is_behind(self, spark: SparkSession, tmp_path: Path) -> None:
        feed(tmp_path, 0, 1)
        finish(spark, tmp_path)
        shutil.copytree(tmp_path / "ckpt" / "spark", tmp_path / "behind")
        feed(tmp_path, 1, 2)
        finish(spark, tmp_path)
        kept = durable(tmp_path / "ckpt")
        shutil.rmtree(tmp_path / "ckpt" / "spark")
        (tmp_path / "behind").rename(tmp_path / "ckpt" / "spark")
        refused = Recorder()
        with pytest.raises(CheckpointError, match="batch 2 is committed, but Spark brings batch 1"):
            start(spark, tmp_path, refused).await_termination()
        assert refused.calls == []
        assert durable(tmp_path / "ckpt") == kept


class TestStrangeRows:
    def test_texts_of_megabytes_through_process(self, spark: SparkSession, tmp_path: Path) -> None:
        write_batches(tmp_path / "in", [bulk(number, 5_000_000, keys=5) for number in range(2)])
        sink = Recorder()
        start_bulky(spark, tmp_path, sink).await_termination()
        for epoch in range(2):
            wanted = [(name, 5_000_003, f"{epoch:03d}", epoch + 1) for name in range(5)]
            assert sorted(tuple(row.values()) for row in sink.calls[epoch][1].to_pylist()) == wanted

    def test_texts_of_megabytes_as_inputs_of_aggregates(self, spark: SparkSession, tmp_path: Path) -> None:
        texts = [letter * 3_000_000 for letter in "cabd"]
        tables = [pa.table({"name": [1, 2, 1, 2], "text": texts}), pa.table({"name": [2, 1], "text": ["e", None]})]
        write_batches(tmp_path / "in", tables)
        sink = Recorder()
        flow = tt.Flow("texts")
        keyed = flow.source(stream(spark, tmp_path / "in", "name long, text string")).key_by("name", slots=8)
        read = {"first": tt.first("text"), "last": tt.last("text"), "least": tt.min("text"), "most": tt.max("text")}
        keyed.aggregate(**read).sink(sink)
        flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
        c, a, b, d = texts
        assert latest(sink.calls[0][1]) == {1: (c, b, b, c), 2: (a, d, a, d)}
        assert latest(sink.calls[1][1]) == {1: (c, None, b, c), 2: (a, "e", a, "e")}

    @pytest.mark.parametrize("key", [7, None])
    def test_one_key_for_all_rows(self, spark: SparkSession, tmp_path: Path, key: int | None) -> None:
        batches = [
            bids(seed, rows=5000).set_column(0, "auction", pa.array([key] * 5000, pa.int64())) for seed in (0, 1)
        ]
        write_batches(tmp_path / "in", batches, rows_per_group=500)
        with configured(spark, {"spark.sql.files.maxPartitionBytes": "20000"}):
            sink = finish(spark, tmp_path, lanes=3)
        assert [rows.num_rows for _, rows in sink.calls] == [1, 1]
        assert results(sink) == oracle(batches)

    def test_an_epoch_whose_rows_are_all_filtered_away(self, spark: SparkSession, tmp_path: Path) -> None:
        def dear(rows: pa.Table) -> pa.Table:
            return rows.filter(pc.greater_equal(rows["price"], 500)).select(["auction", "price"])

        batches = [bids(seed, rows=100, keys=12) for seed in range(4)]
        for number in (1, 2):
            cheap = pc.add(pc.bit_wise_and(batches[number]["price"], 63), 100 * number)
            batches[number] = batches[number].set_column(1, "price", cheap)
        write_batches(tmp_path / "in", batches)
        sink = Recorder()
        flow = tt.Flow("filtered")
        # The second batch goes in Spark's filter, the third in the step behind it.
        source = flow.source(stream(spark, tmp_path / "in")).filter("price >= 200")
        keyed = source.map_batches(dear, "auction long, price long").key_by("auction", slots=16)
        keyed.aggregate(total=tt.sum("price"), bids=tt.count(), first=tt.first("price"), last=tt.last("price")).sink(
            sink
        )
        flow.start(spark, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
        assert sink.epochs == [0, 1, 2, 3]
        assert [rows.num_rows for _, rows in sink.calls[1:3]] == [0, 0]
        assert results(sink) == oracle([dear(batch) for batch in batches])
