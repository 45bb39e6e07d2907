"""States of partial orders with activation modes, and the moves possible in each state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

from pipesched.problem.quantities import MemorySteps, Ticks
from solver.diagram.activation_modes.relaxation import (
    ModeId,
    ModelledDeviceId,
    ModelledStage,
    ModelledStageId,
    ModeRelaxation,
    StreamId,
)

# A queue of times: an index in `Label.queues`, in the order that `States` gives.
QueueId: TypeAlias = int


class State(NamedTuple):
    """Progress of a partial order.

    `begun`: forwards begun per modelled stage. `in_flight`: for each mode, the micro-batches in flight that have done
    each step, the forward first. `runs`: for each device the modelled stage whose gradient is its last pass so far;
    None if that is another pass, or if no step that takes memory can run during a gradient.
    """

    begun: tuple[int, ...]
    in_flight: tuple[tuple[int, ...], ...]
    runs: tuple[ModelledStageId | None, ...]


class Label(NamedTuple):
    """Times in ticks of a partial order.

    They are when each stream is free (`free`), and each device after all weight passes (`over`). `queues` have times,
    oldest first: arrivals of micro-batches between two modelled stages, forwards and backwards; for each mode the
    earliest starts of the gradient passes, and the ends of the last step if that must be tracked.
    """

    free: tuple[Ticks, ...]
    over: tuple[Ticks, ...]
    queues: tuple[tuple[Ticks, ...], ...]


class Move(NamedTuple):
    """A possible next step in a state: the next state, and the change of the label.

    The step starts at `since` at the earliest. It also starts no sooner than the oldest entry of each queue in `takes`,
    and than the end of the activation's previous step, which is stored at `after` (queue, place) and replaced by the
    end of this one. All work of `device` but `slack` ticks (None: any amount) is done by its start. It takes `ticks` on
    `stream` and counts as `work` ticks of the device. For each (queue, ticks) in `puts`, its end plus the ticks is
    appended to the queue. The objective ends no sooner than `ends` ticks after its end (None: no such bound).

    A reload runs after the last pass of the device (`after_last_pass`) or during it (`during_last_pass`); in the second
    case that pass ends no sooner than all work of the device but `slack` ticks is done.
    """

    state: State
    since: Ticks
    takes: tuple[QueueId, ...]
    after: tuple[QueueId, int] | None
    slack: Ticks | None
    device: ModelledDeviceId
    stream: StreamId | None
    ticks: Ticks
    work: Ticks
    puts: tuple[tuple[QueueId, Ticks], ...]
    ends: Ticks | None
    after_last_pass: bool = False
    during_last_pass: bool = False


class States:
    """States of a relaxation and the moves between them.

    Queues of labels are numbered: forwards arriving at each modelled stage, gradients arriving there, then for each
    mode the starts of gradient passes, then for each mode the ends of the last steps.
    """

    def __init__(self, holding: ModeRelaxation) -> None:
        self._holding = holding
        self._back = len(holding.stages)
        self._turn = 2 * self._back
        self._steps = self._turn + len(holding.modes)
        self._done = 2 + max(len(mode.steps) for mode in holding.modes)
        # Devices on which a step may take memory while a gradient runs.
        steps = ((holding.stages[mode.stage].device, step) for mode in holding.modes for step in mode.steps)
        self._watched = {device for device, step in steps if step.takes > 0 and step.stream != device}

    @property
    def first(self) -> tuple[State, Label]:
        """The state and label before the first forward."""
        relaxation = self._holding
        none_yet = tuple((0,) * (1 + len(mode.steps)) for mode in relaxation.modes)
        state = State((0,) * len(relaxation.stages), none_yet, (None,) * len(relaxation.devices))
        return state, Label(
            (0,) * relaxation.streams, (0,) * len(relaxation.devices), ((),) * (self._steps + len(relaxation.modes))
        )

    def rank(self, state: State) -> int:
        """Return the number of the layer that a state is in, which increases with each move.

        A forward, a copy and a recomputation add 1. A gradient pass adds 1 or more, so that modes with fewer steps add
        up to as much as the one with most.
        """
        through = sum(state.begun) - sum(own[0] for own in state.in_flight)
        return through * self._done + sum(map(sum, state.in_flight))

    @cached_property
    def last_rank(self) -> int:
        """The rank at which all passes of modelled stages have run."""
        return self._done * sum(stage.microbatches for stage in self._holding.stages)

    def left(self, state: State) -> list[tuple[Ticks, Ticks]]:
        """Return by device the least ticks of computation left until its last gradient pass, and of its weight passes.

        Weight passes that are pending in this state do not count.
        """
        relaxation, found = self._holding, [(0, 0)] * len(self._holding.devices)
        again = [
            [step.ticks if step.stream == relaxation.stages[mode.stage].device else 0 for step in mode.steps]
            for mode in relaxation.modes
        ]
        for at, stage in enumerate(relaxation.stages):
            here = [n for n, mode in enumerate(relaxation.modes) if mode.stage == at]
            forwards = stage.microbatches - state.begun[at]
            gradients = forwards + sum(state.in_flight[n][0] for n in here)
            until, weights = found[stage.device]
            until += forwards * (stage.forward + min(sum(again[n]) for n in here)) + gradients * stage.gradient
            for n in here:
                flying, *done = state.in_flight[n]
                until += sum((flying - one) * ticks for one, ticks in zip(done, again[n], strict=True))
            found[stage.device] = until, weights + gradients * stage.later
        return found

    def moves(self, state: State, queues: Sequence[Sequence[Ticks]]) -> Iterator[Move]:
        """Yield every forward, copy, recomputation and gradient pass that may be next in a state and fits the memory.

        `queues` are those of a label of the state; only their lengths are used, which all its labels share.
        """
        memory_in_use = [0] * len(self._holding.devices)
        for mode, (flying, *done) in zip(self._holding.modes, state.in_flight, strict=True):
            steps = sum(one * step.takes for one, step in zip(done, mode.steps, strict=True))
            memory_in_use[self._holding.stages[mode.stage].device] += flying * mode.stays + steps
        for n, mode in enumerate(self._holding.modes):
            stage = self._holding.stages[mode.stage]
            yield from self._forward(state, n, stage, queues, memory_in_use[stage.device])
            for number in range(len(mode.steps)):
                yield from self._step(state, n, number, memory_in_use[stage.device])
            yield from self._gradient(state, n, stage, queues, memory_in_use[stage.device])

    def _forward(
        self,
        state: State,
        n: ModeId,
        stage: ModelledStage,
        queues: Sequence[Sequence[Ticks]],
        memory_in_use: MemorySteps,
    ) -> Iterator[Move]:
        mode, begun = self._holding.modes[n], state.begun
        at = mode.stage
        arrived = begun[at] < stage.microbatches if stage.predecessor is None else len(queues[at]) > 0
        slack = self._slack(stage, memory_in_use + stage.activation)
        if not arrived or (slack is not None and slack < 0):
            return
        flying, runs = _more(state.in_flight, n, (0,)), self._runs(state, stage.device, None)
        after = State((*begun[:at], begun[at] + 1, *begun[at + 1 :]), flying, runs)
        puts = [(self._turn + n, stage.round_trip)]
        puts += (
            [] if stage.successor is None else [(stage.successor, self._holding.stages[stage.successor].arrival_lag)]
        )
        puts += [(self._steps + n, 0)] if mode.timed else []
        ends = stage.round_trip + stage.gradient + stage.tail
        takes = () if stage.predecessor is None else (at,)
        since = stage.arrival_lag if stage.predecessor is None else 0
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

    def _step(self, state: State, n: ModeId, number: int, memory_in_use: MemorySteps) -> Iterator[Move]:
        mode, done, stages = self._holding.modes[n], state.in_flight[n], self._holding.stages
        step, stage = mode.steps[number], stages[mode.stage]
        slack = self._slack(stage, memory_in_use + step.takes)
        if done[number] == done[number + 1] or (step.takes > 0 and slack is not None and slack < 0):
            return
        computes, last = step.stream == stage.device, state.runs[stage.device]
        runs = self._runs(state, stage.device, None) if computes else state.runs
        after = State(state.begun, _more(state.in_flight, n, (number + 1,)), runs)
        timed = (self._steps + n, done[number + 1]) if mode.timed else None
        work = step.ticks if computes else 0
        move = Move(after, 0, (), timed, slack, stage.device, step.stream, step.ticks, work, (), None)
        if computes:
            yield move
        elif step.takes <= 0:
            yield move._replace(slack=None)
        else:
            yield move._replace(after_last_pass=True)
            also, later = (0, 0) if last is None else (stages[last].activation, stages[last].later)
            slack = self._slack(stage, memory_in_use + step.takes + also)
            if slack is None or slack >= 0:
                yield move._replace(slack=None if slack is None else slack + later, during_last_pass=True)

    def _gradient(
        self,
        state: State,
        n: ModeId,
        stage: ModelledStage,
        queues: Sequence[Sequence[Ticks]],
        memory_in_use: MemorySteps,
    ) -> Iterator[Move]:
        mode, at = self._holding.modes[n], self._holding.modes[n].stage
        slack = self._slack(stage, memory_in_use)
        arrived = stage.successor is None or len(queues[self._back + at]) > 0
        if not state.in_flight[n][-1] or not arrived or (slack is not None and slack < 0):
            return
        flying, runs = _more(state.in_flight, n, range(1 + len(mode.steps)), -1), self._runs(state, stage.device, at)
        after = State(state.begun, flying, runs)
        takes = [self._turn + n]
        takes += [] if stage.successor is None else [self._back + at]
        takes += [self._steps + n] if mode.timed else []
        puts = (
            () if stage.predecessor is None or stage.back is None else ((self._back + stage.predecessor, stage.back),)
        )
        ends = stage.back if stage.predecessor is None else None
        work = stage.gradient + stage.later
        yield Move(after, 0, tuple(takes), None, slack, stage.device, stage.device, stage.gradient, work, puts, ends)

    def _runs(
        self, state: State, device: ModelledDeviceId, stage: ModelledStageId | None
    ) -> tuple[ModelledStageId | None, ...]:
        """Return `state.runs` with the gradient of `stage` as the device's last pass, if that is tracked there."""
        new = stage if device in self._watched else None
        return (*state.runs[:device], new, *state.runs[device + 1 :])

    def _slack(self, stage: ModelledStage, memory_in_use: MemorySteps) -> Ticks | None:
        """Return the ticks of weight passes that may be pending on a stage's device.

        Meanwhile `memory_in_use` is occupied otherwise. None without limit; -1 if `memory_in_use` exceeds the memory.
        """
        device = self._holding.devices[stage.device]
        if device.room is None:
            return None
        if memory_in_use > device.room:
            return -1
        return None if device.waiting <= 0 else (device.room - memory_in_use) // device.waiting * device.longest


def _more(
    in_flight: tuple[tuple[int, ...], ...], n: ModeId, numbers: Sequence[int], more: int = 1
) -> tuple[tuple[int, ...], ...]:
    """Return by mode the micro-batches in flight that have done each step (`State.in_flight`), changed for mode `n`.

    `more` is added to the entries `numbers` of that mode.
    """
    own = tuple(one + more if number in numbers else one for number, one in enumerate(in_flight[n]))
    return (*in_flight[:n], own, *in_flight[n + 1 :])
