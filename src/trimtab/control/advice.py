"""Advice where balancing cannot help: a slot that alone is more than a lane's fair share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trimtab.control.measure import Window
from trimtab.lane.hottest import Frequent
from trimtab.planners.snapshot import ClusterSnapshot
from trimtab.vocab import OperatorId, SlotId

NAMED = 3
ALONE = 0.5
"""A key with this share of its slot's rows is what makes the slot hot."""

Place = tuple[OperatorId, SlotId]


def advice(window: Window, snapshot: ClusterSnapshot) -> Iterator[tuple[Place, str]]:
    """Slots that no placement can make fit, and what would help each."""
    fair = snapshot.total / max(snapshot.staying.size, 1)
    if snapshot.staying.size < 2 or not snapshot.total:
        return
    for number in np.flatnonzero(snapshot.load > fair * (1 + 1e-9)).tolist():
        operator = int(snapshot.operator[number])
        slot = number - int(window.layout.starts[operator])
        share = snapshot.load[number] / fair
        name = window.layout.operators[operator]
        yield (
            (operator, slot),
            f"Slot {slot} of operator '{name}' alone has {share:.1f} times a lane's fair share, so no placement levels "
            f"the lanes. {_remedy(window, operator, slot)}",
        )


def _remedy(window: Window, operator: OperatorId, slot: SlotId) -> str:
    keys, rows = hot_keys(window, operator, slot), _rows(window, operator, slot)
    if not keys:
        return "Start with more slots on a new checkpoint, so that its keys spread."
    named = ", ".join(f"{key} ({100 * count / rows:.0f} %)" for key, count in keys)
    if keys[0][1] < ALONE * rows:
        return f"Its hottest keys are {named}: with more slots, on a new checkpoint, they would spread."
    return (
        f"Its hottest keys are {named}. A key is never split: use aggregate(), which combines its rows before they "
        "travel, or add a column to the key that divides its rows, and bring the parts together behind it."
    )


def hot_keys(window: Window, operator: OperatorId, slot: SlotId) -> list[tuple[str, int]]:
    """The most frequent keys of a slot in the window with about how many rows each had."""
    summary = Frequent()
    for measure in window.measures:
        for hot in measure.hot:
            if (hot.operator, hot.slot) == (operator, slot):
                summary.add({hot.key: hot.rows})
    return summary.top(NAMED)


def _rows(window: Window, operator: OperatorId, slot: SlotId) -> int:
    total = 0
    for measure in window.measures:
        for each in measure.slots:
            if each.operator == operator and slot in each.slots:
                total += each.work[each.slots.index(slot)]
    return max(total, 1)
