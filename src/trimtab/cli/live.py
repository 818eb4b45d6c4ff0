"""`trimtab bench skew`, `move` and `measuring`: what live control does to a stream, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from trimtab.bench.figures import Figure
from trimtab.bench.measuring import ROWS, MeasuringResult, measuring
from trimtab.bench.move import MoveResult, draw, move
from trimtab.bench.skew.cases import Case
from trimtab.bench.skew.studies import STUDIES, TASK_SLOTS, skew
from trimtab.cli.output import Json, print_json, status
from trimtab.spark.session import session

Charts = Annotated[Path | None, typer.Option(help="A folder for charts.")]
Quick = Annotated[bool, typer.Option(help="Small sizes and short runs, to see whether all works.")]
Repetitions = Annotated[int, typer.Option(min=1, help="How often every contender takes its turn.")]


def skew_command(
    as_json: Json = False,
    study: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(STUDIES)}; several may be given.")] = None,
    repetitions: Repetitions = 1,
    quick: Quick = False,
    charts: Charts = None,
) -> None:
    """Skewed streams with balancing off and on, and as plain Spark does it (AutoFlow, Fig. 5 to 7)."""
    if unknown := set(study or ()) - STUDIES.keys():
        raise typer.BadParameter(f"there is no study {min(unknown)!r}", param_hint="--study")
    spark = session(master=f"local[{TASK_SLOTS}]")
    results = skew(spark, study or STUDIES, repetitions, quick, charts, status)
    if as_json:
        print_json({"bench": "skew", "quick": quick, "repetitions": repetitions, "studies": results})
        return
    for cases in results.values():
        for case in cases:
            Console().print(case_table(case))


def move_command(
    as_json: Json = False,
    keys: Annotated[int, typer.Option(min=1, help="Keys held.")] = 2_000_000,
    turns: Annotated[int, typer.Option(min=1, help="How often each share of the state moves in a run.")] = 12,
    repetitions: Repetitions = 2,
    quick: Quick = False,
    charts: Charts = None,
) -> None:
    """Epochs that move 1, 10 and 50 % of a large state against those that move nothing."""
    held, often, runs = (100_000, 2, 1) if quick else (keys, turns, repetitions)
    result = move(session(master="local[2]", memory="6g"), held, often, runs, status)
    if charts is not None:
        draw(result, charts / "move.svg")
    if as_json:
        print_json({"bench": "move", "quick": quick, "repetitions": runs, "result": result})
    else:
        Console().print(move_table(result))


def measuring_command(as_json: Json = False, repetitions: Repetitions = 40, quick: Quick = False) -> None:
    """What measuring adds to an epoch."""
    rows, often, epochs = (50_000, 5, 4) if quick else (ROWS, repetitions, 20)
    result = measuring(session(master="local[2]"), rows, often, epochs, status)
    if as_json:
        print_json({"bench": "measuring", "quick": quick, "repetitions": often, "result": result})
    else:
        Console().print(measuring_table(result))


def case_table(case: Case) -> Table:
    """Contenders by what became of throughput, latency and lanes."""
    settled = ", ".join(f"{since:.0f}" for since in case.since)
    table = Table(
        "", "rows/s", "epoch, s", "p95", "p99", title=f"{case.name}, {case.rate:,} rows/s come: {case.service}"
    )
    for column in (
        "peak latency, s",
        "at the end",
        "gained per s",
        "busiest lane",
        "moves",
        "paced after",
        "level after",
    ):
        table.add_column(column)
    for name, each in case.outcomes.items():
        figures = each.throughput, each.epoch_seconds, each.epoch_p95, each.epoch_p99, each.latency_peak
        more = each.latency_end, each.slope, each.busiest_lane or "", each.moves, each.paced_after, each.level_after
        table.add_row(name, *map(brief, (*figures, *more)))
    table.caption = f"since second {settled}; epochs after the first full window\n" + "\n".join(verdicts(case.holds))
    return table


def move_table(result: MoveResult) -> Table:
    """Shares of the state by what their moves did to epochs."""
    table = Table("moves", "slots", "seconds", "ratio", "the epoch after", "ratio")
    table.add_row("nothing", "", str(result.quiet), "1", "", "")
    for case in result.cases:
        after = str(case.next_seconds), str(case.next_ratio)
        table.add_row(f"{case.share:.0%}", str(case.slots), str(case.seconds), str(case.ratio), *after)
    table.title = f"{result.keys:,} keys, {result.state_bytes / 1e6:,.0f} MB of state"
    table.caption = "\n".join(verdicts(result.holds))
    return table


def measuring_table(result: MeasuringResult) -> Table:
    """Both kinds of operator by what measuring adds."""
    table = Table("", "with", "without", "counting rows", "adds, s", "share of the epoch")
    for name, cost in result.tasks.items():
        figures = cost.measured, cost.unmeasured, cost.counting
        table.add_row(name, *map(brief, figures), f"{cost.added:.4f}", f"{result.share[name]:.1%}")
    for step, seconds in result.driver.items():
        table.add_row(f"driver: {step}", "", "", "", f"{seconds:.4f}", "")
    table.title = f"{result.rows:,} rows of {result.keys:,} keys; an epoch takes {result.epoch}"
    table.caption = "\n".join(verdicts(result.holds))
    return table


def brief(value: Figure | float | str | Sequence[int | None]) -> str:
    """A cell; what never came about is a dash.

    >>> brief([3, None])
    '3, –'
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join("–" if each is None else str(each) for each in value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def verdicts(holds: Mapping[str, bool]) -> Iterator[str]:
    """What was asked for, and whether it is so."""
    return (f"{'yes' if true else 'NO'}: {what}" for what, true in holds.items())
