"""The power of two choices, a baseline of ALBIC IV (its reference 7), with slots standing in for tuples.

The original sends every tuple to the less loaded of two workers that two hashes of its key name, and merges what the
two hold of a key later. Slots cannot be split, so here every slot, in the order of its number as if slots were
arriving, goes to the less loaded of two lanes that two hashes of its number name. What merging costs is for a study to
charge. The candidates do not depend on loads; which of the two is taken does, without regard to where the slot is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from trimtab.planners.objective import Objective
from trimtab.planners.options import check_seed
from trimtab.planners.plan import Infeasible, Plan, no_lane
from trimtab.planners.snapshot import ClusterSnapshot, Ints


@dataclass(frozen=True)
class Potc:
    """Two candidate lanes for every slot; the seed picks the hash functions. It knows neither budget nor capacity.

    >>> plan = Potc().plan(ClusterSnapshot.of(load=[4, 3, 2, 1], capacity=[10, 10]))
    >>> plan.lanes.tolist()
    [1, 0, 0, 1]
    """

    objective: ClassVar[Objective] = "balance"
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)

    def plan(self, snapshot: ClusterSnapshot) -> Plan | Infeasible:
        if refusal := no_lane(snapshot):
            return refusal
        first, second = candidates(snapshot, self.seed)
        load, capacity = snapshot.load.tolist(), snapshot.capacity.tolist()
        carried, lanes = [0.0] * snapshot.lanes, np.zeros(len(snapshot), np.int64)
        for slot, (one, other) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            lane = other if carried[other] / capacity[other] < carried[one] / capacity[one] else one
            carried[lane] += load[slot]
            lanes[slot] = lane
        return Plan(lanes, "this lane was the less loaded of the slot's two candidates")


def candidates(snapshot: ClusterSnapshot, seed: int) -> tuple[Ints, Ints]:
    """Two lanes that stay for every slot, different ones where there are two."""
    staying, slots = snapshot.staying, np.arange(len(snapshot), dtype=np.uint64)
    one = _hash(slots, 2 * seed) % np.uint64(len(staying))
    step = _hash(slots, 2 * seed + 1) % np.uint64(max(len(staying) - 1, 1)) + np.uint64(1)
    other = (one + step) % np.uint64(len(staying))
    return staying[one.astype(np.int64)], staying[other.astype(np.int64)]


def _hash(numbers: npt.NDArray[np.uint64], salt: int) -> npt.NDArray[np.uint64]:
    """The finalizer of splitmix64: every bit of a number decides about every bit of its hash."""
    mixed = numbers + np.uint64((0x9E3779B97F4A7C15 * (salt + 1)) % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
