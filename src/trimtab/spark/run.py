"""A flow that runs: Spark's query, and the thread that runs epochs without input."""

from __future__ import annotations

import operator as operators
import threading
from collections.abc import Iterable, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from trimtab.control.by_hand import Drain, MoveSlots, PlanNow, Request, Scale
from trimtab.control.history import History
from trimtab.control.loop import Controller
from trimtab.errors import FlowError, TrimtabError
from trimtab.planners.snapshot import ClusterSnapshot
from trimtab.ports import SystemRng
from trimtab.spark.driver import EpochDriver
from trimtab.vocab import Routing

IDLE_SECONDS = 1.0


class Run:
    """What `Flow.start` returns."""

    def __init__(
        self, query: StreamingQuery, driver: EpochDriver, controller: Controller, spark: SparkSession, name: str
    ) -> None:
        self.query = query
        """Spark's own handle."""
        self._driver = driver
        self._controller = controller
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
        while self._idle():
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
    def routing(self) -> Routing:
        """Where every slot is, as of the newest epoch."""
        return self._controller.routing

    def snapshot(self) -> ClusterSnapshot:
        """The cluster as a planner would see it now: slots with their loads, lanes with their capacities."""
        return self._controller.snapshot()

    def history(self) -> History:
        """What this run measured and decided, oldest first. `tt.history(checkpoint)` also knows earlier runs."""
        return History(list(self._controller.measures), list(self._controller.events))

    def move(self, operator: str, slot: int | Iterable[int], lane: int) -> None:
        """Put one slot of an operator, or several, on a lane, from the next epoch on."""
        slots = slot if isinstance(slot, Iterable) else [slot]
        self._ask(MoveSlots(operator, tuple(whole("slot", each) for each in slots), whole("lane", lane)))

    def drain(self, lane: int) -> None:
        """Move everything off a lane, then let it go; the lanes that stay take its slots."""
        self._ask(Drain(whole("lane", lane)))

    def scale(self, lanes: int) -> None:
        """Run on so many lanes: new ones are filled, and of too many those with the highest numbers drain."""
        self._ask(Scale(whole("lanes", lanes)))

    def plan_now(self) -> None:
        """Let the planner plan after the next epoch, whether it is time or not."""
        self._ask(PlanNow())

    def _ask(self, request: Request) -> None:
        self._controller.ask(request, SystemRng().identity())

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
            # Spark calls a query inactive a little before its name is free again; `_ended` waits for that.
            while not self._stopping.is_set() and not self._ended(IDLE_SECONDS):
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
        """Run an epoch without input if one is due; one that fails ends the run."""
        try:
            return self._driver.idle(self._spark, quiet)
        except Exception:  # noqa: BLE001 - the driver keeps it for `exception`
            self.query.stop()
            return False
        except BaseException:
            self.query.stop()
            raise

    def _raise(self, spark_error: Exception | None) -> None:
        error = self.exception or spark_error
        if isinstance(error, TrimtabError):
            raise error.with_traceback(None)
        if error is not None:
            raise error


def whole(name: str, value: object) -> int:
    """A number from the user as a plain integer; NumPy's are welcome.

    >>> whole("lane", 3)
    3
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        return operators.index(value)  # type: ignore[arg-type]  # that is what is being found out
    except TypeError:
        raise FlowError(f"{name} was given {value!r}: it has to be a whole number.") from None
