"""The order of slots: upstream first, by chance where the flow says nothing, and no order in a ring."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trimtab.planners.linearisation import linearise
from trimtab.planners.plan import Infeasible
from trimtab.planners.snapshot import ClusterSnapshot


def flow(operators: list[int], edges: list[tuple[int, int]]) -> ClusterSnapshot:
    groups = [(start, end, 1.0) for start, end in edges]
    return ClusterSnapshot.of(load=[1.0] * len(operators), capacity=[9.0], operator=operators, groups=groups)


def order_of(snapshot: ClusterSnapshot, seed: int = 0) -> list[int]:
    order = linearise(snapshot, seed)
    assert not isinstance(order, Infeasible)
    return order.tolist()


@given(st.integers(1, 6), st.data())
def test_every_slot_comes_once_and_behind_those_that_feed_it(operators: int, data: st.DataObject) -> None:
    pairs = [(start, end) for start in range(operators) for end in range(start + 1, operators)]
    names = data.draw(st.permutations(range(operators)))
    edges = [(names[start], names[end]) for start, end in data.draw(st.sets(st.sampled_from(pairs)))] if pairs else []
    snapshot = flow(data.draw(st.lists(st.integers(0, operators - 1), max_size=12)), edges)
    order = order_of(snapshot, data.draw(st.integers(0, 3)))
    assert sorted(order) == list(range(len(snapshot)))
    place = np.argsort(order)
    for start, end in edges:
        for one in np.flatnonzero(snapshot.operator == start):
            assert (place[one] < place[snapshot.operator == end]).all()


def test_the_five_components_of_the_papers_figure_2_come_in_an_order_of_the_flow() -> None:
    snapshot = flow([0, 1, 2, 3, 4], [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])
    assert order_of(snapshot)[0] == 0 and order_of(snapshot)[3:] == [3, 4]


def test_single_pairs_order_operators_too() -> None:
    snapshot = ClusterSnapshot.of(load=[1, 1], capacity=[9], operator=[1, 0], traffic=[(1, 0, 2.0)])
    assert order_of(snapshot) == [1, 0]


def test_which_source_comes_first_is_up_to_the_seed() -> None:
    snapshot = flow(list(range(8)), [])
    assert order_of(snapshot, 1) == order_of(snapshot, 1)
    assert len({tuple(order_of(snapshot, seed)) for seed in range(5)}) > 1


def test_a_ring_is_refused_by_the_names_in_it_alone() -> None:
    refused = linearise(flow([0, 1, 2, 3, 4], [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)]))
    assert isinstance(refused, Infeasible)
    for name in ("operator1", "operator2", "operator3"):
        assert name in refused.missing
    assert "operator0" not in refused.missing and "operator4" not in refused.missing
    assert any(ring in refused.missing for ring in ("operator1 -> operator2", "operator2 -> operator3"))


def test_traffic_inside_an_operator_is_no_ring() -> None:
    snapshot = ClusterSnapshot.of(load=[1, 1], capacity=[9], traffic=[(0, 1, 1.0), (1, 0, 1.0)])
    assert order_of(snapshot) == [0, 1]
