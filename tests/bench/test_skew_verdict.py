"""What runs come to, from runs whose course is known."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from trimtab.bench.skew import fixed, planners, spikes
from trimtab.bench.skew.cases import UNIFORM, Case, Setting
from trimtab.bench.skew.charts import draw
from trimtab.bench.skew.contenders import Contender, TimedPlanner
from trimtab.bench.skew.run import Series, series_of
from trimtab.bench.skew.source import Input, Phase
from trimtab.bench.skew.verdict import level_after, outcome, paced_after, rises, settles, slope
from trimtab.planners.hotspot import Hotspot
from trimtab.planners.plan import Plan
from trimtab.planners.snapshot import ClusterSnapshot

RATE = 100
WINDOW = 3


def run_of(load: list[float], cap: int = 300) -> Series:
    """A stream of 100 rows a second, each of whose epochs takes `load` seconds per second's worth of rows."""
    end, taken, columns = 1.0, 0, []
    for each in load:
        rows = min(int(end * RATE) - taken, cap)
        seconds = rows / RATE * each + 0.05
        end, worst = end + seconds, end + seconds - taken / RATE
        taken += rows
        columns.append((end, rows, seconds, worst - rows / RATE / 2, worst))
    ends, rows_of, seconds_of, latency, worst_of = map(list, zip(*columns, strict=True))
    return Series(ends, rows_of, seconds_of, latency, worst_of, [2.0 if each > 1 else 1.0 for each in load])


HOT, EVEN = run_of([1.6] * 20), run_of([0.8] * 200)
BALANCED = run_of([1.6] * 5 + [0.8] * 35)


def test_an_overloaded_stream_falls_behind_and_never_levels() -> None:
    assert rises(HOT) and slope(HOT, 5) > 0.3
    assert paced_after(HOT, WINDOW, EVEN.pace()) is None and level_after(HOT, WINDOW) is None


def test_a_balanced_one_is_level_from_the_epoch_on_in_which_it_is() -> None:
    assert not rises(BALANCED) and slope(BALANCED, BALANCED.end[5]) < 0
    assert level_after(BALANCED, WINDOW) == 3
    assert paced_after(BALANCED, WINDOW, EVEN.pace()) in (2, 3)
    assert BALANCED.pace(BALANCED.end[5]) > 0.95 * EVEN.pace(5.0)


def test_pace_counts_whole_epochs_after_a_moment() -> None:
    series = Series([1.0, 2.0, 4.0], [50, 100, 300], [], [], [])
    assert series.pace() == pytest.approx(400 / 3)
    assert series.pace(2.0) == 150 and series.pace(3.0) == 0


def test_a_run_settles_some_epochs_after_the_first_window_or_is_judged_by_its_end() -> None:
    assert settles(BALANCED, WINDOW, seconds=60) == BALANCED.end[WINDOW + 4]
    assert settles(HOT, 100, seconds=30) == 20


def test_latency_runs_from_arrival_to_the_end_of_the_trigger() -> None:
    def report(start: object, end: str, at: str) -> dict[str, object]:
        source = {"startOffset": start, "endOffset": end}
        return {"sources": [source], "timestamp": at, "durationMs": {"triggerExecution": 1500}}

    begin = np.datetime64("2024-01-01T00:00:00", "ms").astype(int) / 1000
    first, second = f'{{"row": 100, "begin": {begin}}}', f'{{"row": 300, "begin": {begin}}}'
    reports = [report("null", first, "2024-01-01T00:00:01.000Z"), report(first, second, "2024-01-01T00:00:03.000Z")]
    contender = Contender("any", Input(RATE, 1000, 1, (0,)), start=lambda frame, checkpoint: None)  # type: ignore[arg-type, return-value]
    series = series_of(reports, contender)
    assert (series.end, series.rows, series.worst) == ([2.5, 4.5], [100, 200], [2.5, 3.5])
    assert series.latency == [2.0, 2.5] and series.peak_load == []


def test_plans_are_timed() -> None:
    timed = TimedPlanner(Hotspot())
    assert isinstance(timed.plan(ClusterSnapshot.of(load=[1.0, 1.0], capacity=[10, 10], lane=[0, 1])), Plan)
    assert len(timed.seconds) == 1


def case_of(runs: dict[str, list[Series]]) -> Case:
    setting = Setting("made up", 3, (Phase(5), Phase(5, 80, (1,)), Phase(0)), 30, window=WINDOW)
    since = [settles(runs["on"][0], WINDOW, 30)]
    outcomes = {name: outcome(each, since, [EVEN.pace(since[0])], WINDOW) for name, each in runs.items()}
    figures = setting.lanes, setting.rate, 1000.0, 7200, setting.seconds, setting.window, setting.phases
    return Case(setting.name, setting.service.label, *figures, since, outcomes, fixed.criteria(outcomes, runs), runs)


def test_criteria_tell_a_balanced_stream_from_one_that_is_not() -> None:
    good = case_of({"off": [HOT], "on": [BALANCED], UNIFORM: [EVEN]})
    assert all(good.holds.values())
    bad = case_of({"off": [EVEN], "on": [HOT], UNIFORM: [EVEN]})
    assert not any(bad.holds.values())


def test_criteria_of_the_other_studies() -> None:
    runs = {"off": [HOT], "window 10": [HOT], "window 2": [EVEN], **{name: [EVEN] for name in planners.PLANNERS}}
    outcomes = {name: outcome(each, [0.0], [RATE], WINDOW) for name, each in {**runs, UNIFORM: [EVEN]}.items()}
    assert set(spikes.criteria_of(spikes.setting(20))(outcomes, runs).values()) == {True}
    assert len(spikes.criteria_of(spikes.setting(10))(outcomes, runs)) == 2
    assert set(planners.criteria(outcomes, runs).values()) == {True}


def test_cases_are_drawn_and_written(tmp_path: Path) -> None:
    case = case_of({"off": [HOT], "on": [BALANCED], UNIFORM: [EVEN]})
    draw([case, case], tmp_path / "skew.svg")
    assert (tmp_path / "skew.svg").read_text().startswith("<?xml")
    assert msgspec.json.decode(msgspec.json.encode(case))["holds"] == case.holds
