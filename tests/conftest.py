"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Java machines that live for seconds gain nothing from a compiler that takes its time, or from collectors with threads.
os.environ["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for the whole run: starting its Java machine is slow."""
    import trimtab as tt

    session = tt.session(app="tests")
    yield session
    session.stop()
