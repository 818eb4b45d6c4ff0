"""What options of several planners have to be: a ProblemError begins with the name of the one that is wrong."""

from __future__ import annotations

import math

from trimtab.errors import ProblemError


def check_seed(seed: int | None) -> None:
    """Raise a ProblemError for a seed that chance cannot start from; None is no chance at all."""
    if seed is not None and seed < 0:
        raise ProblemError(f"options.seed is {seed}: it has to be 0 or more.")


def check_amount(name: str, value: float) -> None:
    """Raise a ProblemError for an option that is not a finite number, 0 or more."""
    if not 0 <= value < math.inf:
        raise ProblemError(f"options.{name} is {value}: it has to be a finite number, 0 or more.")
