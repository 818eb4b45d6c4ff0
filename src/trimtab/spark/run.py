"""A flow that runs: Spark's query, and the thread that runs epochs without input."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from trimtab.errors import TrimtabError
from trimtab.spark.driver import EpochDriver

IDLE_SECONDS = 1.0


class Run:
    """What `Flow.start` returns."""

    def __init__(self, query: StreamingQuery, driver: EpochDriver, spark: SparkSession, name: str) -> None:
        self.query = query
        """Spark's own handle."""
        self._driver = driver
        self._spark = spark
        self._stopping = threading.Event()
        self._closing = threading.Thread(target=self._close, name=f"trimtab-{name}", daemon=True)
        self._closing.start()

    def process_all_available(self) -> None:
        """Wait until all rows that the source has now are through, and everything closed that time can close."""
        try:
            self.query.processAllAvailable()
        except Exception as error:  # noqa: BLE001 - Spark's text of an error that is kept as it was
            self._raise(error)
        while self._driver.idle(self._spark):
            pass
        self._raise(None)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait for the end of the run, or `timeout` seconds; say whether it has ended. Raises what ended it."""
        self._closing.join(timeout)
        if self._closing.is_alive():
            return False
        self._raise(None)
        return True

    def stop(self) -> None:
        """End the run after the epoch that is running; nothing is lost, and the next start goes on from there."""
        self._stopping.set()
        self._driver.halt()
        self.query.stop()
        self._closing.join()

    @property
    def is_active(self) -> bool:
        """Whether rows are still taken, or the last epochs still run."""
        return self._closing.is_alive()

    @property
    def timings(self) -> Sequence[dict[str, float]]:
        """Seconds of the steps of the newest epochs, oldest first."""
        return list(self._driver.timings)

    @property
    def exception(self) -> BaseException | None:
        """What ended the run, if an error did: Trimtab's own error where there is one."""
        if self._driver.idle_error is not None:
            return self._driver.idle_error
        failed = self.query.exception()
        # Spark calls a query that was stopped no failure, even if it cut an epoch short.
        if failed is None:
            return None
        return self._driver.batch_error or (None if self._stopping.is_set() else failed)

    def _close(self) -> None:
        """While the query runs, epochs without input when one is due; after a query that ended by itself, the last."""
        try:
            while self.query.isActive and not self._stopping.is_set():
                if self._ended(IDLE_SECONDS):
                    break
                self._idle(IDLE_SECONDS)
            if not self._stopping.is_set() and self.query.exception() is None:
                while self._idle():
                    pass
        finally:
            self._driver.close()

    def _ended(self, seconds: float) -> bool:
        try:
            return bool(self.query.awaitTermination(seconds))  # type: ignore[arg-type] # fractions are fine
        except Exception:  # noqa: BLE001 - `exception` has it
            return True

    def _idle(self, quiet: float = 0) -> bool:
        try:
            return self._driver.idle(self._spark, quiet)
        except Exception:  # noqa: BLE001 - the driver keeps it for `exception`
            self.query.stop()
            return False

    def _raise(self, spark_error: Exception | None) -> None:
        error = self.exception or spark_error
        if isinstance(error, TrimtabError):
            raise error.with_traceback(None)
        if error is not None:
            raise error
