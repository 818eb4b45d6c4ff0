"""How commands speak: results on stdout, everything else on stderr, one JSON object where that is wanted."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import msgspec
import typer
from rich.console import Console

errors = Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def status(text: str) -> None:
    """A line on what goes on, for people: stdout stays clean."""
    errors.print(text, style="dim", markup=False, highlight=False)


def print_json(result: object) -> None:
    """One JSON object on stdout."""
    typer.echo(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())


def fail(line: str, code: int) -> NoReturn:
    """One line on stderr, and the end."""
    sys.stderr.write(f"trimtab: {line}\n")
    sys.exit(code)
