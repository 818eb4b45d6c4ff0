"""AutoFlow's dataflow, small enough to run one delivery at a time: AutoFlow III-C, Algorithms 1 and 2.

Sources, maps and reducers are joined by FIFO channels; who is served next is the caller's choice. Rows carry no time:
what an operator knows of a row is which barriers the row's own channel had delivered before it. Both algorithms are
then one rule, "a row behind a barrier that moves its slot waits", and differ in who waits for what: a map for the
barrier on its other channels, the receiving reducer for the state.

The print leaves four things to the reader. Its `event_time > marker` is the rule above, and Algorithm 2 needs it as
much as Algorithm 1. A map updates its routing, broadcasts, then flushes. Each message and slot has a buffer of its own,
gone once it is flushed or merged; else messages under way at the same time mix. A reducer that must send a state it
still waits for sends it on when it has come.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from trimtab.vocab import ControlMessage, LaneId, Move, Routing, SlotId

SLOTS = 4


@dataclass(frozen=True)
class Row:
    """A row and where it stood in its source. The epoch is for whoever checks: no operator reads it."""

    source: int
    position: int
    key: int
    epoch: int

    @property
    def slot(self) -> SlotId:
        return self.key % SLOTS


@dataclass(frozen=True)
class Barrier:
    """A control message under way; times count up from 1."""

    time: int
    message: ControlMessage


@dataclass
class State:
    """What a slot remembers: a sum that no order changes, and the positions each (source, key) brought, in order."""

    sums: Counter[int] = field(default_factory=Counter)
    log: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        self.sums[row.key] += row.position + 1
        self.log.setdefault((row.source, row.key), []).append(row.position)


@dataclass(frozen=True)
class Transfer:
    """A state that has left its sender and may reach its receiver at any time."""

    time: int
    move: Move
    state: State


class Astray(Exception):
    """A row was to be processed where the state of its slot is not."""


class Operator:
    """What both algorithms share. `delivered` has the newest barrier of each input channel; `held` the rows that wait.

    As times count up on every channel, a barrier is complete when the least of `delivered` reaches it.
    """

    def __init__(self, inputs: int) -> None:
        self.inputs: list[deque[Row | Barrier]] = [deque() for _ in range(inputs)]
        self.delivered = [0] * inputs
        self.held: dict[tuple[int, SlotId], list[Row]] = {}
        self.waited: list[tuple[int, Row]] = []

    def take(self, channel: int) -> None:
        """Handle the next item of an input channel."""
        item = self.inputs[channel].popleft()
        if isinstance(item, Row):
            self.on_row(item, self.delivered[channel])
        else:
            self.on_barrier(item, channel)

    def on_barrier(self, barrier: Barrier, channel: int) -> None:
        for move in barrier.message.moves:
            if self.awaits(move):
                self.held.setdefault((barrier.time, move.slot), [])
        self.delivered[channel] = barrier.time
        if min(self.delivered) == barrier.time:
            self.on_complete(barrier)

    def on_row(self, row: Row, delivered: int) -> None:
        """A row waits for the newest move of its slot that its channel has told of and that is still under way."""
        times = [time for time, slot in self.held if slot == row.slot and time <= delivered]
        if times:
            self.held[max(times), row.slot].append(row)
            self.waited.append((max(times), row))
        else:
            self.process(row)

    def release(self, time: int, slot: SlotId) -> None:
        for row in self.held.pop((time, slot)):
            self.process(row)

    def awaits(self, move: Move) -> bool:
        raise NotImplementedError

    def on_complete(self, barrier: Barrier) -> None:
        raise NotImplementedError

    def process(self, row: Row) -> None:
        raise NotImplementedError


class Reducer(Operator):
    """Algorithm 2."""

    def __init__(self, lane: LaneId, maps: int, routing: Routing, flow: Dataflow) -> None:
        super().__init__(maps)
        self.lane, self.flow = lane, flow
        self.states = {slot: State() for slot, owner in enumerate(routing.slots[0]) if owner == lane}
        self.leaving: list[tuple[int, Move]] = []

    def awaits(self, move: Move) -> bool:
        return move.target == self.lane

    def on_complete(self, barrier: Barrier) -> None:
        self.leaving += [(barrier.time, move) for move in barrier.message.moves if move.source == self.lane]
        self.send()

    def send(self) -> None:
        """Send the states that must leave and are here; those still to come follow when they have."""
        for time, move in tuple(self.leaving):
            if move.slot in self.states:
                self.leaving.remove((time, move))
                self.flow.transfers.append(Transfer(time, move, self.states.pop(move.slot)))

    def receive(self, transfer: Transfer) -> None:
        self.states[transfer.move.slot] = transfer.state
        self.release(transfer.time, transfer.move.slot)
        self.send()

    def process(self, row: Row) -> None:
        if row.slot not in self.states:
            raise Astray(f"{row} on lane {self.lane}")
        self.states[row.slot].add(row)
        self.flow.trace.append((self.lane, row))


class Map(Operator):
    """Algorithm 1. `outputs` has the channel to each reducer."""

    def __init__(self, sources: int, routing: Routing, outputs: Sequence[deque[Row | Barrier]]) -> None:
        super().__init__(sources)
        self.routing, self.outputs = routing, outputs

    def awaits(self, move: Move) -> bool:
        return True

    def on_complete(self, barrier: Barrier) -> None:
        self.routing = self.routing.apply(barrier.message)
        self.broadcast(barrier)
        self.flush(barrier)

    def broadcast(self, barrier: Barrier) -> None:
        for output in self.outputs:
            output.append(barrier)

    def flush(self, barrier: Barrier) -> None:
        for move in barrier.message.moves:
            self.release(barrier.time, move.slot)

    def process(self, row: Row) -> None:
        self.outputs[self.routing.slots[0][row.slot]].append(row)


class Dataflow:
    """The whole graph, its sources emptied into the maps' channels; `trace` tells who processed what, in order.

    Channels have no bound, so emptying the sources first leaves out no interleaving. The rows of one source and
    key share a map: two paths through the graph have no order between them.
    """

    def __init__(
        self,
        streams: Sequence[Sequence[Row | Barrier]],
        routing: Routing,
        maps: int,
        kinds: tuple[type[Map], type[Reducer]] = (Map, Reducer),
    ) -> None:
        self.trace: list[tuple[LaneId, Row]] = []
        self.transfers: list[Transfer] = []
        self.reducers = [kinds[1](lane, maps, routing, self) for lane in range(routing.lanes)]
        self.maps = [
            kinds[0](len(streams), routing, [reducer.inputs[each] for reducer in self.reducers]) for each in range(maps)
        ]
        for source, stream in enumerate(streams):
            for item in stream:
                paths = [self.maps[(source + item.key) % maps]] if isinstance(item, Row) else self.maps
                for path in paths:
                    path.inputs[source].append(item)

    @property
    def operators(self) -> list[Operator]:
        return [*self.maps, *self.reducers]

    def steps(self) -> Sequence[Callable[[], None]]:
        """All that may happen next. A state that arrives before its receiver's barrier is complete waits unread."""
        deliveries = [
            partial(operator.take, channel)
            for operator in self.operators
            for channel, items in enumerate(operator.inputs)
            if items
        ]
        arrivals = [
            partial(self.arrive, transfer)
            for transfer in self.transfers
            if min(self.reducers[transfer.move.target].delivered) >= transfer.time
        ]
        return deliveries + arrivals

    def arrive(self, transfer: Transfer) -> None:
        self.transfers.remove(transfer)
        self.reducers[transfer.move.target].receive(transfer)

    def run(self, choose: Callable[[int], int] = lambda count: 0) -> None:
        """Take steps until none is left; `choose` picks one of so many."""
        while steps := self.steps():
            steps[choose(len(steps))]()
