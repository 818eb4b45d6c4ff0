"""What every planner has to hold, yours too: `for check in yield_checks(MyPlanner()): check()`.

Each check raises an AssertionError that says what was expected. The first ones are about the planner itself, those from
`never_moves_to_a_draining_lane` on about the planner inside the live wrapper, as a running stream uses it: by what its
attribute `objective` says that it is for, or else by balance. Capacities are asked for only of a planner that says
`keeps_capacity = True`; many know none on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from trimtab.planners.live import Live, base_placement
from trimtab.planners.metrics import TOLERANCE, lane_loads, over_budget
from trimtab.planners.objective import aim_of, better, score
from trimtab.planners.plan import Answer, Infeasible, Plan, Planner
from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Limits
from trimtab.ports import chance

Check = Callable[[Planner], None]
SEEDS = range(3)
BUDGETS = (
    Limits(),
    Limits(max_migration=0.0),
    Limits(max_migration=0.7),
    Limits(max_migration=7.0),
    Limits(max_moves=0),
    Limits(max_moves=3),
    Limits(max_migration=1.5, max_moves=2),
)


def yield_checks(planner: Planner) -> Iterator[Callable[[], None]]:
    """Every check, bound to the planner; `check.func.__name__` names it."""
    for check in CHECKS:
        yield partial(check, planner)


def random_problem(
    seed: int, slots: int = 8, lanes: int = 3, placed: bool = True, load: float = 0.5
) -> ClusterSnapshot:
    """Slots of three operators in a row with loads that differ, on lanes that are `load` full on average."""
    random = chance(seed)
    loads = random.lognormal(0, 0.7, slots)
    operator = np.sort(random.integers(0, 3, slots))
    pairs = [(slot, int(random.integers(slot + 1, slots)), float(random.integers(1, 9))) for slot in range(slots - 1)]
    return ClusterSnapshot.of(
        load=loads * load * 100 * lanes / loads.sum(),
        capacity=[100.0] * lanes,
        operator=operator,
        lane=random.integers(0, lanes, slots) if placed else None,
        state=random.integers(1, 6, slots),
        traffic=pairs,
        groups=[(0, 1, 40.0), (1, 2, 20.0)],
    )


def degenerate_problems() -> dict[str, ClusterSnapshot]:
    """Problems at the edges, by what is odd about them."""
    one = ClusterSnapshot.of
    return {
        "no slots": one(load=[], capacity=[10, 10]),
        "one lane": one(load=[1, 2], lane=[0, 0], capacity=[10]),
        "one slot": one(load=[1], capacity=[10, 10]),
        "all loads zero": one(load=[0] * 4, lane=[0, 0, 0, 1], capacity=[10, 10], groups=[], state=[1] * 4),
        "loads above any capacity": one(load=[50, 60, 70], lane=[0, 1, 0], capacity=[10, 10]),
        "isolated operators": one(load=[1, 1, 1], operator=[0, 1, 2], capacity=[10, 10]),
        "an operator without slots": one(load=[1, 1], operator=[0, 2], capacity=[9, 9], groups=[(0, 1, 5), (1, 2, 5)]),
        "a cycle": one(load=[1, 1], operator=[0, 1], capacity=[9, 9], groups=[(0, 1, 5), (1, 0, 5)]),
        "more lanes than slots": one(load=[3, 1], lane=[0, 0], capacity=[5] * 6),
        "one lane that stays": one(load=[1, 1], lane=[0, 1], capacity=[9, 9], draining=[False, True]),
        "every lane draining": one(load=[1, 1], lane=[0, 1], capacity=[9, 9], draining=[True, True]),
        "unlike capacities": one(load=[4, 4, 2, 2], lane=[0, 0, 0, 0], capacity=[20, 5, 5]),
    }


def solved_problems() -> dict[str, ClusterSnapshot]:
    """Level lanes whose slots have all their traffic beside them, by lanes, pairs of slots on each, and their state."""
    return {
        f"{lanes} lanes with {each} pairs, state {state}": _solved(lanes, each, state)
        for lanes in (1, 2, 3)
        for each in (1, 2)
        for state in (0.0, 0.1, 1.0)
    }


def _solved(lanes: int, each: int, state: float) -> ClusterSnapshot:
    pairs = lanes * each
    return ClusterSnapshot.of(
        load=[1.1] * 2 * pairs,
        operator=[0] * pairs + [1] * pairs,
        lane=[pair % lanes for pair in range(pairs)] * 2,
        capacity=[10.0] * lanes,
        state=[state] * 2 * pairs,
        traffic=[(pair, pairs + pair, 1.0) for pair in range(pairs)],
    )


def running_stream(seed: int) -> ClusterSnapshot:
    """A random problem in the midst of things: one lane drains, a slot has no lane yet, states are fractions."""
    snapshot = random_problem(seed, slots=10)
    lane = snapshot.lane.copy()
    lane[seed % len(lane)] = UNPLACED
    draining = np.arange(snapshot.lanes) == seed % snapshot.lanes
    return replace(snapshot, lane=lane, draining=draining, state=snapshot.state / 10)


def _problems() -> Iterator[tuple[str, ClusterSnapshot]]:
    for seed in SEEDS:
        yield f"random {seed}", random_problem(seed)
        yield f"random and not placed {seed}", random_problem(seed, placed=False)
        yield f"random and tight {seed}", random_problem(seed, load=0.9)
    yield from degenerate_problems().items()


def _streams() -> Iterator[tuple[str, ClusterSnapshot]]:
    """Problems under every budget, those at the edges among them."""
    placed = {f"random {seed}": random_problem(seed) for seed in SEEDS}
    amid = {f"running stream {seed}": running_stream(seed) for seed in SEEDS}
    for name, snapshot in {**placed, **amid, **degenerate_problems()}.items():
        for limits in BUDGETS:
            yield f"{name}, {limits}", snapshot.within(limits)


def _live(planner: Planner) -> Iterator[tuple[str, ClusterSnapshot, Plan]]:
    """The plans of a planner inside the live wrapper, as far as it has any."""
    for name, snapshot in _streams():
        plan = Live(planner).plan(snapshot)
        if isinstance(plan, Plan):
            yield name, snapshot, plan


def changes_nothing_it_is_given(planner: Planner) -> None:
    for name, snapshot in _problems():
        for array in _arrays(snapshot):
            array.flags.writeable = False
        try:
            planner.plan(snapshot)
        except ValueError as error:
            raise AssertionError(f"{name}: the snapshot was written to: {error}") from error


def answers_alike_twice(planner: Planner) -> None:
    for name, snapshot in _problems():
        assert _same(planner.plan(snapshot), planner.plan(snapshot)), f"{name}: two answers differ"


def places_every_slot_once(planner: Planner) -> None:
    for name, snapshot in _problems():
        plan = planner.plan(snapshot)
        if isinstance(plan, Plan):
            assert plan.lanes.shape == (len(snapshot),), f"{name}: {plan.lanes.shape} lanes for {len(snapshot)} slots"
            inside = (plan.lanes >= 0) & (plan.lanes < snapshot.lanes)
            assert inside.all(), f"{name}: slot {np.flatnonzero(~inside)[:1]} has no lane"


def says_what_is_missing(planner: Planner) -> None:
    for name, snapshot in _problems():
        answer = planner.plan(snapshot)
        if isinstance(answer, Infeasible):
            assert answer.missing.endswith("."), f"{name}: {answer.missing!r} is no sentence"


def keeps_capacities_if_it_says_so(planner: Planner) -> None:
    for name, snapshot in _problems() if getattr(planner, "keeps_capacity", False) else ():
        plan = planner.plan(snapshot)
        if isinstance(plan, Plan):
            over = np.flatnonzero(lane_loads(snapshot, plan.lanes) > snapshot.capacity * (1 + TOLERANCE))
            assert not over.size, f"{name}: lanes {over} carry more than their capacity"


def refuses_a_cluster_of_draining_lanes(planner: Planner) -> None:
    snapshot = degenerate_problems()["every lane draining"]
    assert isinstance(planner.plan(snapshot), Infeasible), "there was a plan though every lane is draining"


def explains_every_move(planner: Planner) -> None:
    for name, snapshot in _problems():
        plan = planner.plan(snapshot)
        if isinstance(plan, Plan):
            assert all(move.why for move in plan.moves(snapshot)), f"{name}: a move has no reason"


def never_moves_to_a_draining_lane(planner: Planner) -> None:
    for name, snapshot, plan in _live(planner):
        moved = plan.moved(snapshot)
        assert not snapshot.draining[plan.lanes[moved]].any(), f"{name}: a slot moves to a draining lane"


def keeps_the_budget(planner: Planner) -> None:
    for name, snapshot, plan in _live(planner):
        assert not over_budget(snapshot, plan.lanes), f"{name}: {over_budget(snapshot, plan.lanes)}"


def makes_nothing_worse(planner: Planner) -> None:
    aim = aim_of(planner)
    for name, snapshot, plan in _live(planner):
        base = base_placement(snapshot, aim).lanes
        worse = better(score(snapshot, base, aim), score(snapshot, plan.lanes, aim))
        assert not worse, f"{name}: the placement in force is better by {aim}"


def moves_nothing_for_nothing(planner: Planner) -> None:
    for name, snapshot in solved_problems().items():
        plan = Live(planner).plan(snapshot)
        assert isinstance(plan, Plan), f"{name}: there is no plan for a problem that is solved"
        assert not plan.moved(snapshot).size, f"{name}: slots move though nothing can get better"


def plans_alike_for_another_unit_of_load(planner: Planner) -> None:
    for seed in SEEDS:
        snapshot = random_problem(seed)
        plan = Live(planner).plan(snapshot)
        for unit in (3, 4):
            scaled = replace(snapshot, loads=snapshot.loads * unit, capacity=snapshot.capacity * unit)
            assert _same(plan, Live(planner).plan(scaled)), f"{unit} times the load and capacity: planned differently"


CHECKS: tuple[Check, ...] = (
    changes_nothing_it_is_given,
    answers_alike_twice,
    places_every_slot_once,
    says_what_is_missing,
    keeps_capacities_if_it_says_so,
    refuses_a_cluster_of_draining_lanes,
    explains_every_move,
    never_moves_to_a_draining_lane,
    keeps_the_budget,
    makes_nothing_worse,
    moves_nothing_for_nothing,
    plans_alike_for_another_unit_of_load,
)


def _same(one: Answer, other: Answer) -> bool:
    if isinstance(one, Plan) and isinstance(other, Plan):
        return np.array_equal(one.lanes, other.lanes)
    return isinstance(one, Infeasible) and isinstance(other, Infeasible)


def _arrays(snapshot: ClusterSnapshot) -> list[np.ndarray]:
    traffic = [array for each in (snapshot.traffic, snapshot.groups) for array in vars(each).values()]
    own = (snapshot.operator, snapshot.loads, snapshot.state, snapshot.lane, snapshot.capacity, snapshot.draining)
    return [*own, *traffic]
