"""`trimtab`: the commands. With `--json` a command prints one JSON object on stdout and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from trimtab.bench.floor import floor
from trimtab.bench.growth import growth
from trimtab.bench.keyed import keyed
from trimtab.bench.planning import STUDIES, planning
from trimtab.cli.ctl import ctl
from trimtab.cli.demo import demo, show
from trimtab.cli.live import measuring_command, move_command, skew_command
from trimtab.cli.output import Json, errors, fail, print_json, status
from trimtab.cli.plan import (
    BAD_FILE,
    NO_PLAN,
    check_chart,
    compare_file,
    compare_table,
    draw_comparison,
    plan_file,
    show_plan,
)
from trimtab.cli.tables import floor_table, growth_table, keyed_table
from trimtab.errors import ProblemError, TrimtabError
from trimtab.spark.session import doctor, session

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Keeps stateful PySpark streams level.")
bench = typer.Typer(no_args_is_help=True, help="Benchmarks against Spark's own ways, in one run on this machine.")
app.add_typer(bench, name="bench")
app.add_typer(ctl, name="ctl")
bench.command("skew")(skew_command)
bench.command("move")(move_command)
bench.command("measuring")(measuring_command)

Repetitions = Annotated[int, typer.Option(min=1, help="How often every contender takes its turn.")]


def main() -> None:
    """Run the command line; an error of ours is one line and exit code 1, or 2 for a problem file that is wrong."""
    try:
        app()
    except ProblemError as error:
        fail(str(error), BAD_FILE)
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


@app.command("plan")
def plan_command(
    file: Annotated[Path, typer.Argument(help="A plan problem in JSON; docs/planners.md says what is in it.")],
    planner: Annotated[str, typer.Option(help="Whose plan; see docs/planners.md.")] = "auto",
    compare: Annotated[bool, typer.Option("--compare", help="Every planner on the same problem, in a table.")] = False,
    plot: Annotated[Path | None, typer.Option(help="With --compare: a chart, as SVG, PNG or PDF.")] = None,
    core: Annotated[bool, typer.Option("--core", help="The algorithm alone, without the live wrapper.")] = False,
    as_json: Json = False,
) -> None:
    """Plan a problem file: exit code 2 for a bad file, 3 where there is no feasible plan."""
    if plot is not None and not compare:
        raise typer.BadParameter("a chart is drawn with --compare only", param_hint="--plot")
    if plot is not None:
        check_chart(plot)
    if not compare:
        show_plan(plan_file(file, planner, core), file, as_json)
        return
    outcomes = compare_file(file, core)
    if plot is not None:
        draw_comparison(outcomes, plot)
    if as_json:
        print_json({"file": str(file), "planners": outcomes})
    else:
        Console().print(compare_table(outcomes))
    if not any(each.feasible for each in outcomes):
        fail(f"no planner has a feasible plan for {file}", NO_PLAN)


@bench.command("planners")
def planners_command(
    as_json: Json = False,
    study: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(STUDIES)}; several may be given.")] = None,
    quick: Annotated[bool, typer.Option(help="Small sizes, to see whether all works.")] = False,
    charts: Annotated[Path | None, typer.Option(help="A folder for one chart per study.")] = None,
) -> None:
    """The papers' figures and beyond: quality and speed of the planners."""
    if unknown := set(study or ()) - STUDIES.keys():
        raise typer.BadParameter(f"there is no study {min(unknown)!r}", param_hint="--study")
    results = planning(study or STUDIES, quick, charts, status)
    if as_json:
        print_json({"bench": "planners", "quick": quick, "studies": results})
    else:
        Console().print(msgspec.to_builtins(results))


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
