"""Every planner passes the same checks, by itself and inside the live wrapper."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from trimtab.planners import PLANNERS, Answer, ClusterSnapshot, Even, Infeasible, Optimal, Plan, Planner
from trimtab.planners.checks import CHECKS, Check, running_stream, solved_problems, yield_checks
from trimtab.planners.metrics import measure


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


def failing(planner: Planner) -> set[str]:
    """The names of the checks that a planner fails."""
    failed = set()
    for check in yield_checks(planner):
        try:
            check()
        except AssertionError:
            failed.add(check.func.__name__)  # type: ignore[attr-defined]  # they are partials
    return failed


def test_the_checks_find_a_careless_planner() -> None:
    found = failing(Careless())
    assert {"changes_nothing_it_is_given", "answers_alike_twice", "places_every_slot_once"} <= found


class Boastful(Even):
    """Deals slots out by number, and says that it minds capacities."""

    keeps_capacity: ClassVar[bool] = True


def test_capacities_are_checked_where_a_planner_says_that_it_keeps_them() -> None:
    assert failing(Boastful()) == {"keeps_capacities_if_it_says_so"}
    assert not failing(Even())


def test_planners_that_are_documented_to_keep_capacities_say_so() -> None:
    named = {name for name, kind in PLANNERS.items() if getattr(kind(), "keeps_capacity", False)}
    assert named == {"topdown", "tasklevel", "naive", "rebalance", "optimal"}
    assert not Optimal("balance").keeps_capacity


class Silent(Even):
    """Refuses, and says nothing."""

    def plan(self, snapshot: ClusterSnapshot) -> Answer:
        return Infeasible("")


def test_a_refusal_without_a_reason_is_found() -> None:
    assert "says_what_is_missing" in failing(Silent())


def test_solved_problems_are_solved_and_streams_are_in_the_midst_of_things() -> None:
    for snapshot in solved_problems().values():
        figures = measure(snapshot, snapshot.lane)
        assert (figures.traffic_between_lanes, figures.load_distance) == (0, pytest.approx(0))
    for seed in range(3):
        stream = running_stream(seed)
        assert stream.draining[stream.lane[stream.placed]].any()
        assert not stream.placed.all()
        assert (stream.state % 1 > 0).any()
