"""`trimtab`: the commands. With `--json` a command prints one JSON object on stdout and nothing else."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from trimtab.bench.floor import floor
from trimtab.bench.growth import growth
from trimtab.bench.keyed import keyed
from trimtab.cli.demo import demo, show
from trimtab.cli.tables import floor_table, growth_table, keyed_table
from trimtab.errors import TrimtabError
from trimtab.spark.session import doctor, session

errors = Console(stderr=True)
app = typer.Typer(no_args_is_help=True, add_completion=False, help="Keeps stateful PySpark streams level.")
bench = typer.Typer(no_args_is_help=True, help="Benchmarks against Spark's own ways, in one run on this machine.")
app.add_typer(bench, name="bench")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Repetitions = Annotated[int, typer.Option(min=1, help="How often every contender takes its turn.")]


def main() -> None:
    """Run the command line; an error of ours is one line and exit code 1."""
    try:
        app()
    except TrimtabError as error:
        errors.print(f"trimtab: {error}", style="red", markup=False, highlight=False)
        sys.exit(1)


@app.command("demo")
def demo_command(as_json: Json = False) -> None:
    """A skewed auction stream, embedded: throughput of Trimtab and of Spark's own operators."""
    show(demo(session(master="local[2]"), status), as_json)


@app.command("doctor")
def doctor_command(as_json: Json = False) -> None:
    """What the settings of a session made here would cost in speed or safety."""
    found = doctor(session())
    if as_json:
        print_json({"advice": found})
    else:
        typer.echo("\n".join(map(str, found)) or "All settings are well.")


@bench.command("keyed")
def keyed_command(
    as_json: Json = False,
    repetitions: Repetitions = 3,
    keys: Annotated[list[int] | None, typer.Option(min=1, help="How many keys; may be given several times.")] = None,
    quick: Annotated[bool, typer.Option(help="Fewer epochs of the slow contenders.")] = False,
) -> None:
    """A running sum per key: Trimtab, native Spark and Spark's Python operators."""
    cases = keyed(session(master="local[2]"), keys or [2_000, 50_000], repetitions, quick, status)
    if as_json:
        print_json({"bench": "keyed", "repetitions": repetitions, "cases": cases})
    else:
        Console().print(keyed_table(cases))


@bench.command("floor")
def floor_command(as_json: Json = False, repetitions: Repetitions = 5) -> None:
    """An epoch with almost no rows against an empty Python stage."""
    result = floor(session(master="local[2]"), repetitions, status)
    if as_json:
        print_json({"bench": "floor", "result": result})
    else:
        Console().print(floor_table(result))


@bench.command("growth")
def growth_command(
    as_json: Json = False,
    repetitions: Repetitions = 2,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs to measure at every size.")] = 60,
    factors: Annotated[list[int] | None, typer.Option(min=1, help="Sizes as multiples of 50,000 keys.")] = None,
) -> None:
    """Time per epoch while the state held grows and the rows per epoch stay the same."""
    result = growth(session(master="local[2]", memory="6g"), factors or [1, 10, 100], epochs, repetitions, status)
    if as_json:
        print_json({"bench": "growth", "repetitions": repetitions, "result": result})
    else:
        Console().print(growth_table(result))


def status(text: str) -> None:
    """A line on what goes on, for people: stdout stays clean."""
    errors.print(text, style="dim", markup=False, highlight=False)


def print_json(result: object) -> None:
    """One JSON object on stdout."""
    typer.echo(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
