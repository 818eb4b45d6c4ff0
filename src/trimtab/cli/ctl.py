"""`trimtab ctl CHECKPOINT move|drain|scale|plan`: steer a flow that runs in another process."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from trimtab.cli.output import Json, fail, print_json, status
from trimtab.control.by_hand import Drain, MoveSlots, PlanNow, Request, Scale
from trimtab.control.from_outside import ask
from trimtab.ports import SystemClock, SystemRng

UNANSWERED = 4
LOOK_SECONDS = 0.2

ctl = typer.Typer(no_args_is_help=True, help="Steer a flow that runs in another process, through its checkpoint.")

Lane = Annotated[int, typer.Argument(min=0, help="The lane's number.")]
Wait = Annotated[float, typer.Option(min=0, help="Seconds to wait until the flow has answered; exit code 4 if not.")]


@ctl.callback()
def checkpoint_of(
    context: typer.Context, checkpoint: Annotated[str, typer.Argument(help="The flow's checkpoint.")]
) -> None:
    """Steer a flow that runs in another process, through its checkpoint. Requests take effect at its next epoch."""
    context.obj = checkpoint


@ctl.command("move")
def move_command(
    context: typer.Context,
    operator: Annotated[str, typer.Argument(help="The operator's name.")],
    slots: Annotated[str, typer.Argument(help="A slot, or several with commas between them.")],
    lane: Lane,
    wait: Wait = 0,
    as_json: Json = False,
) -> None:
    """Put slots of an operator on a lane."""
    try:
        numbers = tuple(map(int, slots.split(",")))
    except ValueError as error:
        raise typer.BadParameter(f"slots are numbers with commas between them, not {slots!r}") from error
    _request(context, MoveSlots(operator, numbers, lane), wait, as_json)


@ctl.command("drain")
def drain_command(context: typer.Context, lane: Lane, wait: Wait = 0, as_json: Json = False) -> None:
    """Move everything off a lane, then let it go."""
    _request(context, Drain(lane), wait, as_json)


@ctl.command("scale")
def scale_command(
    context: typer.Context,
    lanes: Annotated[int, typer.Argument(min=1, help="How many lanes there should be.")],
    wait: Wait = 0,
    as_json: Json = False,
) -> None:
    """Run on so many lanes."""
    _request(context, Scale(lanes), wait, as_json)


@ctl.command("plan")
def plan_now_command(context: typer.Context, wait: Wait = 0, as_json: Json = False) -> None:
    """Let the flow's planner plan after its next epoch."""
    _request(context, PlanNow(), wait, as_json)


def _request(context: typer.Context, request: Request, wait: float, as_json: bool) -> None:
    clock = SystemClock()
    asked = ask(context.obj, request, clock, SystemRng())
    status("Asked. It takes effect at the flow's next epoch.")
    until, answer = clock.monotonic() + wait, None
    while wait and answer is None and clock.monotonic() < until:
        time.sleep(LOOK_SECONDS)
        answer = asked.answer()
    if wait and answer is None:
        asked.withdraw()
    if as_json:
        print_json({"request": asked.identity, "epoch": answer and answer.epoch, "answer": answer and answer.why})
    elif answer is not None:
        typer.echo(f"Epoch {answer.epoch}: {answer.why}")
    if wait and answer is None:
        fail(f"No answer in {wait:g} seconds, so the request is taken back: is the flow running?", UNANSWERED)
