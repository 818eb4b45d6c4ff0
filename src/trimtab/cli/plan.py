"""`trimtab plan`: planners on a problem file. Exit codes: 2 for a bad file, 3 where no feasible plan was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.table import Column, Table

from trimtab.cli.output import fail
from trimtab.errors import ProblemError
from trimtab.planners import PLANNERS
from trimtab.planners.live import Live
from trimtab.planners.metrics import missing
from trimtab.planners.plan import Answer, Infeasible, Planner
from trimtab.planners.problem import AnswerFile, answer, option_names, read_problem, with_options
from trimtab.planners.snapshot import ClusterSnapshot
from trimtab.ports import Clock, SystemClock

BAD_FILE = 2
NO_PLAN = 3
CHARTS = (".svg", ".png", ".pdf")
BY_PAIRS = ("tasklevel", "naive")
"""Planners that go through every pair of slots with traffic, spread out as it may be."""
MANY_PAIRS = 1_000_000
"""More of them than this take those planners long, and gigabytes in the end."""


class Outcome(msgspec.Struct):
    """What one planner made of a problem: its answer or what is missing, and how long it took."""

    planner: str
    seconds: float
    answer: AnswerFile | None = None
    missing: str = ""

    @property
    def feasible(self) -> bool:
        return self.answer is not None and not self.missing


def plan_file(path: Path, name: str, core: bool) -> Outcome:
    """Read a problem and have it planned; a ProblemError names the field that is wrong."""
    snapshot, options = _read(path)
    return outcome(snapshot, name, with_options(_kind(name), options), core, SystemClock())


def compare_file(path: Path, core: bool) -> list[Outcome]:
    """Every planner on one problem. Options of the file go to the planners that have them.

    A planner that refuses its options, or would take too long for the problem's size, has that as its outcome.
    """
    snapshot, options = _read(path)
    if unknown := options.keys() - set().union(*map(option_names, PLANNERS.values())):
        raise ProblemError(f"options.{min(unknown)}: no planner has such an option.")
    return [_compared(snapshot, name, options, core) for name in PLANNERS]


def _compared(snapshot: ClusterSnapshot, name: str, options: dict[str, Any], core: bool) -> Outcome:
    kind = PLANNERS[name]
    if name in BY_PAIRS and (pairs := _pairs(snapshot)) > MANY_PAIRS:
        return Outcome(name, 0.0, None, f"Left out: it goes through all {pairs} pairs of slots with traffic.")
    own = {key: value for key, value in options.items() if key in option_names(kind)}
    try:
        return outcome(snapshot, name, with_options(kind, own), core, SystemClock())
    except ProblemError as error:
        return Outcome(name, 0.0, None, str(error))


def _pairs(snapshot: ClusterSnapshot) -> int:
    """How many pairs of slots have traffic, that of whole operators spread out."""
    groups, sizes = snapshot.groups, snapshot.sizes
    return len(snapshot.traffic) + int((sizes[groups.source] * sizes[groups.target]).sum())


def outcome(snapshot: ClusterSnapshot, name: str, planner: Planner, core: bool, clock: Clock) -> Outcome:
    """One planner on one snapshot, timed; `core` leaves the live wrapper out."""
    start = clock.monotonic()
    found: Answer = (planner if core else Live(planner)).plan(snapshot)
    seconds = clock.monotonic() - start
    if isinstance(found, Infeasible):
        return Outcome(name, seconds, None, found.missing)
    return Outcome(name, seconds, answer(name, snapshot, found, seconds), missing(snapshot, found.lanes))


def check_chart(path: Path) -> None:
    """Raise a ProblemError for a chart in a format that there is none of, before anything is planned for it."""
    if path.suffix.lower() not in CHARTS:
        raise ProblemError(f"--plot {path}: its name has to end with {', '.join(CHARTS[:-1])} or {CHARTS[-1]}.")


def show_plan(found: Outcome, snapshot_path: Path, as_json: bool) -> None:
    """Print an answer and exit with the code that belongs to it."""
    if found.answer is not None:
        if as_json:
            typer.echo(msgspec.json.format(msgspec.json.encode(found.answer), indent=2).decode())
        else:
            Console().print(_plan_table(found.answer))
    if found.missing:
        fail(f"{found.planner} has no feasible plan for {snapshot_path}: {found.missing}", NO_PLAN)


def compare_table(outcomes: list[Outcome]) -> Table:
    """All planners side by side."""
    table = Table(
        Column("planner", no_wrap=True),
        "load distance",
        "max load",
        "inside lanes",
        "moves",
        "cost",
        "seconds",
        "missing",
    )
    for each in outcomes:
        figures = each.answer.metrics if each.answer else None
        cells = ["-"] * 5
        if figures is not None:
            cells = [
                f"{figures.load_distance:.2f}",
                f"{figures.max_load:.1f} %",
                f"{figures.collocation:.1%}",
                f"{figures.moves}",
                f"{figures.migration_cost:.4g}",
            ]
        table.add_row(each.planner, *cells, f"{each.seconds:.4f}", each.missing)
    return table


def draw_comparison(outcomes: list[Outcome], path: Path) -> None:
    """A chart of load distance and traffic inside lanes by planner, in the format of the file's ending."""
    from trimtab.bench.charts import chart

    answered = [each for each in outcomes if each.answer is not None]
    names = [each.planner for each in answered]
    with chart(path, columns=2) as (left, right):
        left.barh(names, [each.answer.metrics.load_distance for each in answered if each.answer])
        left.set_xlabel("load distance, points")
        right.barh(names, [100 * each.answer.metrics.collocation for each in answered if each.answer])
        right.set_xlabel("traffic inside lanes, %")


def _plan_table(found: AnswerFile) -> Table:
    table = Table("slot", "from", "to", "why", title=f"{found.planner}: {len(found.moves)} moves")
    for move in found.moves:
        table.add_row(str(move.slot), "-" if move.source is None else str(move.source), str(move.target), move.why)
    figures: dict[str, Any] = msgspec.structs.asdict(found.metrics)
    table.caption = ", ".join(f"{name.replace('_', ' ')} {_rounded(value)}" for name, value in figures.items())
    return table


def _rounded(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _read(path: Path) -> tuple[ClusterSnapshot, dict[str, Any]]:
    try:
        return read_problem(path.read_bytes())
    except OSError as error:
        raise ProblemError(f"{path}: {error.strerror}.") from error


def _kind(name: str) -> type[Planner]:
    if name not in PLANNERS:
        raise ProblemError(f"--planner {name}: there is none of this name. There are {', '.join(sorted(PLANNERS))}.")
    return PLANNERS[name]
