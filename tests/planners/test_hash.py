"""Placement by slot number."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from tests.planners.small_flows import small_flows

from trimtab.planners.hash import Hash, numbers
from trimtab.planners.plan import Infeasible, Plan
from trimtab.planners.snapshot import ClusterSnapshot


@given(small_flows())
def test_only_the_number_within_the_operator_counts(flow: ClusterSnapshot) -> None:
    answer = Hash().plan(flow)
    if not flow.staying.size:
        assert isinstance(answer, Infeasible)
        return
    assert isinstance(answer, Plan)
    seen = [0] * len(flow.operators)
    for slot, operator in enumerate(flow.operator.tolist()):
        assert answer.lanes[slot] == flow.staying[seen[operator] % len(flow.staying)]
        seen[operator] += 1


def test_numbers_count_each_operator_from_zero() -> None:
    flow = ClusterSnapshot.of(load=[1] * 5, operator=[1, 0, 1, 1, 0], capacity=[9])
    assert np.array_equal(numbers(flow), [0, 0, 1, 2, 1])
