"""Every planner passes the same checks, by itself and inside the live wrapper."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.planners import PLANNERS, ClusterSnapshot, Plan
from trimtab.planners.checks import CHECKS, Check, yield_checks


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", PLANNERS)
def test_every_planner_passes(name: str, check: Check) -> None:
    check(PLANNERS[name]())


class Careless:
    """Breaks what it can: writes to the snapshot, leaves slots out, says nothing."""

    def __init__(self) -> None:
        self.calls = 0

    def plan(self, snapshot: ClusterSnapshot) -> Plan:
        self.calls += 1
        snapshot.lane[:1] = 0
        return Plan(np.full(len(snapshot), self.calls % 2 - 1), "")


def test_the_checks_find_a_careless_planner() -> None:
    failed = set()
    for check in yield_checks(Careless()):
        try:
            check()
        except AssertionError:
            failed.add(check.func.__name__)  # type: ignore[attr-defined]  # they are partials
    assert {"changes_nothing_it_is_given", "answers_alike_twice", "places_every_slot_once"} <= failed
