"""Why ALBIC moves slots, in words: for traffic, along with a set, to make room, or else to level the lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trimtab.planners.metrics import TOLERANCE, utilisation
from trimtab.planners.milp_problem import SlotSet
from trimtab.planners.plan import Plan
from trimtab.planners.snapshot import ClusterSnapshot

Pair = tuple[int, int, float]
"""Sender, receiver and the traffic between them."""


def explained(snapshot: ClusterSnapshot, plan: Plan, sets: Sequence[SlotSet], pairs: Sequence[Pair]) -> Plan:
    """A plan of balance whose sets moved as one and whose pairs were brought together, with the reasons for that.

    >>> flow = ClusterSnapshot.of(load=[2, 2, 2, 2], lane=[0, 0, 1, 1], capacity=[10, 10], traffic=[(0, 2, 5.0)])
    >>> plan = Plan(flow.lane[[0, 2, 0, 3]], "", {1: "", 2: ""})
    >>> explained(flow, plan, [SlotSet((0, 2), 0)], [(0, 2, 5.0)]).reasons
    {1: 'it makes room on lane 0 for slot 2', 2: 'it gets 5 from slot 0, now beside it'}
    """
    moved = set(plan.moved(snapshot).tolist())
    reasons = {**plan.reasons, **_making_room(snapshot, plan, sets, moved), **_along(plan, sets, moved)}
    for one, other, weight in pairs:
        texts = {
            one: f"it sends {weight:.4g} to slot {other}, now beside it",
            other: f"it gets {weight:.4g} from slot {one}, now beside it",
        }
        reasons |= {slot: why for slot, why in texts.items() if slot in moved}
    return replace(plan, reasons=reasons, detail={**plan.detail, "pairs": float(len(pairs))})


def _making_room(snapshot: ClusterSnapshot, plan: Plan, sets: Sequence[SlotSet], moved: set[int]) -> Mapping[int, str]:
    """Of the slots that leave a lane which was not above the mean, but to which a pair was pinned."""
    points = utilisation(snapshot, snapshot.lane)
    arrived: dict[int, int] = {}
    for each in sets:
        coming = [slot for slot in each.slots if slot in moved]
        if each.lane is not None and coming and points[each.lane] <= snapshot.mean * (1 + TOLERANCE):
            arrived[each.lane] = coming[0]
    leaving = {slot: int(snapshot.lane[slot]) for slot in moved}
    return {
        slot: f"it makes room on lane {lane} for slot {arrived[lane]}"
        for slot, lane in leaving.items()
        if lane in arrived
    }


def _along(plan: Plan, sets: Sequence[SlotSet], moved: set[int]) -> Mapping[int, str]:
    """Of the slots that move with others of their set."""
    reasons: dict[int, str] = {}
    for each in sets:
        going = [slot for slot in each.slots if slot in moved]
        for slot, mate in zip(going, going[1:] + going[:1], strict=True):
            along = f"it stays together with slot {mate}"
            own = plan.reasons.get(slot, plan.why)
            if slot != mate:
                reasons[slot] = along if each.lane is not None else f"{along}: {own}"
    return reasons
