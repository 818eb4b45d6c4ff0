"""Random small problems, for what has to hold whatever the problem."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import strategies as st

from trimtab.planners.metrics import imc_gain, load_distance, missing
from trimtab.planners.plan import Answer, Plan
from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot

LOADS = st.sampled_from([0.0, 1.0, 2.0, 2.5, 3.0, 7.0])
WEIGHTS = st.sampled_from([0.0, 1.0, 2.0, 5.0])


@st.composite
def small_flows(draw: st.DrawFn, slots: int = 6, lanes: int = 3, draining: bool = True) -> ClusterSnapshot:
    """A few operators, single traffic and cycles among them, on a few unlike lanes of which some may drain."""
    count = draw(st.integers(0, slots))
    operators = draw(st.integers(1, 4))
    lane_count = draw(st.integers(1, lanes))
    operator = draw(st.lists(st.integers(0, operators - 1), min_size=count, max_size=count))
    alike = draw(st.booleans())
    by_operator = draw(st.lists(LOADS, min_size=operators, max_size=operators))
    loads = [by_operator[each] for each in operator] if alike else draw(st.lists(LOADS, min_size=count, max_size=count))
    return ClusterSnapshot.of(
        load=loads,
        operator=operator,
        lane=draw(st.lists(st.integers(UNPLACED, lane_count - 1), min_size=count, max_size=count)),
        capacity=draw(st.lists(st.sampled_from([4.0, 6.0, 12.0]), min_size=lane_count, max_size=lane_count)),
        draining=draw(st.lists(st.booleans(), min_size=lane_count, max_size=lane_count)) if draining else None,
        groups=draw(_pairs(operators)),
        traffic=draw(_pairs(count)),
    )


@st.composite
def _pairs(draw: st.DrawFn, ends: int) -> list[tuple[int, int, float]]:
    known = [(source, target) for source, target in product(range(ends), repeat=2) if source != target]
    chosen = draw(st.lists(st.sampled_from(known), unique=True, max_size=4)) if known else []
    return [(source, target, draw(WEIGHTS)) for source, target in chosen]


def check_plan(snapshot: ClusterSnapshot, answer: Answer) -> None:
    """Every slot is on a lane that stays, no lane is too full, every move has a reason; or a sentence says why not."""
    if not isinstance(answer, Plan):
        assert answer.missing.endswith(".")
        return
    assert answer.lanes.shape == (len(snapshot),)
    assert np.isin(answer.lanes, snapshot.staying).all()
    assert missing(snapshot, answer.lanes) == ""
    assert all(move.why for move in answer.moves(snapshot))


def placements(snapshot: ClusterSnapshot) -> list[np.ndarray]:
    """All there are on the lanes that stay."""
    return [np.array(each, np.int64) for each in product(snapshot.staying.tolist(), repeat=len(snapshot))]


def greatest_gain(snapshot: ClusterSnapshot) -> float | None:
    """By trying every placement; None if there is none that capacities allow."""
    possible = [imc_gain(snapshot, each) for each in placements(snapshot) if missing(snapshot, each) == ""]
    return max(possible, default=None)


def least_distance(snapshot: ClusterSnapshot) -> float:
    """By trying every placement."""
    return min(load_distance(snapshot, each) for each in placements(snapshot))
