"""What control keeps in a checkpoint: it outlives the run, stays small, and does no harm when it is damaged."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.control.flows import Flow, HandClock
from tests.control.test_loop import flow
from tests.state.doubles import MemoryStore, make_claim, make_commit, open_checkpoint

from trimtab.control import log
from trimtab.control.background import Background
from trimtab.control.by_hand import Drain, MoveSlots, Scale
from trimtab.control.events import Event
from trimtab.control.from_outside import ask
from trimtab.control.history import History
from trimtab.control.log import ControlLog, RequestRecord, put_request, read_events, read_measures
from trimtab.errors import CheckpointError, FencedError, FlowError
from trimtab.planners import Hotspot
from trimtab.ports import ObjectStore, SystemRng
from trimtab.state.store import LocalStore
from trimtab.vocab import ControlMessage, Measure, Move


def served(run: Flow, store: MemoryStore, term: int = 1) -> Background:
    return Background(run.controller, log_of(store, term), run.clock)


def log_of(store: ObjectStore, term: int = 1, check_term: Callable[[str], None] = lambda step: None) -> ControlLog:
    return ControlLog(store, term, check_term)


def test_events_and_measures_outlive_the_run() -> None:
    store, run = MemoryStore(), flow(Hotspot())
    background = served(run, store)
    for _ in range(30):
        background.measured(run.step(), ControlMessage(), run.routing, run.controller._state)
    background.close()
    assert [event.why for event in read_events(store)] == [event.why for event in run.controller.events]
    history = History.of(store)
    assert [measure.epoch for measure in history.measures] == list(range(30))
    assert history.moves and all(move.why for _, move in history.moves)
    assert history.of_kind("effect")


def test_what_was_not_saved_is_read_from_commits_and_claims() -> None:
    store = MemoryStore()
    checkpoint = open_checkpoint(store)
    message = ControlMessage(moves=(Move(0, 1, 0, 0, "because"),), cause="a reason")
    for _ in range(3):
        claim = checkpoint.claim(msgspec.structs.replace(make_claim(checkpoint), message=message))
        commit = make_commit(checkpoint, claim, [])
        measure = Measure(claim.epoch, rows=10 * claim.epoch)
        checkpoint.commit(msgspec.structs.replace(commit, measure=measure))
    assert [measure.rows for measure in read_measures(store)] == [0, 10, 20]
    assert [(event.kind, event.epoch, event.why) for event in read_events(store)] == [
        ("applied", epoch, "a reason") for epoch in range(3)
    ]


def test_the_log_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "KEPT_EVENTS", 3)
    monkeypatch.setattr(log, "KEPT_MEASURES", 2)
    store = MemoryStore()
    records = log_of(store)
    for epoch in range(10):
        records.save_events([Event("advice", epoch, float(epoch), "why")])
        records.save_measures([Measure(epoch)])
        records.collect()
    assert [event.epoch for event in read_events(store)] == [7, 8, 9]
    assert [measure.epoch for measure in read_measures(store)] == [8, 9]


def test_a_damaged_record_of_the_log_is_left_out() -> None:
    store = MemoryStore()
    records = log_of(store)
    for epoch in range(3):
        records.save_events([Event("advice", epoch, float(epoch), "why")])
    store.blobs[sorted(name for name in store.blobs if name.startswith("history/"))[1]] = b"torn"
    assert [event.epoch for event in read_events(store)] == [0, 2]


def test_two_drivers_do_not_overwrite_each_others_events() -> None:
    store = MemoryStore()
    for term in (1, 2):
        log_of(store, term).save_events([Event("advice", 5, float(term), f"term {term}")])
    assert [event.why for event in read_events(store)] == ["term 1", "term 2"]


def test_a_request_from_outside_is_answered_once() -> None:
    store, run = MemoryStore(), flow()
    run.step()
    put_request(store, RequestRecord("r1", 1.0, MoveSlots("totals", (0,), 2)))
    put_request(store, RequestRecord("r2", 2.0, Drain(7)))
    store.blobs["requests/torn"] = b"torn"
    background = served(run, store)
    until(lambda: run.controller.due(run.routing))
    background.measured(run.step(), run.messages[-1], run.routing, run.controller._state)
    until(lambda: not store.list("requests/"))
    background.close()
    assert run.routing.slots[0][0] == 2
    answers = {event.request: event.why for event in read_events(store) if event.kind == "answered"}
    assert answers["r1"] == "It took effect."
    assert answers["r2"].startswith("There is no lane 7")


def test_what_nobody_can_take_up_any_more_is_answered() -> None:
    store, run = MemoryStore(), flow()
    run.step()
    background = served(run, store)
    run.controller.ask(Scale(2), "r1")
    background.close()
    with pytest.raises(FlowError, match="The run has ended"):
        run.controller.ask(Scale(2), "r2")
    [event] = read_events(store)
    assert (event.request, event.why) == ("r1", "The run ended before it could take effect.")


def test_a_request_that_an_earlier_driver_took_up_is_not_taken_up_again() -> None:
    store, run = MemoryStore(), flow()
    checkpoint = open_checkpoint(store)
    put_request(store, RequestRecord("r1", 1.0, MoveSlots("totals", (0,), 2)))
    checkpoint.claim(msgspec.structs.replace(make_claim(checkpoint), message=ControlMessage(requests=("r1",))))
    served(run, store).close()
    run.step()
    assert run.routing.slots[0][0] == 0
    assert not store.list("requests/")


def test_a_store_that_fails_does_not_end_the_flow(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryStore):
        def put_if_absent(self, name: str, data: object) -> bool:
            raise OSError("no space left")

        def list(self, prefix: str) -> list[str]:
            raise OSError("gone")

    run = flow(Hotspot())
    background = served(run, Broken())
    for _ in range(25):
        background.measured(run.step(), ControlMessage(), run.routing, run.controller._state)
    background.close()
    assert "The log of control is behind" in caplog.text


def test_what_could_not_be_saved_is_saved_later_and_requests_are_not_taken_up_twice() -> None:
    class Flaky(MemoryStore):
        failing = True

        def put_if_absent(self, name: str, data: bytes) -> bool:
            if self.failing and name.startswith(("history/", "measures/")):
                raise OSError("not now")
            return super().put_if_absent(name, data)

    store, run = Flaky(), flow(Hotspot())
    run.step()
    put_request(store, RequestRecord("r1", 1.0, MoveSlots("totals", (0,), 2)))
    background = served(run, store)
    until(lambda: run.controller.due(run.routing))
    for _ in range(8):
        background.measured(run.step(), run.messages[-1], run.routing, run.controller._state)
    until(lambda: not store.list("requests/"))
    store.failing = False
    background.close()
    assert {event.why for event in read_events(store)} == {event.why for event in run.controller.events}
    assert [measure.epoch for measure in read_measures(store)] == list(range(1, 9))


def test_an_overtaken_driver_leaves_requests_to_its_successor() -> None:
    def fenced(step: str) -> None:
        raise FencedError(f"stopped before {step}")

    store, run = MemoryStore(), flow()
    run.step()
    put_request(store, RequestRecord("r1", 1.0, Drain(7)))
    Background(run.controller, log_of(store, 1, fenced), run.clock).close()
    assert store.list("requests/")
    assert not run.controller.events


def test_a_planner_that_never_answers_holds_up_nobody() -> None:
    asked, released = threading.Event(), threading.Event()

    class Endless:
        def plan(self, snapshot: object) -> None:
            asked.set()
            released.wait(60)

    store, run = MemoryStore(), flow(Endless(), window=1)
    background = served(run, store)
    background.measured(run.step(think=False), ControlMessage(), run.routing, run.controller._state)
    asked.wait(60)
    run.clock.time += 11
    put_request(store, RequestRecord("r1", 1.0, Drain(0)))
    until(lambda: any("has not answered for 10 s" in why for why in run.kinds("dropped")))
    until(lambda: run.controller.due(run.routing))
    run.step(think=False)
    run.step(think=False)
    assert run.routing.running == (1, 2)
    run.controller.ask(Scale(1), "late")
    background.close()
    released.set()
    [late] = [event for event in read_events(store) if event.request == "late"]
    assert late.why == "The run ended before it could take effect."


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "what the test waits for did not come"
        time.sleep(0.01)


def test_asking_from_outside_needs_a_checkpoint_that_fits(tmp_path: Path) -> None:
    clock, rng = HandClock(), SystemRng()
    with pytest.raises(CheckpointError, match="There is no checkpoint"):
        ask(str(tmp_path / "none"), Drain(0), clock, rng)
    store = LocalStore(tmp_path)
    checkpoint = open_checkpoint(store)
    with pytest.raises(CheckpointError, match="has not run an epoch yet"):
        ask(str(tmp_path), Drain(0), clock, rng)
    claim = checkpoint.claim(make_claim(checkpoint, lanes=3))
    checkpoint.commit(make_commit(checkpoint, claim, []))
    with pytest.raises(FlowError, match="There is no lane 5"):
        ask(str(tmp_path), Drain(5), clock, rng)
    asked = ask(str(tmp_path), Scale(2), clock, rng)
    assert [each.request for each in log_of(store).requests()] == [Scale(2)]
    assert asked.answer() is None
    log_of(store).save_events([Event("answered", 7, 1.0, "It took effect.", request=asked.identity)])
    assert asked.answer() == Event("answered", 7, 1.0, "It took effect.", request=asked.identity)
    asked.withdraw()
    assert not log_of(store).requests()
