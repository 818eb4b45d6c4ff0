"""The only doors to the outside: time, randomness, ids, storage and faults.

Everything else takes one of these as an argument, so that the simulator can drive the same code under a virtual
clock, and tests can stop it at any step.
"""

from __future__ import annotations

import os
import random
import signal
import time
import uuid
from collections.abc import Iterable
from typing import Protocol

import numpy as np
import pyarrow as pa


class Clock(Protocol):
    """Wall time for records, and a monotonic time for durations; both in seconds."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.perf_counter()


class Rng(Protocol):
    """Where seeds and ids come from."""

    def seed(self) -> int: ...

    def identity(self) -> str: ...


class SystemRng:
    """The machine's randomness."""

    def seed(self) -> int:
        return random.SystemRandom().getrandbits(63)

    def identity(self) -> str:
        return uuid.uuid4().hex


Chance = np.random.Generator
"""Where a seed's numbers come from, one after the other."""


def chance(seed: int) -> Chance:
    """Chance that repeats itself: the same numbers for the same seed."""
    return np.random.default_rng(seed)


class ObjectStore(Protocol):
    """Named, immutable blobs. Names are relative paths with forward slashes.

    `put_if_absent` is atomic and durable: when it returns True the whole blob survives a crash, and a crash before
    leaves no blob of that name. `read` may hand out memory that is mapped from a file. `url` is the store's address:
    what opens it again in another process.
    """

    url: str

    def put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        """Write the blob unless the name is taken; say whether this call wrote it."""

    def read(self, name: str) -> pa.Buffer:
        """The whole blob. Raises FileNotFoundError when there is none."""

    def exists(self, name: str) -> bool: ...

    def list(self, prefix: str) -> list[str]:
        """Names under a folder prefix such as "segments/", in ascending order."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove blobs; a name that does not exist is no error."""


FAILPOINT = "TRIMTAB_FAILPOINT"


def reached(failpoint: str, epoch: int) -> None:
    """A step that tests can stop at: `TRIMTAB_FAILPOINT=name@epoch` kills this process with SIGKILL right here.

    Several are separated by commas. Without the variable this does nothing.
    """
    wanted = os.environ.get(FAILPOINT)
    if wanted and f"{failpoint}@{epoch}" in wanted.split(","):
        os.kill(os.getpid(), signal.SIGKILL)
