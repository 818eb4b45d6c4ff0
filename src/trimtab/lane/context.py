"""What logic may know beside its rows and its state. There is no clock here: time is the claim's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

EPOCH_START = datetime(1970, 1, 1, tzinfo=timezone.utc)
EARLIEST, LATEST = (
    (end.replace(tzinfo=timezone.utc) - EPOCH_START) // timedelta(microseconds=1)
    for end in (datetime.min, datetime.max)
)


def instant(microseconds: int) -> datetime:
    """A point in time from microseconds since 1970 in UTC.

    Spark's timestamps reach further than Python's: what is before the year 1 or after 9999 is the nearest that is not.

    >>> instant(1_500_000).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    >>> instant(2**62).year
    9999
    """
    return EPOCH_START + timedelta(microseconds=min(max(microseconds, EARLIEST), LATEST))


@dataclass(frozen=True)
class Context:
    """The circumstances of one call: the same again when the epoch is replayed."""

    flow: str
    operator: str
    epoch: int
    lane: int
    processing_time: datetime
    seed: int
    """Where randomness has to come from."""
    watermark: datetime | None = None

    @property
    def place(self) -> str:
        """Where the call is, for errors."""
        return f"Flow '{self.flow}', operator '{self.operator}', epoch {self.epoch}, lane {self.lane}"
