"""States of orders in which activations are held in one way or another, and what may be next in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from solver.diagram.activation_modes.relaxation import ModelledStage, ModeRelaxation


class State(NamedTuple):
    """By kept stage how many forwards have begun; by way how many in flight have done each step, forward first.

    `runs` has by device the kept stage whose gradient is its last pass so far; None where that is another one, or no
    copy back is in question.
    """

    begun: tuple[int, ...]
    in_flight: tuple[tuple[int, ...], ...]
    runs: tuple[int | None, ...]


class Label(NamedTuple):
    """When each stream is free, when each device would be had it run all weight passes, and times in queues.

    The oldest first: of micro-batches between two kept stages when they come to each stage forwards, and back; of those
    held in each way when their gradients may begin, and when their last step ended, if that has to be known.
    """

    free: tuple[int, ...]
    over: tuple[int, ...]
    queues: tuple[tuple[int, ...], ...]


class Move(NamedTuple):
    """What may be next in a state, to which one it leads, and how it changes a label.

    It starts no sooner than `since` and than the oldest of the queues that it `takes` from, or than the step before
    that is at `after`, a queue and a place, where its own end is noted; and when all work of the `device` but `slack`
    ticks is done. It takes `ticks` of a `stream` and is `work` of the device. Queues get its end, and so many ticks.
    What counts has ended `ends` ticks behind its end.

    A copy back runs either `behind` the last pass of the device, or `beside` it: then that pass ends no sooner than all
    work but `slack` ticks.
    """

    state: State
    since: int
    takes: tuple[int, ...]
    after: tuple[int, int] | None
    slack: int | None
    device: int
    stream: int | None
    ticks: int
    work: int
    puts: tuple[tuple[int, int], ...]
    ends: int | None
    behind: bool = False
    beside: bool = False


class States:
    """The states of a relaxation. Queues towards kept stages are numbered first, those back next, then ways'."""

    def __init__(self, holding: ModeRelaxation) -> None:
        self._holding = holding
        self._back = len(holding.stages)
        self._turn = 2 * self._back
        self._steps = self._turn + len(holding.ways)
        self._done = 2 + max(len(way.steps) for way in holding.ways)
        # Where a step may take memory while a gradient runs.
        steps = ((holding.stages[way.stage].device, step) for way in holding.ways for step in way.steps)
        self._watched = {device for device, step in steps if step.takes > 0 and step.stream != device}

    @property
    def first(self) -> tuple[State, Label]:
        """Before the first forward."""
        own = self._holding
        none_yet = tuple((0,) * (1 + len(way.steps)) for way in own.ways)
        state = State((0,) * len(own.stages), none_yet, (None,) * len(own.devices))
        return state, Label((0,) * own.streams, (0,) * len(own.devices), ((),) * (self._steps + len(own.ways)))

    def rank(self, state: State) -> int:
        """Each move leads to a higher one."""
        through = sum(state.begun) - sum(own[0] for own in state.in_flight)
        return through * self._done + sum(map(sum, state.in_flight))

    @cached_property
    def last_rank(self) -> int:
        """When all passes of kept stages have run."""
        return self._done * sum(stage.microbatches for stage in self._holding.stages)

    def left(self, state: State) -> list[tuple[int, int]]:
        """By device what it computes until its last gradient has ended, at least, and what all weight passes take."""
        own, found = self._holding, [(0, 0)] * len(self._holding.devices)
        again = [
            [step.ticks if step.stream == own.stages[way.stage].device else 0 for step in way.steps] for way in own.ways
        ]
        for at, stage in enumerate(own.stages):
            here = [n for n, way in enumerate(own.ways) if way.stage == at]
            ahead = stage.microbatches - state.begun[at]
            behind = ahead + sum(state.in_flight[n][0] for n in here)
            until, weights = found[stage.device]
            until += ahead * (stage.forward + min(sum(again[n]) for n in here)) + behind * stage.gradient
            for n in here:
                flying, *done = state.in_flight[n]
                until += sum((flying - one) * ticks for one, ticks in zip(done, again[n], strict=True))
            found[stage.device] = until, weights + behind * stage.later
        return found

    def moves(self, state: State, queues: Sequence[Sequence[int]]) -> Iterator[Move]:
        """Every forward, step and gradient that memory admits; of the queues their lengths alone are read."""
        held = [0] * len(self._holding.devices)
        for way, (flying, *done) in zip(self._holding.ways, state.in_flight, strict=True):
            steps = sum(one * step.takes for one, step in zip(done, way.steps, strict=True))
            held[self._holding.stages[way.stage].device] += flying * way.stays + steps
        for n, way in enumerate(self._holding.ways):
            stage = self._holding.stages[way.stage]
            yield from self._forward(state, n, stage, queues, held[stage.device])
            for number in range(len(way.steps)):
                yield from self._step(state, n, number, held[stage.device])
            yield from self._gradient(state, n, stage, queues, held[stage.device])

    def _forward(
        self, state: State, n: int, stage: ModelledStage, queues: Sequence[Sequence[int]], held: int
    ) -> Iterator[Move]:
        way, begun = self._holding.ways[n], state.begun
        at = way.stage
        comes = begun[at] < stage.microbatches if stage.before is None else len(queues[at]) > 0
        slack = self._slack(stage, held + stage.activation)
        if not comes or (slack is not None and slack < 0):
            return
        flying, runs = _more(state.in_flight, n, (0,)), self._runs(state, stage.device, None)
        after = State((*begun[:at], begun[at] + 1, *begun[at + 1 :]), flying, runs)
        puts = [(self._turn + n, stage.turns)]
        puts += [] if stage.behind is None else [(stage.behind, self._holding.stages[stage.behind].comes)]
        puts += [(self._steps + n, 0)] if way.timed else []
        ends = stage.turns + stage.gradient + stage.tail
        takes = () if stage.before is None else (at,)
        since = stage.comes if stage.before is None else 0
        yield Move(
            after,
            since,
            takes,
            None,
            slack,
            stage.device,
            stage.device,
            stage.forward,
            stage.forward,
            tuple(puts),
            ends,
        )

    def _step(self, state: State, n: int, number: int, held: int) -> Iterator[Move]:
        way, own, stages = self._holding.ways[n], state.in_flight[n], self._holding.stages
        step, stage = way.steps[number], stages[way.stage]
        slack = self._slack(stage, held + step.takes)
        if own[number] == own[number + 1] or (step.takes > 0 and slack is not None and slack < 0):
            return
        computes, last = step.stream == stage.device, state.runs[stage.device]
        runs = self._runs(state, stage.device, None) if computes else state.runs
        after = State(state.begun, _more(state.in_flight, n, (number + 1,)), runs)
        timed = (self._steps + n, own[number + 1]) if way.timed else None
        work = step.ticks if computes else 0
        move = Move(after, 0, (), timed, slack, stage.device, step.stream, step.ticks, work, (), None)
        if computes:
            yield move
        elif step.takes <= 0:
            yield move._replace(slack=None)
        else:
            yield move._replace(behind=True)
            also, later = (0, 0) if last is None else (stages[last].activation, stages[last].later)
            slack = self._slack(stage, held + step.takes + also)
            if slack is None or slack >= 0:
                yield move._replace(slack=None if slack is None else slack + later, beside=True)

    def _gradient(
        self, state: State, n: int, stage: ModelledStage, queues: Sequence[Sequence[int]], held: int
    ) -> Iterator[Move]:
        way, at = self._holding.ways[n], self._holding.ways[n].stage
        slack = self._slack(stage, held)
        comes = stage.behind is None or len(queues[self._back + at]) > 0
        if not state.in_flight[n][-1] or not comes or (slack is not None and slack < 0):
            return
        flying, runs = _more(state.in_flight, n, range(1 + len(way.steps)), -1), self._runs(state, stage.device, at)
        after = State(state.begun, flying, runs)
        takes = [self._turn + n]
        takes += [] if stage.behind is None else [self._back + at]
        takes += [self._steps + n] if way.timed else []
        puts = () if stage.before is None or stage.back is None else ((self._back + stage.before, stage.back),)
        ends = stage.back if stage.before is None else None
        work = stage.gradient + stage.later
        yield Move(after, 0, tuple(takes), None, slack, stage.device, stage.device, stage.gradient, work, puts, ends)

    def _runs(self, state: State, device: int, stage: int | None) -> tuple[int | None, ...]:
        """With this stage's gradient as the device's last pass, if that is looked at."""
        new = stage if device in self._watched else None
        return (*state.runs[:device], new, *state.runs[device + 1 :])

    def _slack(self, stage: ModelledStage, held: int) -> int | None:
        """The ticks of weight passes that may be left where so much is held besides; below 0 where that is too much."""
        device = self._holding.devices[stage.device]
        if device.room is None:
            return None
        if held > device.room:
            return -1
        return None if device.waiting <= 0 else (device.room - held) // device.waiting * device.longest


def _more(
    in_flight: tuple[tuple[int, ...], ...], n: int, numbers: Sequence[int], more: int = 1
) -> tuple[tuple[int, ...], ...]:
    """Of way n so many more that have done these."""
    own = tuple(one + more if number in numbers else one for number, one in enumerate(in_flight[n]))
    return (*in_flight[:n], own, *in_flight[n + 1 :])
