"""`trimtab plan` as a user meets it: answers, exit codes, one line per error."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from trimtab.cli.app import main

PROBLEM: dict[str, Any] = {
    "operators": ["v1", "v2"],
    "slots": [{"op": 0, "load": 4.0, "state": 1.0, "lane": 0}, {"op": 1, "load": 2.0, "state": 1.0, "lane": 0}],
    "groups": [{"from": 0, "to": 1, "traffic": 10.0}],
    "lanes": [{"capacity": 10.0}, {"capacity": 10.0}],
}


class Outcome(NamedTuple):
    """What a user sees."""

    returncode: int | str | None
    stdout: str
    stderr: str


Trimtab = Callable[..., Outcome]


@pytest.fixture
def trimtab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Trimtab:
    """Plans a problem by the command line, in this process: another one takes a second to start."""

    def run(problem: object, *arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["trimtab", "plan", written(tmp_path, problem), *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return Outcome(end.value.code or 0, *capsys.readouterr())

    return run


def written(folder: Path, problem: object) -> str:
    file = folder / "problem.json"
    file.write_text(problem if isinstance(problem, str) else json.dumps(problem))
    return str(file)


def test_a_plan_as_json_is_one_object_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trimtab.cli", "plan", written(tmp_path, PROBLEM), "--planner", "milp", "--json"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    answer = json.loads(found.stdout)
    assert answer["planner"] == "milp"
    assert sorted(answer["lanes"]) == [0, 1]
    (move,) = answer["moves"]
    assert (move["from"], move["to"]) == (0, 1) and move["why"]
    assert answer["metrics"]["load_distance"] == pytest.approx(10.0)
    assert answer["metrics"]["feasible"] is True
    assert answer["seconds"] > 0


def test_a_bad_file_is_exit_code_2_and_a_line_that_names_the_field(trimtab: Trimtab) -> None:
    found = trimtab(PROBLEM | {"lanes": [{"capacity": -1}]}, "--json")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "trimtab: lanes[0].capacity is -1.0: it has to be a finite number, 0 or more.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--planner", "nobody"], "--planner nobody"), (["--planner", "hotspot"], "options.windows")],
)
def test_unknown_planners_and_options_are_named(trimtab: Trimtab, arguments: list[str], message: str) -> None:
    found = trimtab(PROBLEM | {"options": {"windows": 3}}, *arguments)
    assert found.returncode == 2
    assert found.stderr.startswith(f"trimtab: {message}") and found.stderr.count("\n") == 1


@pytest.mark.parametrize("planner", ["topdown", "auto"])
def test_no_feasible_plan_is_exit_code_3_and_what_is_missing(trimtab: Trimtab, planner: str) -> None:
    slots = [{"op": 0, "load": 40.0}, {"op": 1, "load": 2.0}]
    found = trimtab(PROBLEM | {"slots": slots}, "--planner", planner, "--json")
    assert found.returncode == 3
    assert "40" in found.stderr and found.stderr.count("\n") == 1


@pytest.mark.parametrize("planner", ["auto", "bootstrap", "rebalance", "tasklevel", "milp", "albic", "potc", "cola"])
def test_a_seed_that_is_none_is_named(trimtab: Trimtab, planner: str) -> None:
    found = trimtab(PROBLEM | {"options": {"seed": -1}}, "--planner", planner)
    assert (found.returncode, found.stderr) == (2, "trimtab: options.seed is -1: it has to be 0 or more.\n")


def test_options_that_are_wrong_cost_only_their_own_planners_the_comparison(trimtab: Trimtab) -> None:
    found = trimtab(PROBLEM | {"options": {"seed": -1, "time_limit": -1}}, "--compare", "--json")
    assert found.returncode == 0
    missing = {each["planner"]: each["missing"] for each in json.loads(found.stdout)["planners"]}
    assert {name for name, text in missing.items() if text.startswith("options.")} == {
        *("auto", "bootstrap", "rebalance", "tasklevel", "milp", "albic", "potc", "cola")
    }
    assert missing["topdown"] == missing["even"] == ""


def test_a_comparison_without_any_feasible_plan_is_exit_code_3(trimtab: Trimtab) -> None:
    found = trimtab(PROBLEM | {"slots": [{"op": 0, "load": 40.0}, {"op": 1, "load": 2.0}]}, "--compare", "--json")
    assert found.returncode == 3
    assert found.stderr.startswith("trimtab: no planner has a feasible plan for")
    assert all(each["missing"] for each in json.loads(found.stdout)["planners"])


def test_planners_that_go_through_all_pairs_are_left_out_of_large_comparisons(
    trimtab: Trimtab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.cli.plan.MANY_PAIRS", 0)
    found = trimtab(PROBLEM, "--compare", "--json")
    outcomes = {each["planner"]: each for each in json.loads(found.stdout)["planners"]}
    assert outcomes["naive"]["missing"] == "Left out: it goes through all 1 pairs of slots with traffic."
    assert outcomes["tasklevel"]["answer"] is None and outcomes["topdown"]["answer"] is not None


def test_a_chart_of_unknown_format_is_refused_before_anything_is_planned(trimtab: Trimtab) -> None:
    found = trimtab(PROBLEM, "--compare", "--plot", "chart.txt")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "trimtab: --plot chart.txt: its name has to end with .svg, .png or .pdf.\n"


def test_all_planners_side_by_side_with_a_chart(trimtab: Trimtab, tmp_path: Path) -> None:
    chart = tmp_path / "charts" / "compared.svg"
    found = trimtab(PROBLEM, "--compare", "--plot", str(chart))
    assert found.returncode == 0, found.stderr
    for planner in ("milp", "topdown", "hotspot", "auto", "optimal"):
        assert planner in found.stdout
    assert "load distance" in chart.read_text()
