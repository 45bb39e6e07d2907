"""States of orders in which activations are held in one way or another, and what may be next in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from solver.diagram.held.holding import COMPUTE, Holding


class State(NamedTuple):
    """By kept stage how many forwards have begun; by way how many in flight have done each step, forward first.

    `runs` is the kept stage whose gradient is the last step of the passes' stream so far, None where it is another one
    or no copy back is in question.
    """

    begun: tuple[int, ...]
    in_flight: tuple[tuple[int, ...], ...]
    runs: int | None = None


class Label(NamedTuple):
    """When each stream is free, when that of the passes would be had all weight passes run, and times in queues.

    The oldest first: of micro-batches between two kept stages when they come to each stage forwards, and back; of those
    held in each way when their gradients may begin, and when their last step ended, if that has to be known.
    """

    free: tuple[int, ...]
    with_weights: int
    queues: tuple[tuple[int, ...], ...]


class Move(NamedTuple):
    """What may be next in a state, to which one it leads, and how it changes a label.

    It starts no sooner than `since` and than the oldest of the queues that it `takes` from, or than the step before
    that is at `after`, a queue and a place, where its own end is noted; and when all work that could have run but
    `slack` ticks is done. It takes `ticks` of a `stream`, and `later` ticks of a weight pass can run from then on.
    Queues get its end, and so many ticks. What counts has ended `ends` ticks behind its end.

    A copy back runs either `behind` the last step of the passes' stream, or `beside` it: then that step ends no sooner
    than all work but `slack` ticks.
    """

    state: State
    since: int
    takes: tuple[int, ...]
    after: tuple[int, int] | None
    slack: int | None
    stream: int | None
    ticks: int
    later: int
    puts: tuple[tuple[int, int], ...]
    ends: int | None
    behind: bool = False
    beside: bool = False


class States:
    """The states of a relaxation. Queues towards kept stages are numbered first, those back next, then ways'."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding
        self._back = len(holding.stages)
        self._turn = 2 * self._back
        self._steps = self._turn + len(holding.ways)
        self._done = 2 + max(len(way.steps) for way in holding.ways)
        # Whether a step may take memory while a gradient runs.
        self._watched = any(step.takes > 0 and step.stream != COMPUTE for way in holding.ways for step in way.steps)

    @property
    def first(self) -> tuple[State, Label]:
        """Before the first forward."""
        own = self._holding
        state = State((0,) * len(own.stages), tuple((0,) * (1 + len(way.steps)) for way in own.ways))
        return state, Label((0,) * own.streams, 0, ((),) * (self._steps + len(own.ways)))

    def rank(self, state: State) -> int:
        """Each move leads to a higher one."""
        through = sum(state.begun) - sum(own[0] for own in state.in_flight)
        return through * self._done + sum(map(sum, state.in_flight))

    @cached_property
    def last_rank(self) -> int:
        """When all passes of kept stages have run."""
        return self._done * sum(stage.microbatches for stage in self._holding.stages)

    def left(self, state: State) -> tuple[int, int]:
        """The least ticks until the last gradient has ended, and what all weight passes take that are behind."""
        own, until, weights = self._holding, 0, 0
        again = [sum(step.ticks for step in way.steps if step.stream == COMPUTE) for way in own.ways]
        for at, stage in enumerate(own.stages):
            here = [n for n, way in enumerate(own.ways) if way.stage == at]
            ahead = stage.microbatches - state.begun[at]
            behind = ahead + sum(state.in_flight[n][0] for n in here)
            until += ahead * (stage.forward + min(again[n] for n in here)) + behind * stage.gradient
            weights += behind * stage.later
        for way, (flying, *done) in zip(own.ways, state.in_flight, strict=True):
            until += sum((flying - n) * s.ticks for n, s in zip(done, way.steps, strict=True) if s.stream == COMPUTE)
        return until, weights

    def moves(self, state: State, queues: Sequence[Sequence[int]]) -> Iterator[Move]:
        """Every forward, step and gradient that memory admits; of the queues their lengths alone are read."""
        held = 0
        for way, (flying, *done) in zip(self._holding.ways, state.in_flight, strict=True):
            held += flying * way.stays + sum(n * step.takes for n, step in zip(done, way.steps, strict=True))
        for n, way in enumerate(self._holding.ways):
            yield from self._forward(state, n, queues, held)
            for number in range(len(way.steps)):
                yield from self._step(state, n, number, held)
            yield from self._gradient(state, n, queues, held)

    def _forward(self, state: State, n: int, queues: Sequence[Sequence[int]], held: int) -> Iterator[Move]:
        way, begun, at = self._holding.ways[n], state.begun, self._holding.ways[n].stage
        stage = self._holding.stages[at]
        comes = begun[at] < stage.microbatches if stage.before is None else len(queues[at]) > 0
        if not comes or not self._fits(more := held + stage.activation):
            return
        puts = [(self._turn + n, stage.turns)]
        puts += [] if stage.behind is None else [(stage.behind, self._holding.stages[stage.behind].comes)]
        puts += [(self._steps + n, 0)] if way.timed else []
        yield Move(
            State((*begun[:at], begun[at] + 1, *begun[at + 1 :]), _more(state.in_flight, n, (0,))),
            since=stage.comes if stage.before is None else 0,
            takes=() if stage.before is None else (at,),
            after=None,
            slack=self._slack(more),
            stream=COMPUTE,
            ticks=stage.forward,
            later=0,
            puts=tuple(puts),
            ends=stage.turns + stage.gradient + stage.tail,
        )

    def _step(self, state: State, n: int, number: int, held: int) -> Iterator[Move]:
        way, own = self._holding.ways[n], state.in_flight[n]
        step = way.steps[number]
        if own[number] == own[number + 1] or (step.takes > 0 and not self._fits(held + step.takes)):
            return
        flying, computes = _more(state.in_flight, n, (number + 1,)), step.stream == COMPUTE
        behind = step.takes > 0 and not computes
        move = Move(
            State(state.begun, flying, None if computes else state.runs),
            since=0,
            takes=(),
            after=(self._steps + n, own[number + 1]) if way.timed else None,
            slack=self._slack(held + step.takes) if computes or behind else None,
            stream=step.stream,
            ticks=step.ticks,
            later=0,
            puts=(),
            ends=None,
            behind=behind,
        )
        yield move
        runs = None if state.runs is None else self._holding.stages[state.runs]
        also, later = (0, 0) if runs is None else (runs.activation, runs.later)
        if behind and self._fits(more := held + step.takes + also):
            slack = self._slack(more)
            yield move._replace(slack=None if slack is None else slack + later, behind=False, beside=True)

    def _gradient(self, state: State, n: int, queues: Sequence[Sequence[int]], held: int) -> Iterator[Move]:
        way, at = self._holding.ways[n], self._holding.ways[n].stage
        stage = self._holding.stages[at]
        comes = stage.behind is None or len(queues[self._back + at]) > 0
        if not state.in_flight[n][-1] or not comes or not self._fits(held):
            return
        takes = [self._turn + n]
        takes += [] if stage.behind is None else [self._back + at]
        takes += [self._steps + n] if way.timed else []
        yield Move(
            State(state.begun, _more(state.in_flight, n, range(1 + len(way.steps)), -1), at if self._watched else None),
            since=0,
            takes=tuple(takes),
            after=None,
            slack=self._slack(held),
            stream=COMPUTE,
            ticks=stage.gradient,
            later=stage.later,
            puts=() if stage.before is None or stage.back is None else ((self._back + stage.before, stage.back),),
            ends=stage.back if stage.before is None else None,
        )

    def _fits(self, held: int) -> bool:
        return self._holding.room is None or held <= self._holding.room

    def _slack(self, held: int) -> int | None:
        """The ticks of weight passes that may be left where so much is held besides; None without a limit."""
        own = self._holding
        return None if own.room is None or own.waiting <= 0 else (own.room - held) // own.waiting * own.longest


def _more(
    in_flight: tuple[tuple[int, ...], ...], n: int, numbers: Sequence[int], more: int = 1
) -> tuple[tuple[int, ...], ...]:
    """Of way n so many more that have done these."""
    own = tuple(one + more if number in numbers else one for number, one in enumerate(in_flight[n]))
    return (*in_flight[:n], own, *in_flight[n + 1 :])
