"""Steps 1 and 2 of ALBIC (ALBIC III-B2): which pairs of slots are worth one lane, and the sets that are on one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components

from trimtab.planners.partition import partition
from trimtab.planners.snapshot import ClusterSnapshot, Floats, Ints, Traffic


def qualifying_pairs(snapshot: ClusterSnapshot, score_factor: float) -> Traffic:
    """Pairs with out(i, j) > sF * avg(i), where avg(i) is out(i) over the number of downstream slots.

    >>> flow = ClusterSnapshot.of(
    ...     load=[1, 1, 1, 1], operator=[0, 0, 1, 1], capacity=[9, 9], traffic=[(0, 2, 9.0), (1, 2, 4.0), (1, 3, 5.0)]
    ... )
    >>> pairs = qualifying_pairs(flow, 1.5)
    >>> pairs.source.tolist(), pairs.target.tolist()
    ([0], [2])
    """
    bar = score_factor * _average_out(snapshot)
    pairs = _candidates(snapshot, bar)
    worthy = pairs.weight > bar[pairs.source]
    return Traffic(pairs.source[worthy], pairs.target[worthy], pairs.weight[worthy])


def _average_out(snapshot: ClusterSnapshot) -> Floats:
    """avg(i): what every slot sends, divided by the slots of all operators that its operator sends to."""
    sent = np.bincount(snapshot.traffic.source, snapshot.traffic.weight, len(snapshot)).astype(np.float64)
    groups, sizes = snapshot.groups, snapshot.sizes
    there = (sizes[groups.source] > 0) & (sizes[groups.target] > 0)
    each = np.where(there, groups.weight / np.maximum(sizes[groups.source], 1), 0.0)
    sent += np.bincount(groups.source, each, len(sizes))[snapshot.operator]
    downstream = (snapshot.operator_traffic > 0) @ sizes
    return np.asarray(sent / np.maximum(downstream, 1)[snapshot.operator])


def _candidates(snapshot: ClusterSnapshot, bar: Floats) -> Traffic:
    """Named pairs, and those of operators between which even the spread traffic alone is above the bar of some slot.

    Spread traffic below it counts for nothing on its own and, beside named pairs, is added to them.
    """
    groups, sizes = snapshot.groups, snapshot.sizes
    per_pair = groups.weight / np.maximum(sizes[groups.source] * sizes[groups.target], 1)
    lowest = np.full(len(sizes), np.inf)
    np.minimum.at(lowest, snapshot.operator, bar)
    alone = per_pair > lowest[groups.source]
    by_pair = Traffic(groups.source[alone], groups.target[alone], groups.weight[alone])
    pairs = replace(snapshot, groups=by_pair).pairs
    beside = np.zeros((len(sizes),) * 2)
    np.add.at(beside, (groups.source[~alone], groups.target[~alone]), per_pair[~alone])
    ends = snapshot.operator[pairs.source], snapshot.operator[pairs.target]
    return Traffic(pairs.source, pairs.target, pairs.weight + beside[ends])


@dataclass(frozen=True)
class SizeLimit:
    """What a set may weigh: points of load, and shares of the migration budget."""

    max_load: float
    """maxPL, in percent of a lane's mean capacity."""

    def parts(self, snapshot: ClusterSnapshot, slots: Ints) -> tuple[int, Floats]:
        """ceil(max(Pmc / maxMigrCost, PL / maxPL)), and the weights of the greater one, which a split balances."""
        load = 100 * snapshot.load[slots] / float(snapshot.capacity.mean())
        costs = [load / self.max_load, *_shares_of_budget(snapshot, slots)]
        weights = max(costs, key=lambda cost: float(cost.sum()))
        return min(len(slots), max(1, int(np.ceil(min(float(weights.sum()), len(slots)) - 1e-9)))), weights


def _shares_of_budget(snapshot: ClusterSnapshot, slots: Ints) -> list[Floats]:
    """Of every slot in the budget by cost and in the one by count, as far as there are any."""
    limits, tiny = snapshot.limits, 1e-12
    by_cost = [] if limits.max_migration is None else [snapshot.state[slots] / max(limits.max_migration, tiny)]
    by_count = [] if limits.max_moves is None else [np.full(len(slots), 1 / max(limits.max_moves, tiny))]
    return by_cost + by_count


def maintained_sets(snapshot: ClusterSnapshot, pairs: Traffic, limit: SizeLimit, seed: int) -> list[Ints]:
    """Slots whose pairs are collocated, united where they share one, and split where they are too large.

    >>> chain = ClusterSnapshot.of(load=[2, 2, 2], lane=[0, 0, 0], capacity=[10], traffic=[(0, 1, 5.0), (1, 2, 1.0)])
    >>> [[each.tolist() for each in maintained_sets(chain, chain.pairs, SizeLimit(most), 0)] for most in (60, 40)]
    [[[0, 1, 2]], [[0, 1]]]
    """
    here = snapshot.placed[pairs.source] & (snapshot.lane[pairs.source] == snapshot.lane[pairs.target])
    kept = Traffic(pairs.source[here], pairs.target[here], pairs.weight[here])
    whole = [(slots, inside) for slots, inside in united(kept, len(snapshot)) if len(slots) > 1]
    return [part for slots, inside in whole for part in _split(snapshot, inside, slots, limit, seed) if len(part) > 1]


def united(pairs: Traffic, slots: int) -> list[tuple[Ints, Traffic]]:
    """The least number of sets that hold both ends of every pair, each with its pairs.

    A slot without a pair is a set of its own.
    """
    graph = sparse.csr_array((np.ones(len(pairs)), (pairs.source, pairs.target)), shape=(slots, slots))
    count, label = connected_components(graph, directed=False)
    members, inside = _by_label(label, count), _by_label(label[pairs.source], count)
    known = [Traffic(pairs.source[each], pairs.target[each], pairs.weight[each]) for each in inside]
    return list(zip(members, known, strict=True))


def _by_label(label: Ints, count: int) -> list[Ints]:
    """For every label the places that have it, ascending."""
    order = np.argsort(label, kind="stable")
    return [np.asarray(part) for part in np.split(order, np.searchsorted(label[order], np.arange(1, count)))]


def _split(snapshot: ClusterSnapshot, pairs: Traffic, slots: Ints, limit: SizeLimit, seed: int) -> list[Ints]:
    parts, weights = limit.parts(snapshot, slots)
    if parts == 1:
        return [slots]
    ends = np.searchsorted(slots, pairs.source), np.searchsorted(slots, pairs.target)
    label = partition(parts, weights, Traffic(*ends, pairs.weight), seed)
    return [slots[label == part] for part in range(parts)]
