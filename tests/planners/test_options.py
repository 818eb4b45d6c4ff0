"""Options of all planners: whatever stands in a file, there is an answer or a line that names the option."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trimtab.errors import ProblemError
from trimtab.planners import PLANNERS, Live, Planner
from trimtab.planners.problem import option_names, read_problem, with_options

FLOW: dict[str, Any] = {
    "operators": ["a", "b"],
    "slots": [{"op": slot % 2, "load": 3.0 + slot, "state": 1.0, "lane": 0} for slot in range(6)],
    "groups": [{"from": 0, "to": 1, "traffic": 9.0}],
    "traffic": [[0, 1, 2.0], [2, 3, 4.0]],
    "lanes": [{"capacity": 20.0}, {"capacity": 30.0}, {"capacity": 20.0, "draining": True}],
}
ODD = [-1, 0, 1, 0.5, 10**20, -(10**20), 1e300, -1e300, 1e-300, float("inf"), float("nan"), None, True, "x", []]


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("name", PLANNERS)
def test_odd_options_are_taken_or_refused_by_name(name: str) -> None:
    for option in sorted(option_names(PLANNERS[name])):
        for value in ODD:
            snapshot, options = read_problem(json.dumps(FLOW | {"options": {option: value}}))
            found = planner_or_refusal(name, options)
            if isinstance(found, str):
                assert found.startswith(f"options.{option}"), found
            else:
                Live(found).plan(snapshot)


def planner_or_refusal(name: str, options: dict[str, Any]) -> Planner | str:
    try:
        return with_options(PLANNERS[name], options)
    except ProblemError as error:
        return str(error)


@pytest.mark.parametrize("limits", [{"max_moves": 2**62}, {"max_migration": 1e300}, {"max_load_distance": 0}])
def test_every_planner_takes_any_limits(limits: dict[str, float]) -> None:
    snapshot, _ = read_problem(json.dumps(FLOW | {"limits": limits}))
    for kind in PLANNERS.values():
        Live(kind()).plan(snapshot)
