"""Where a checkpoint is: one folder that Trimtab reaches through its store, and Spark through Hadoop."""

from __future__ import annotations

import os
from dataclasses import dataclass

from trimtab.errors import FlowError
from trimtab.ports import ObjectStore
from trimtab.state.store import LocalStore, open_store

SPARK_FOLDER = "spark"


@dataclass(frozen=True)
class Address:
    """A checkpoint's store, and how others find the same place.

    `lanes` opens the store in another process; `spark` is the folder inside it that Spark keeps for itself.
    """

    store: ObjectStore
    lanes: str
    spark: str

    @classmethod
    def of(cls, checkpoint: str | os.PathLike[str]) -> Address:
        """The address that a user gave.

        >>> Address.of("file:///mnt/shared/bids").spark
        'file:///mnt/shared/bids/spark'
        """
        given = _text(checkpoint)
        store = open_store(given)
        if isinstance(store, LocalStore):
            # Without the scheme Spark would look for the folder on its default filesystem.
            return cls(store, store.url, f"file://{store.url.rstrip('/')}/{SPARK_FOLDER}")
        # Filesystems strip what only Hadoop needs: s3a for s3, an account behind the container.
        return cls(store, given, f"{given.rstrip('/')}/{SPARK_FOLDER}")


def _text(checkpoint: object) -> str:
    given = os.fspath(checkpoint) if isinstance(checkpoint, str | os.PathLike) else None
    if not given or not isinstance(given, str):
        raise FlowError(
            f"A checkpoint is a folder of the flow's own, or its address, such as 'ckpt/auctions' or "
            f"'s3a://bucket/auctions'; {checkpoint!r} is none."
        )
    return given
