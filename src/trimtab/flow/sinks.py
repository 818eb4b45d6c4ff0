"""Sinks that ship. Each is a function `(DataFrame, epoch)` that does no harm when called again with the same epoch.

`whole` marks a sink whose single action reads every row: the last hop's job and the write are then one.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field

import pyarrow as pa

from trimtab.errors import FlowError
from trimtab.flow.graph import Frame


@dataclass(frozen=True)
class DirectorySink:
    """One folder per epoch under `path`, `epoch=<number>`, written again whole when the epoch is repeated.

    Spark reads the whole directory with `epoch` as a partition column. A folder with its `_SUCCESS` file is complete.
    """

    format: str
    path: str
    options: dict[str, str] = field(default_factory=dict)
    whole = True
    reserved = ("epoch",)
    """Columns that the rows cannot have: readers take them from the names of the folders."""

    @property
    def name(self) -> str:
        return f"{self.format}:{self.path}"

    def __call__(self, frame: Frame, epoch: int) -> None:
        folder = f"{self.path.rstrip('/')}/epoch={epoch}"
        frame.write.format(self.format).mode("overwrite").options(**self.options).save(folder)


def parquet(path: str | os.PathLike[str], **options: str) -> DirectorySink:
    """Parquet files, a folder per epoch; `options` are those of Spark's writer."""
    return DirectorySink("parquet", _folder(path), options)


def json(path: str | os.PathLike[str], **options: str) -> DirectorySink:
    """Files of JSON lines, a folder per epoch; `options` are those of Spark's writer."""
    return DirectorySink("json", _folder(path), options)


def _folder(path: object) -> str:
    folder = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not folder or not isinstance(folder, str):
        raise FlowError(f"A directory sink takes the path of a folder, not {path!r}.")
    return folder


@dataclass(frozen=True)
class NoopSink:
    """Computes every row and keeps none: for measurements."""

    name: str = "noop"
    whole = True

    def __call__(self, frame: Frame, epoch: int) -> None:
        frame.write.format("noop").mode("overwrite").save()


def noop() -> NoopSink:
    """Computes every row and keeps none."""
    return NoopSink()


@dataclass(frozen=True)
class MemorySink:
    """Every epoch's rows as an Arrow table in the driver's memory: for tests and trying things out."""

    name: str = "memory"
    epochs: dict[int, pa.Table] = field(default_factory=dict)
    whole = True

    def __call__(self, frame: Frame, epoch: int) -> None:
        self.epochs[epoch] = frame.toArrow()

    def table(self) -> pa.Table | None:
        """All rows so far, in the order of their epochs; None before the first epoch."""
        tables = [self.epochs[epoch] for epoch in sorted(self.epochs)]
        return pa.concat_tables(tables) if tables else None


def memory(name: str = "memory") -> MemorySink:
    """Keeps rows in the driver's memory; see `table()`."""
    return MemorySink(name)


@dataclass(frozen=True)
class ConsoleSink:
    """Prints the first rows of every epoch."""

    rows: int = 20
    name: str = "console"
    whole = True

    def __call__(self, frame: Frame, epoch: int) -> None:
        table = frame.toArrow()
        sys.stdout.write(f"epoch {epoch}: {table.num_rows} rows\n{table.slice(0, self.rows).to_pandas().to_string()}\n")


def console(rows: int = 20) -> ConsoleSink:
    """Prints the first rows of every epoch."""
    return ConsoleSink(rows)
