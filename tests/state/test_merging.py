"""What folding keeps bounded, over hundreds of epochs without any file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from trimtab.state import merging
from trimtab.state.manifest import Manifest
from trimtab.state.merging import choose_folds
from trimtab.state.records import Commit, SegmentId, SegmentRecord, segment_name
from trimtab.vocab import Measure

Rows = np.ndarray
LONGEST = merging.SHORTEST + merging.STAGGER
KEYS = 1000


@dataclass
class Simulation:
    """One operator with state as sets of key numbers by run; folding unites them."""

    slots: int
    lanes: int = 2

    def __post_init__(self) -> None:
        self.manifest = Manifest()
        self.chains: list[list[np.ndarray]] = [[] for _ in range(self.slots)]
        self.epoch = 0
        self.written = self.fresh = 0
        self.folded: list[int] = []
        self.files: dict[str, int] = {}

    def step(self, touched: dict[int, np.ndarray]) -> None:
        """An epoch that writes some keys of some slots."""
        folds = choose_folds(self.manifest).get(0, {})
        segments = [self._segment(lane, touched, folds) for lane in range(self.lanes)]
        segments = [segment for segment in segments if segment.slots]
        self.manifest = self.manifest.apply(Commit(self.epoch, None, 1, segments, {}, Measure(), None))
        self.files |= {segment.name: segment.rows for segment in segments}
        self.files = {name: rows for name, rows in self.files.items() if name in self.manifest.referenced}
        self.fresh += sum(map(len, touched.values()))
        self.epoch += 1

    def _segment(self, lane: int, touched: dict[int, np.ndarray], folds: dict[int, int]) -> SegmentRecord:
        slots = sorted(slot for slot in {*touched, *folds} if slot % self.lanes == lane)
        sizes, depths, old = [], [], 0
        for slot in slots:
            chain, depth = self.chains[slot], folds.get(slot, 0)
            fold = [touched[slot]] if slot in touched else []
            old += sum(map(len, chain[:depth]))
            run = np.unique(np.concatenate([*fold, *chain[:depth]]))
            self.chains[slot] = [run, *chain[depth:]]
            sizes.append(len(run))
            depths.append(depth)
        if lane == 0:
            self.folded.append(0)
        self.folded[-1] += old
        self.written += sum(sizes)
        fresh = sum(len(touched[slot]) for slot in slots if slot in touched)
        name = segment_name(SegmentId(self.epoch, 0, lane, 0), "d")
        offsets = [0, *np.cumsum(sizes).tolist()]
        return SegmentRecord(name, 0, 8 * sum(sizes), sum(sizes), slots, offsets, depths, fresh)

    @property
    def longest(self) -> int:
        return int(self.manifest.chains[0].lengths.max())

    @property
    def live_keys(self) -> int:
        return sum(len(np.unique(np.concatenate(chain))) for chain in self.chains if chain)

    @property
    def file_rows(self) -> int:
        return sum(self.files.values())


def uniform(rng: np.random.Generator, slots: int, epoch: int) -> dict[int, np.ndarray]:
    return {slot: np.unique(rng.integers(0, KEYS, 20)) for slot in range(slots)}


def growing(rng: np.random.Generator, slots: int, epoch: int) -> dict[int, np.ndarray]:
    return {slot: np.arange(epoch * 20, epoch * 20 + 20) for slot in range(slots)}


def sparse(rng: np.random.Generator, slots: int, epoch: int) -> dict[int, np.ndarray]:
    return {int(slot): rng.integers(0, KEYS, 1) for slot in rng.integers(0, slots, 4)}


def few_hot(rng: np.random.Generator, slots: int, epoch: int) -> dict[int, np.ndarray]:
    """All slots at first, then only every eighth."""
    step = 1 if epoch < 10 else 8
    return {slot: np.unique(rng.integers(0, KEYS, 30)) for slot in range(0, slots, step)}


@pytest.mark.parametrize("workload", [uniform, growing, sparse, few_hot])
def test_chains_files_and_rewriting_stay_bounded(workload: Callable[..., dict[int, np.ndarray]]) -> None:
    rng, run = np.random.default_rng(7), Simulation(32)
    for epoch in range(300):
        run.step(workload(rng, run.slots, epoch))
        assert run.longest <= LONGEST
        assert run.folded[-1] <= merging.FLOOR
    assert run.file_rows <= 3 * run.live_keys
    assert run.written <= 8 * run.fresh


def test_fold_rows_stay_within_the_budget_and_chains_catch_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "FLOOR", 500)
    rng, run = np.random.default_rng(7), Simulation(32)
    largest = 0
    for epoch in range(300):
        budget = max(500, merging.PER_FRESH * run.manifest.fresh)
        largest = max(largest, *(sum(map(len, chain)) for chain in run.chains))
        run.step(uniform(rng, run.slots, epoch))
        assert run.folded[-1] <= budget + 2 * largest
        assert run.longest <= 2 * LONGEST


def test_a_slot_larger_than_any_budget_is_folded_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "FLOOR", 1)
    run = Simulation(1, lanes=1)
    for epoch in range(100):
        run.step({0: np.arange(epoch % 50, 200)})
        assert run.longest <= LONGEST


def test_cold_slots_do_not_pin_segments() -> None:
    rng, run = np.random.default_rng(7), Simulation(64, lanes=1)
    for _ in range(10):
        run.step({slot: np.unique(rng.integers(0, KEYS, 50)) for slot in range(64)})
    # From now on one slot is never touched again; its rows must not keep the old files alive.
    for _ in range(200):
        run.step({slot: np.unique(rng.integers(0, KEYS, 50)) for slot in range(1, 64)})
        old = run.manifest.origin[:, 0] <= run.manifest.epoch - merging.RECENT - 40
        assert (run.manifest.live_share[old] >= merging.LEAST_SHARE).all()
    assert run.chains[0]


def test_slots_come_due_at_different_epochs() -> None:
    run, due = Simulation(64, lanes=1), []
    for _ in range(12):
        due.append(len(choose_folds(run.manifest).get(0, {})))
        run.step({slot: np.arange(10) for slot in range(64)})
    assert max(due) <= 32


def test_a_large_base_waits_until_newer_runs_come_to_half_of_it() -> None:
    run = Simulation(1, lanes=1)
    run.step({0: np.arange(10_000)})
    base_alone = []
    for epoch in range(250):
        run.step({0: np.arange(epoch * 100, epoch * 100 + 100) % 20_000})
        base_alone.append(len(run.chains[0][-1]) == 10_000)
    assert base_alone.index(False) * 100 >= 5_000 - 1_000


def test_the_choice_is_the_same_after_recovery() -> None:
    rng, run = np.random.default_rng(3), Simulation(16)
    for epoch in range(60):
        run.step(few_hot(rng, 16, epoch))
        assert choose_folds(Manifest.from_record(run.manifest.to_record())) == choose_folds(run.manifest)


def test_a_new_checkpoint_has_nothing_to_fold() -> None:
    assert choose_folds(Manifest()) == {}


def test_epochs_of_few_rows_leave_few_segments_to_open() -> None:
    rng, run = np.random.default_rng(7), Simulation(256)
    for epoch in range(300):
        run.step(sparse(rng, run.slots, epoch))
        assert len(run.manifest.segments) <= (merging.MANY + 1) * run.lanes
    assert run.written <= 8 * run.fresh
