"""What can go wrong, as full sentences that name the flow, operator, slot or epoch and what to do about it."""

from __future__ import annotations


class TrimtabError(Exception):
    """Anything that Trimtab itself refuses or finds wrong."""


class StateError(TrimtabError):
    """A keyed table was handed rows that do not fit its operator's state."""


class CheckpointError(TrimtabError):
    """A checkpoint does not fit this flow, this version or this store, or would be broken by the step asked for."""


class DamagedError(CheckpointError):
    """A blob of a checkpoint is missing or is not what was written."""


class FencedError(CheckpointError):
    """Another driver has taken over the checkpoint; this one must stop."""


class FlowError(TrimtabError):
    """A flow that cannot run as it is written. Raised before any data is read."""


class LogicError(TrimtabError):
    """The user's own code failed, or returned what it did not declare. Begins with the user's traceback."""


class EpochError(TrimtabError):
    """The engine could not run an epoch; it was not committed and runs again at the next start."""


class HaltedError(EpochError):
    """An epoch was to begin after the run was told to stop; it runs at the next start."""


class SinkError(EpochError):
    """A sink failed; its epoch was not committed and runs again at the next start."""


class ProblemError(TrimtabError):
    """A plan problem that makes no sense; begins with the field that is wrong."""
