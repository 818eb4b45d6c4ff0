"""Round robin over lanes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from tests.planners.small_flows import small_flows

from trimtab.planners.even import Even
from trimtab.planners.plan import Infeasible, Plan
from trimtab.planners.snapshot import ClusterSnapshot


@given(small_flows())
def test_the_counts_of_staying_lanes_differ_by_one_at_most(flow: ClusterSnapshot) -> None:
    answer = Even().plan(flow)
    if not flow.staying.size:
        assert isinstance(answer, Infeasible)
        return
    assert isinstance(answer, Plan)
    assert np.isin(answer.lanes, flow.staying).all()
    counts = np.bincount(answer.lanes, minlength=flow.lanes)[flow.staying]
    assert counts.max() - counts.min() <= 1


def test_slots_are_dealt_out_operator_by_operator() -> None:
    flow = ClusterSnapshot.of(load=[1] * 6, operator=[1, 0, 1, 0, 1, 0], capacity=[9, 9, 9, 9], draining=[0, 1, 0, 0])
    answer = Even().plan(flow)
    assert isinstance(answer, Plan)
    assert answer.lanes.tolist() == [0, 0, 2, 2, 3, 3]
