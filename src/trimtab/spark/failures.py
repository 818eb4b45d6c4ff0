"""Errors on their way from a Python worker through the JVM to the driver, and out of Spark's wrapping."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from trimtab import errors
from trimtab.errors import TrimtabError

START = "<<trimtab:"
END = ":trimtab>>"
LONGEST = 30
NOT_INSTALLED = "No module named 'trimtab'"
PATTERN = re.compile(re.escape(START) + r"(\w+):(.*?)" + re.escape(END), re.DOTALL)


@contextmanager
def marked() -> Iterator[None]:
    """Mark the text of a `TrimtabError`, so that it is found again in what Spark makes of it."""
    try:
        yield
    except TrimtabError as error:
        raise type(error)(f"{START}{type(error).__name__}:{error}{END}") from error


def unmarked(error: BaseException) -> TrimtabError | None:
    """The `TrimtabError` that a failed job carries in its text, if there is one."""
    match = PATTERN.search(str(error))
    if match is None:
        return None
    kind = getattr(errors, match[1], TrimtabError)
    assert issubclass(kind, TrimtabError)
    return kind(match[2])


def brief(error: BaseException) -> str:
    """What an error says without the Java frames; the error itself stays its cause.

    >>> brief(ValueError("no\\n\\tat java.base\\nroom"))
    'no\\nroom'
    >>> brief(ImportError("No module named 'trimtab'")).split(":")[0]
    "The Python that Spark's tasks run in has no Trimtab"
    """
    if NOT_INSTALLED in str(error):
        return (
            "The Python that Spark's tasks run in has no Trimtab: install it there, or set PYSPARK_PYTHON to a Python "
            "that has it before Spark starts. trimtab.doctor(spark) says which one is used."
        )
    lines = [line for line in str(error).splitlines() if line.strip() and not re.match(r"\s*(at |\.\.\. )", line)]
    return "\n".join(lines[:LONGEST])
