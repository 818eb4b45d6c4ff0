"""How many lanes there should be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import ProblemError
from trimtab.planners.plan import Infeasible, Plan
from trimtab.planners.scaler import NoScaling, ScaleDecision, Scaler, TargetUtilisation
from trimtab.planners.snapshot import ClusterSnapshot


def level(load: float, lanes: int, **more: object) -> ClusterSnapshot:
    """As many slots as there are tens, dealt out to lanes of 100."""
    slots = 12 * lanes
    lane = [slot % lanes for slot in range(slots)]
    return ClusterSnapshot.of(load=[load / slots] * slots, capacity=[100.0] * lanes, lane=lane, **more)


def decide(snapshot: ClusterSnapshot, **options: float) -> ScaleDecision:
    return TargetUtilisation(**options).decide(snapshot, Plan(snapshot.lane, ""))


def test_both_policies_are_scalers_and_no_scaling_does_nothing() -> None:
    assert isinstance(NoScaling(), Scaler) and isinstance(TargetUtilisation(), Scaler)
    assert not NoScaling().decide(level(990, 2), Infeasible("too small."))


def test_it_scales_out_to_the_target() -> None:
    decision = decide(level(360, 4))
    assert decision.add == 2 and not decision.drain
    assert decision.why == "the mean load is 90 % of capacity, above 85 %; with 6 lanes it is 60 %"


def test_between_the_marks_nothing_happens() -> None:
    for load in (201, 280, 339):
        assert not decide(level(load, 4))


def test_where_no_plan_is_found_the_target_is_the_mark() -> None:
    snapshot = level(300, 4)
    assert not decide(snapshot)
    assert TargetUtilisation().decide(snapshot, Infeasible("Slot 3 fits nowhere.")).add == 1
    unmoved = TargetUtilisation().decide(level(200, 4), Infeasible("Operators feed each other in a ring."))
    assert not unmoved and "not too few" in unmoved.why


def test_the_cheapest_lanes_drain() -> None:
    state = np.tile([5.0, 1.0, 3.0, 9.0], 12)
    decision = decide(level(120, 4, state=state))
    assert decision.drain == (1, 2) and not decision.add
    assert "with 2 lanes it is 60 %" in decision.why


def test_what_counts_is_the_state_under_the_plan() -> None:
    snapshot = ClusterSnapshot.of(load=[20, 20], capacity=[100, 100], lane=[0, 1], state=[1, 9])
    swapped = Plan(np.array([1, 0]), "")
    assert TargetUtilisation().decide(snapshot, swapped).drain == (1,)


def test_never_below_least_and_never_above_most() -> None:
    assert len(decide(level(1, 6), least=4).drain) == 2
    assert decide(level(0, 3)).drain == (0, 1)
    decision = decide(level(900, 4), most=6)
    assert decision.add == 2 and "6 lanes are the most allowed" in decision.why
    assert decide(level(100, 2), least=5).add == 3


def test_a_cluster_that_drains_altogether_gets_lanes() -> None:
    assert decide(level(50, 2, draining=[True, True])).add == 1


def test_while_lanes_drain_no_others_do() -> None:
    assert not decide(level(40, 4, draining=[False, False, True, False]))


def test_no_lane_goes_while_the_plan_leaves_one_overloaded() -> None:
    snapshot = ClusterSnapshot.of(load=[95, 1, 1, 1], capacity=[100] * 4, lane=[0, 1, 2, 3])
    assert not decide(snapshot)


def test_no_lane_goes_that_alone_is_large_enough_for_a_slot() -> None:
    snapshot = ClusterSnapshot.of(load=[60, 1], capacity=[100, 50, 50], lane=[0, 1], state=[0, 9])
    assert 0 not in decide(snapshot).drain


@given(st.floats(0, 3000), st.integers(1, 20))
def test_no_step_is_followed_by_one_back(load: float, lanes: int) -> None:
    decision = decide(level(load, lanes))
    after = lanes + decision.add - len(decision.drain)
    assert after >= 1
    follow = decide(level(load, after))
    assert not (decision.add and follow.drain) and not (decision.drain and follow.add)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"low": 80}, "low"), ({"high": 60}, "high"), ({"least": 0}, "least"), ({"least": 3, "most": 2}, "most")],
)
def test_options_are_checked(wrong: dict[str, float], field: str) -> None:
    with pytest.raises(ProblemError, match=rf"options\.{field} is "):
        TargetUtilisation(**wrong)
