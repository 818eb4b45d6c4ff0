"""How much each lane has to do with a slot: the first factor of StroMAX's equations 5 and 10 (StroMAX 3).

A slot's neighbours are the slots that it exchanges traffic with. Traffic between whole operators is never spread out
to pairs: what every lane holds of each operator is enough, so thousands of slots cost no more than their lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from trimtab.planners.snapshot import UNPLACED, ClusterSnapshot, Floats, Ints


@dataclass(eq=False)
class Nearness:
    """A placement under construction, and how near each lane is to a slot in it.

    >>> flow = ClusterSnapshot.of(load=[1, 1, 1], capacity=[9, 9], operator=[0, 1, 1], groups=[(0, 1, 8.0)])
    >>> near = Nearness.by_traffic(flow)
    >>> near.put(1, 0)
    >>> near.put(2, 0)
    >>> near.of(0).tolist()
    [8.0, 0.0]
    """

    operator: Ints
    between: Floats
    """By two operators, what each pair of their slots has to do with each other."""
    links: Any
    """The same for single pairs of slots: a symmetric sparse array."""
    mass: Floats
    """What each slot counts for as a neighbour."""
    lanes: Ints
    held: Floats
    """By operator and lane, the mass of the slots there."""

    @classmethod
    def by_neighbours(cls, snapshot: ClusterSnapshot, mass: Floats) -> Nearness:
        """Every neighbour counts with its mass, whatever the two exchange; none counts twice."""
        between = np.zeros((len(snapshot.operators),) * 2)
        between[snapshot.groups.source, snapshot.groups.target] = 1
        between = np.maximum(between, between.T)
        links = _links(snapshot, np.ones(len(snapshot.traffic)))
        links.data[:] = 1
        rows = np.repeat(np.arange(len(snapshot)), np.diff(links.indptr))
        links.data[between[snapshot.operator[rows], snapshot.operator[links.indices]] > 0] = 0
        return cls._empty(snapshot, between, links, mass)

    @classmethod
    def by_traffic(cls, snapshot: ClusterSnapshot) -> Nearness:
        """A neighbour counts with the traffic between the two, both directions together."""
        links = _links(snapshot, snapshot.traffic.weight)
        return cls._empty(snapshot, snapshot.spread, links, np.ones(len(snapshot)))

    @classmethod
    def _empty(cls, snapshot: ClusterSnapshot, between: Floats, links: Any, mass: Floats) -> Nearness:
        held = np.zeros((len(snapshot.operators), snapshot.lanes))
        return cls(snapshot.operator, between, links, mass, np.full(len(snapshot), UNPLACED), held)

    def put(self, slot: int, lane: int) -> None:
        """Place a slot, away from where it was."""
        if self.lanes[slot] != UNPLACED:
            self.held[self.operator[slot], self.lanes[slot]] -= self.mass[slot]
        self.held[self.operator[slot], lane] += self.mass[slot]
        self.lanes[slot] = lane

    def of(self, slot: int) -> Floats:
        """By lane, what the slot's neighbours there come to."""
        near: Floats = self.between[self.operator[slot]] @ self.held
        row = slice(self.links.indptr[slot], self.links.indptr[slot + 1])
        if row.start < row.stop:
            others = self.links.indices[row]
            there, weights = self.lanes[others], self.links.data[row] * self.mass[others]
            placed = there != UNPLACED
            near = near + np.bincount(there[placed], weights[placed], len(near))
        return near

    def remote_by_operator(self, lane: int) -> Floats:
        """For the slots of each operator on a lane, what all other lanes hold of the operators near theirs."""
        return np.asarray(self.between @ (self.held.sum(axis=1) - self.held[:, lane]))

    def remote_singly(self, slots: Ints, lane: int) -> Floats:
        """For slots of a lane, what their own neighbours on all other lanes come to."""
        elsewhere = (self.lanes != lane) & (self.lanes != UNPLACED)
        return np.asarray(self.links[slots] @ (elsewhere * self.mass)) if self.links.nnz else np.zeros(len(slots))

    def neighbours(self, slot: int) -> tuple[Ints, Floats]:
        """Single neighbours of a slot, and what it counts for with each of them."""
        row = slice(self.links.indptr[slot], self.links.indptr[slot + 1])
        return self.links.indices[row], self.links.data[row] * self.mass[slot]


def _links(snapshot: ClusterSnapshot, weight: Floats) -> Any:
    """Single pairs of slots, in both directions."""
    ends = snapshot.traffic.source, snapshot.traffic.target
    links = csr_array((weight, ends), shape=(len(snapshot),) * 2)
    return csr_array(links + links.T)
