"""The plan problem file: JSON that `trimtab plan` reads, and the answer it prints.

A file that makes no sense raises a ProblemError that begins with the field which is wrong.
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Annotated, Any

import msgspec
import numpy as np

from trimtab.errors import ProblemError
from trimtab.planners.metrics import Metrics, measure
from trimtab.planners.plan import Plan, Planner, SlotMove
from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Limits, Traffic, check

Whole = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
"""A number that fits an array; whether it makes sense is looked at later."""


class SlotEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A slot: its operator, load, cost of moving, and lane if it has one."""

    op: Whole
    load: float
    state: float = 0.0
    lane: Whole | None = None


class GroupEntry(msgspec.Struct, forbid_unknown_fields=True):
    """Traffic between all slots of two operators."""

    source: Whole = msgspec.field(name="from")
    target: Whole = msgspec.field(name="to")
    traffic: float


class LaneEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A lane."""

    capacity: float
    draining: bool = False
    host: str = ""


class LimitEntry(msgspec.Struct, forbid_unknown_fields=True):
    """What a plan may cost."""

    max_migration: float | None = None
    max_moves: Whole | None = None
    max_load_distance: float = 5.0


class ProblemFile(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    operators: list[str]
    slots: list[SlotEntry]
    lanes: list[LaneEntry]
    groups: list[GroupEntry] = []
    traffic: list[tuple[Whole, Whole, float]] = []
    limits: LimitEntry = msgspec.field(default_factory=LimitEntry)
    options: dict[str, Any] = {}
    window: list[list[float]] = []


class AnswerFile(msgspec.Struct):
    """What `trimtab plan` prints."""

    planner: str
    lanes: list[int]
    moves: list[SlotMove]
    metrics: Metrics
    seconds: float
    detail: dict[str, float] = {}


def read_problem(data: bytes | str) -> tuple[ClusterSnapshot, dict[str, Any]]:
    """The snapshot and the options in a problem file.

    >>> text = '{"operators": ["a"], "slots": [{"op": 0, "load": 4}], "lanes": [{"capacity": 9}]}'
    >>> snapshot, options = read_problem(text)
    >>> len(snapshot), snapshot.lane.tolist(), options
    (1, [-1], {})
    >>> read_problem(text.replace("4", '"much"'))
    Traceback (most recent call last):
        ...
    trimtab.errors.ProblemError: slots[0].load: Expected `float`, got `str`.
    """
    file = _decoded(data)
    if len(set(file.operators)) < len(file.operators):
        raise ProblemError("operators: two of them have the same name.")
    snapshot = _snapshot(file)
    check(snapshot)
    return snapshot, file.options


def with_options(kind: type[Planner], options: dict[str, Any]) -> Planner:
    """A planner of a kind with options by name."""
    known = option_names(kind)
    if unknown := sorted(options.keys() - known):
        allowed = ", ".join(sorted(known)) or "none"
        raise ProblemError(f"options.{unknown[0]}: {kind.__name__} has no such option. It has: {allowed}.")
    try:
        return msgspec.convert(options, type=kind)
    except msgspec.ValidationError as error:
        raise ProblemError(_field_first(str(error), "options")) from error


def option_names(kind: type[Planner]) -> set[str]:
    """The options that planners of a kind have."""
    return {each.name for each in dataclasses.fields(kind)}  # type: ignore[arg-type]  # planners are dataclasses


def answer(name: str, snapshot: ClusterSnapshot, plan: Plan, seconds: float) -> AnswerFile:
    """The plan in the form of the answer."""
    moves = list(plan.moves(snapshot))
    return AnswerFile(name, plan.lanes.tolist(), moves, measure(snapshot, plan.lanes), seconds, dict(plan.detail))


def _decoded(data: bytes | str) -> ProblemFile:
    try:
        return _strict_or_lax(data)
    except msgspec.ValidationError as error:
        raise ProblemError(_field_first(str(error))) from error
    except ValueError as error:
        raise ProblemError(f"The file is not JSON: {error}.") from error


def _strict_or_lax(data: bytes | str) -> ProblemFile:
    """Numbers that JSON has no words for are read too, so that what is wrong with them is said by their field."""
    try:
        return msgspec.json.decode(data, type=ProblemFile)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(data), ProblemFile)


def _snapshot(file: ProblemFile) -> ClusterSnapshot:
    for number, slot in enumerate(file.slots):
        if slot.lane is not None and slot.lane < 0:
            raise ProblemError(f"slots[{number}].lane is {slot.lane}: say null for a slot that has no lane yet.")
    if any(len(loads) != len(file.slots) for loads in file.window):
        raise ProblemError(f"window: every epoch in it needs one load for each of the {len(file.slots)} slots.")
    return ClusterSnapshot(
        operators=tuple(file.operators),
        operator=np.array([slot.op for slot in file.slots], np.int64),
        loads=np.array([slot.load for slot in file.slots], np.float64).reshape(-1, 1),
        state=np.array([slot.state for slot in file.slots], np.float64),
        lane=np.array([UNPLACED if slot.lane is None else slot.lane for slot in file.slots], np.int64),
        capacity=np.array([lane.capacity for lane in file.lanes], np.float64),
        draining=np.array([lane.draining for lane in file.lanes], np.bool_),
        hosts=tuple(lane.host for lane in file.lanes),
        traffic=Traffic.of(file.traffic),
        groups=Traffic.of([(each.source, each.target, each.traffic) for each in file.groups]),
        window=np.array(file.window, np.float64).reshape(len(file.window), len(file.slots)),
        limits=Limits(file.limits.max_migration, file.limits.max_moves, file.limits.max_load_distance),
    )


def _field_first(message: str, root: str = "") -> str:
    """msgspec's message with the field in front of it.

    >>> _field_first("Expected `int`, got `str` - at `$.slots[0].op`")
    'slots[0].op: Expected `int`, got `str`.'
    """
    match = re.fullmatch(r"(.*) - at `(?:key in )?\$\.?(.*)`", message)
    if match is None:
        return f"{root or 'The file'}: {message}."
    return f"{'.'.join(filter(None, (root, match[2])))}: {match[1]}."
