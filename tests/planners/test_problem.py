"""Problem files and snapshots: what is read, and what is refused by the name of its field."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from trimtab.errors import ProblemError
from trimtab.planners.metrics import imc_gain, load_distance, measure, missing
from trimtab.planners.plan import Plan
from trimtab.planners.problem import answer, read_problem
from trimtab.planners.snapshot import ClusterSnapshot, Limits, combine

GOOD: dict[str, Any] = {
    "operators": ["v1", "v2"],
    "slots": [{"op": 0, "load": 4.0, "state": 1.0, "lane": 1}, {"op": 1, "load": 2.0, "state": 3.0, "lane": None}],
    "groups": [{"from": 0, "to": 1, "traffic": 100.0}],
    "traffic": [[0, 1, 12.5]],
    "lanes": [{"capacity": 100.0, "draining": False, "host": "a"}, {"capacity": 50}],
    "limits": {"max_migration": 10.0, "max_load_distance": 5.0},
    "options": {"objective": "balance"},
}


def changed(path: str, value: Any) -> str:
    """The good problem with one thing changed; a path like "slots/0/load"."""
    problem = json.loads(json.dumps(GOOD))
    *way, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    inner = problem
    for part in way:
        inner = inner[part]
    inner[last] = value
    return json.dumps(problem)


def test_a_file_says_all_that_a_snapshot_holds() -> None:
    snapshot, options = read_problem(json.dumps(GOOD))
    assert snapshot.operators == ("v1", "v2")
    assert snapshot.load.tolist() == [4.0, 2.0]
    assert snapshot.lane.tolist() == [1, -1]
    assert snapshot.capacity.tolist() == [100.0, 50.0]
    assert snapshot.total_traffic == 112.5
    assert snapshot.limits == Limits(10.0, None, 5.0)
    assert options == {"objective": "balance"}


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("slots/0/load", "much", "slots[0].load"),
        ("slots/0/load", -1, "slots[0].load"),
        ("slots/1/state", -0.5, "slots[1].state"),
        ("slots/1/op", 2, "slots[1].op"),
        ("slots/1/op", -1, "slots[1].op"),
        ("slots/0/lane", 2, "slots[0].lane"),
        ("slots/0/lane", -1, "slots[0].lane"),
        ("slots/0/weight", 1, "slots[0]"),
        ("lanes", [], "lanes"),
        ("lanes/1/capacity", 0, "lanes[1].capacity"),
        ("lanes/1/capacity", None, "lanes[1].capacity"),
        ("groups/0/to", 5, "groups[0].to"),
        ("groups/0/to", 0, "groups[0]"),
        ("groups", [GOOD["groups"][0]] * 2, "groups[1]"),
        ("traffic", [[0, 1, 1.0], [0, 1, 2.0]], "traffic[1]"),
        ("traffic", [[0, 7, 1.0]], "traffic[0].to"),
        ("traffic", [[0, 1, -1.0]], "traffic[0].traffic"),
        ("traffic", [[1, 1, 1.0]], "traffic[0]"),
        ("limits/max_migration", -1, "limits.max_migration"),
        ("window", [[1.0]], "window"),
        ("slots/1/load", np.nan, "slots[1].load"),
        ("lanes/0/capacity", np.inf, "lanes[0].capacity"),
        ("traffic", [[0, 1, -np.inf]], "traffic[0].traffic"),
        ("limits/max_migration", np.nan, "limits.max_migration"),
        ("window", [[1.0, np.nan]], "window"),
        ("slots/1/op", 10**20, "slots[1].op"),
        ("slots/1/lane", 1e20, "slots[1].lane"),
        ("groups/0/to", -(10**30), "groups[0].to"),
        ("traffic", [[0, 1e20, 1.0]], "traffic[0][1]"),
        ("limits/max_moves", 10**20, "limits.max_moves"),
        ("operators", ["same", "same"], "operators"),
        ("operators", "v1", "operators"),
    ],
)
def test_a_bad_field_is_named_first(path: str, value: Any, field: str) -> None:
    with pytest.raises(ProblemError) as error:
        read_problem(changed(path, value))
    assert str(error.value).startswith(field), str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"operators": []}', '{"slots": nan}'])
def test_what_is_no_problem_at_all_is_refused(text: str) -> None:
    with pytest.raises(ProblemError, match="file"):
        read_problem(text)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_refused_by_field(value: float) -> None:
    with pytest.raises(ProblemError, match=r"slots\[1\]\.load"):
        ClusterSnapshot.of(load=[1, value], capacity=[1])
    with pytest.raises(ProblemError, match=r"lanes\[0\]\.capacity"):
        ClusterSnapshot.of(load=[1], capacity=[value])
    with pytest.raises(ProblemError, match=r"groups\[0\]\.traffic"):
        ClusterSnapshot.of(load=[1, 1], operator=[0, 1], capacity=[1], groups=[(0, 1, value)])


def test_an_answer_has_the_moves_with_reasons_and_the_figures() -> None:
    snapshot, _ = read_problem(json.dumps(GOOD))
    found = answer("mine", snapshot, Plan(np.array([0, 0]), "all in one place"), 0.5)
    assert [(move.slot, move.source, move.target, move.why) for move in found.moves] == [
        (0, 1, 0, "all in one place"),
        (1, None, 0, "all in one place"),
    ]
    assert found.metrics.imc_gain == 112.5
    assert found.metrics.collocation == 1.0
    assert found.metrics.migration_cost == 1.0
    assert found.metrics.feasible


def test_load_distance_leaves_draining_lanes_out_and_scales_with_capacity() -> None:
    snapshot = ClusterSnapshot.of(load=[30, 10, 8], capacity=[100, 50, 100], draining=[False, False, True])
    # 48 of 150 is 32 %; the lanes carry 30 % and 36 %.
    assert load_distance(snapshot, np.array([0, 1, 1])) == pytest.approx(4.0)


def test_group_traffic_counts_as_if_spread_over_all_pairs() -> None:
    snapshot = ClusterSnapshot.of(
        load=[1] * 5, operator=[0, 0, 1, 1, 1], capacity=[9] * 2, groups=[(0, 1, 12.0)], traffic=[(0, 2, 3.0)]
    )
    lanes = np.array([0, 1, 0, 0, 1])
    pairs = snapshot.pairs
    spread_out = float(pairs.weight[lanes[pairs.source] == lanes[pairs.target]].sum())
    assert imc_gain(snapshot, lanes) == pytest.approx(spread_out)
    assert snapshot.total_traffic == pytest.approx(15.0)
    assert measure(snapshot, lanes).traffic_between_lanes == pytest.approx(15.0 - spread_out)


def test_what_a_placement_lacks_is_said_in_a_sentence() -> None:
    snapshot = ClusterSnapshot.of(
        load=[6, 6], state=[1, 1], lane=[0, 1], capacity=[10, 10, 10], draining=[False, False, True]
    )
    assert missing(snapshot, np.array([0, 1])) == ""
    assert "Lane 0 would carry 12 with a capacity of 10: 2 is missing." in missing(snapshot, np.array([0, 0]))
    assert "Slot 1 is left on lane 2, which is draining." in missing(snapshot, np.array([0, 2]))
    assert "limits.max_moves is 0" in missing(snapshot.within(Limits(max_moves=0)), np.array([1, 0]))
    assert not measure(snapshot, np.array([0, 0])).feasible


def test_flows_on_the_same_lanes_make_one_problem() -> None:
    one = ClusterSnapshot.of(load=[1, 2], operator=[0, 1], lane=[0, 1], capacity=[9, 9], groups=[(0, 1, 5.0)])
    other = ClusterSnapshot.of(load=[3, 4], lane=[1, 1], capacity=[9, 9], traffic=[(0, 1, 2.0)])
    both = combine([one, other])
    assert both.load.tolist() == [1, 2, 3, 4]
    assert both.operator.tolist() == [0, 1, 2, 2]
    lanes = np.array([0, 0, 1, 1])
    assert imc_gain(both, lanes) == imc_gain(one, lanes[:2]) + imc_gain(other, lanes[2:])
    with pytest.raises(ProblemError, match="lanes"):
        combine([one, ClusterSnapshot.of(load=[1], capacity=[5])])
