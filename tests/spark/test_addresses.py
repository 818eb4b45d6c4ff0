"""Where checkpoints are: Trimtab's store and Spark's folder stay together, whatever the address looks like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.helpers import SCHEMA, bids, latest, stream, totals, write_batches

import trimtab as tt
from trimtab.spark.address import Address


class Elsewhere(fsspec.AbstractFileSystem):
    """An object store, as far as Trimtab can tell: names below a host that paths do not keep, like an Azure account.

    It is the local disk, and Hadoop's `viewfs` can be told to find the same files under the same address.
    """

    protocol = "viewfs"
    cachable = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.split("://", 1)[1].split("/", 1)[1] if "://" in path else path

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with Path(path).open("xb" if mode == "create" else "wb") as file:
            file.write(value)

    def cat_file(self, path: str, *_: Any, **__: Any) -> bytes:
        return Path(path).read_bytes()

    def exists(self, path: str, **_: Any) -> bool:
        return Path(path).exists()

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[dict[str, str]]:
        return [{"name": str(each), "type": "file" if each.is_file() else "directory"} for each in Path(path).iterdir()]

    def rm_file(self, path: str) -> None:
        Path(path).unlink()


# Here, so that a task that unpickles what is in this module knows of it too.
fsspec.register_implementation("viewfs", Elsewhere, clobber=True)


def passed(rows: pa.Table) -> pa.Table:
    return rows


def run_totals(spark: SparkSession, folder: Path, checkpoint: str) -> tt.sinks.MemorySink:
    sink = tt.sinks.memory()
    flow = tt.Flow("addressed")
    rows = flow.source(stream(spark, folder / "in")).map_batches(passed, SCHEMA)
    rows.key_by("auction", slots=8).aggregate(total=tt.sum("price"), n=tt.count()).sink(sink)
    flow.start(spark, checkpoint, lanes=2, trigger="availableNow").await_termination()
    return sink


@pytest.mark.parametrize("scheme", ["s3a", "abfs"])
def test_spark_and_the_lanes_get_the_address_as_it_was_given(scheme: str) -> None:
    fsspec.register_implementation(scheme, Elsewhere, clobber=True)
    given = f"{scheme}://box@account.example.net/folder"
    address = Address.of(f"{given}/")
    assert address.spark == f"{given}/spark"
    assert fsspec.core.url_to_fs(address.lanes)[1].rstrip("/") == "/folder"
    assert address.lanes.startswith(given)


def test_a_folder_is_on_this_machine_for_spark_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given in ("ckpt", tmp_path / "ckpt", f"file://{tmp_path}/ckpt"):
        address = Address.of(given)
        assert (address.lanes, address.spark) == (f"{tmp_path}/ckpt", f"file://{tmp_path}/ckpt/spark")


def test_a_checkpoint_on_another_filesystem_than_a_disk(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set(f"fs.viewfs.mounttable.disk.link.{tmp_path}", f"file://{tmp_path}")
    batches = [bids(seed) for seed in range(3)]
    seen: dict[object, object] = {}
    for start in range(2):
        write_batches(tmp_path / "in", batches[2 * start : 2 * start + 2], first=2 * start)
        seen |= latest(run_totals(session, tmp_path, f"viewfs://disk{tmp_path}/ckpt").table())
    assert seen == totals(batches)
    assert {path.name for path in (tmp_path / "ckpt").iterdir()} >= {"commits", "segments", "spark", "terms"}


def test_a_folder_stays_on_the_disk_whatever_filesystem_is_sparks_default(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("fs.defaultFS", "hdfs://nowhere.invalid:1")
    batches = [bids(0)]
    write_batches(tmp_path / "in", batches)
    sink = tt.sinks.memory()
    flow = tt.Flow("default")
    rows = session.readStream.schema(SCHEMA).parquet(f"file://{tmp_path}/in")
    flow.source(rows).key_by("auction", slots=8).aggregate(total=tt.sum("price"), n=tt.count()).sink(sink)
    flow.start(session, str(tmp_path / "ckpt"), lanes=2, trigger="availableNow").await_termination()
    assert latest(sink.table()) == totals(batches)
