"""Steps of modelled stages with activation modes: states of orders, and the moves possible in each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from pipesched.checking.devices.least_times import LeastTimes, least_times
from pipesched.problem.passes import RECOMPUTATIONS
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, Ticks

# Any number of weight passes may be pending; and more than a micro-batch that is not done counts.
ANY, _DONE = -1, 5
# What a micro-batch has run: nothing; a copy out that has not ended; one that has, so that the copy back is next.
FORWARD, COPIED, _BACK = -1, 1, 2

# A modelled stage, a device of modelled stages, a stream of these devices, a queue of times: indices in
# `Orders.stages`, in `Orders.devices`, in what a label has by stream (compute streams first), and in `Times`.
ModelledStageId: TypeAlias = int
ModelledDeviceId: TypeAlias = int
StreamId: TypeAlias = int
QueueId: TypeAlias = int
State = tuple[int, ...]
# Free times by stream, compute streams first; when each device has run all it could; the end so far; then queues of
# times, oldest first.
Times = list[list[int]]
FREE, RUN, END, _QUEUES = 0, 1, 2, 3
# A number, and how much each of these entries of a state adds to it.
Sum = tuple[int, list[tuple[int, int]]]


def sum_over(one: Sum, state: State) -> int:
    """Return the value of a linear form over a state.

    That is its constant, and weight times entry for some entries of the state. `one` is (constant, pairs of entry
    number and weight).
    """
    found, entries = one
    for entry, weight in entries:
        found += weight * state[entry]
    return found


class ActivationMode(NamedTuple):
    """A mode of a stage's activation.

    States count micro-batches at each step since the forward from entry `slot` on. `holds` has by step the memory in
    use, `work` the compute ticks left before the gradient. The queue `ready` has the least starts of gradients. An
    offloaded activation waits in the queue `waits` for the stream `out`, is copied until the times in `ran`, and is
    reloaded on `back`, both given as (stream, ticks); `waits` is 0 in other modes. A recomputed one has one step, on
    the compute stream.
    """

    stage: ModelledStageId
    slot: int
    holds: tuple[MemorySteps, ...]
    work: tuple[Ticks, ...]
    ready: QueueId
    waits: QueueId = 0
    ran: QueueId = 0
    out: tuple[StreamId, Ticks] = (0, 0)
    back: tuple[StreamId, Ticks] = (0, 0)

    @property
    def slots(self) -> range:
        return range(self.slot, self.slot + len(self.holds))


class ModelledStage(NamedTuple):
    """A modelled stage: its device, number of micro-batches, memory of an activation, least times, and modes.

    States count its forwards at entry `begun`. Its next forwards wait in `forward_queue`, its gradients in
    `gradient_queue`. `back` is the time from the end of a gradient until the chain's first stage has nothing left.
    `before` and `after` are the modelled stages next to it on its chain; None for the chain's first and last modelled
    one.
    """

    device: ModelledDeviceId
    number: int
    activation: MemorySteps
    times: LeastTimes
    back: Ticks
    begun: int
    forward_queue: QueueId
    gradient_queue: QueueId
    before: ModelledStageId | None
    after: ModelledStageId | None
    modes: list[ActivationMode]

    @property
    def later(self) -> Ticks:
        """The ticks of a backward that remain after its gradient pass."""
        return self.times.backward - self.times.gradient

    @property
    def left(self) -> Sum:
        """The number of micro-batches whose gradients have not begun, as a linear form over states."""
        return self.number, [(self.begun, -1), *((slot, 1) for mode in self.modes for slot in mode.slots)]


class Move(NamedTuple):
    """A step of a micro-batch in a mode, and the state after the step.

    `phase` is the number of steps since the micro-batch's forward (-1: the forward). At most `open_` weight passes may
    be pending then (-1: any number). A reload with `after_last_step` starts after the last step of the compute stream;
    else while a step of that stream runs, which has `later` ticks of weight work after it if it is a gradient.
    """

    mode: ActivationMode
    phase: int
    state: State
    open_: int = ANY
    after_last_step: bool = False
    later: Ticks = 0


class Orders:
    """All orders of the modelled stages' steps: the layout of states and labels, and the moves possible in each state.

    A state is a tuple of numbers: by device the stage (from 1) whose gradient it runs, 0 where that does not matter;
    then by stage how many micro-batches have begun and how many are at each step of each mode. `moves(state)` yields
    its moves, `begin()` is the first label, `cuts(state)` are the indices where the groups of a label's times begin in
    that state, and the label's length. `first` and `last` are the states before and after all steps.

    `owner` is the modelled device whose span counts, None for the makespan. By modelled device, `of_device` has its
    stages, `streams_of` its streams, and `longest` the ticks of its longest weight pass. `waiting` has for each queue
    the stream that waits for its times, or None. `rank` is the number of steps run in a state, as a linear form.
    """

    def __init__(self, problem: Problem, stages: tuple[StageId, ...], owner: DeviceId | None) -> None:
        where, plain = problem.placement, least_times(problem.keeping_activations())
        self.devices = list(dict.fromkeys(where.stage_device[s] for s in stages))
        self.owner = None if owner is None else self.devices.index(owner)
        # A state begins with the stage, counted from 1, whose gradient each device runs.
        self.stages, self._entries = list[ModelledStage](), len(self.devices)
        self._streams = [(n, problem.stages[0].stream) for n in range(len(self.devices))]
        # The stream that waits for the times of a queue, if any.
        self.waiting: list[StreamId | None] = [None] * _QUEUES
        for along in where.chains:
            modelled = [s for s in along if s in stages]
            for n, s in enumerate(modelled):
                first, last, whole = n == 0, n + 1 == len(modelled), plain[along[0]]
                self._add(problem, s, plain[s], whole.gradient_begins + whole.backward, first, last)
        self.of_device = [[one for one in self.stages if one.device == d] for d in range(len(self.devices))]
        self.streams_of = [[n for n, (on, _) in enumerate(self._streams) if on == d] for d in range(len(self.devices))]
        self._limits(problem, stages)
        self._sums()
        self.first: State = (0,) * self._entries
        self.last = self.first[: len(self.devices)] + tuple(
            next((one.number for one in self.stages if one.begun == entry), 0)
            for entry in range(len(self.devices), self._entries)
        )

    def _add(self, problem: Problem, s: StageId, times: LeastTimes, done: Ticks, first: bool, last: bool) -> None:
        """Add stage `s` to the model, after those before it on its chain.

        `done` is the least ticks from the beginning of a micro-batch to its end; `first` and `last` are True for the
        first and the last modelled stage of the chain.
        """
        stage, number, device = (
            problem.stages[s],
            len(self.stages),
            self.devices.index(problem.placement.stage_device[s]),
        )
        begun, forward_queue, gradient_queue, modes = (
            self._entry(),
            self._queue(device),
            self._queue(device),
            list[ActivationMode](),
        )
        for kind, (keeps, _) in stage.memory_until_backward.items():
            whole, ready = stage.activation, self._queue(device)
            if kind is None:
                modes.append(ActivationMode(number, self._entry(), (whole,), (0,), ready))
            elif kind in RECOMPUTATIONS:
                again = stage.recompute[RECOMPUTATIONS.index(kind)].ticks
                modes.append(ActivationMode(number, self._entry(2), (keeps, whole), (again, 0), ready))
            else:
                assert stage.offload is not None
                out = self._stream(device, stage.offload.out_stream), stage.offload.out_ticks
                back = self._stream(device, stage.offload.in_stream), stage.offload.in_ticks
                a, b = (ticks if stream == device else 0 for stream, ticks in (out, back))
                holds, queues = (whole, whole, keeps, whole), (self._queue(out[0]), self._queue(None))
                modes.append(ActivationMode(number, self._entry(4), holds, (a + b, b, b, 0), ready, *queues, out, back))
        near = None if first else number - 1, None if last else number + 1
        count, back_to_first = len(problem.microbatches_of[s]), done - times.returned
        self.stages.append(
            ModelledStage(
                device,
                count,
                stage.activation,
                times,
                back_to_first,
                begun,
                forward_queue,
                gradient_queue,
                *near,
                modes,
            )
        )

    def _entry(self, number: int = 1) -> int:
        self._entries += number
        return self._entries - number

    def _queue(self, waiting: StreamId | None) -> QueueId:
        self.waiting.append(waiting)
        return len(self.waiting) - 1

    def _stream(self, device: ModelledDeviceId, name: str) -> StreamId:
        if (device, name) not in self._streams:
            self._streams.append((device, name))
        return self._streams.index((device, name))

    def _limits(self, problem: Problem, stages: tuple[StageId, ...]) -> None:
        """Set what limits the order: by device the memory, the least memory that a pending weight pass occupies (0
        without), and the ticks of the longest weight pass; then the modes of all stages, and the devices where a copy
        back may start while a gradient runs."""
        self._rooms = [problem.room[device] for device in self.devices]
        self.longest = [max(one.later for one in of_device) for of_device in self.of_device]
        self._open = list[int]()
        for device in self.devices:
            of_device = [problem.stages[s] for s in stages if problem.placement.stage_device[s] == device]
            self._open.append(
                min((one.activation - one.freed for one in of_device if one.weight is not None), default=0)
            )
        self.modes = [mode for one in self.stages for mode in one.modes]
        # Where a copy back may start while a gradient runs.
        compute = len(self.devices)
        self._watched = {
            self.stages[mode.stage].device for mode in self.modes if mode.waits and mode.back[0] >= compute
        }

    def _sums(self) -> None:
        """Set the linear forms over states (`Sum`).

        They give steps run, memory in use by device, and number of times in each queue.
        """
        self.rank: Sum = 0, [(one.begun, _DONE) for one in self.stages]
        self._memory_in_use: list[Sum] = [(0, []) for _ in self.devices]
        lengths: list[Sum] = [(0, [])] * len(self.waiting)
        lengths[FREE], lengths[RUN], lengths[END] = (len(self._streams), []), (len(self.devices), []), (1, [])
        for mode in self.modes:
            self.rank[1].extend((slot, n + 1 - _DONE) for n, slot in enumerate(mode.slots))
            self._memory_in_use[self.stages[mode.stage].device][1].extend(zip(mode.slots, mode.holds, strict=True))
            lengths[mode.ready] = 0, [(slot, 1) for slot in mode.slots]
            if mode.waits:
                lengths[mode.waits], lengths[mode.ran] = (0, [(mode.slot, 1)]), (0, [(mode.slot + 1, 1)])
        for one in self.stages:
            if one.before is not None:
                lengths[one.forward_queue] = 0, [(self.stages[one.before].begun, 1), (one.begun, -1)]
            if one.after is not None:
                lengths[one.gradient_queue] = (
                    0,
                    [*one.left[1], *((n, -each) for n, each in self.stages[one.after].left[1])],
                )
        self._lengths = lengths

    def begin(self) -> tuple[int, ...]:
        return (0,) * (len(self._streams) + len(self.devices) + 1)

    def cuts(self, state: State) -> list[int]:
        """Return the indices at which the groups of a label's times (`Times`) start in this state, and its length."""
        return [*accumulate((sum_over(one, state) for one in self._lengths), initial=0)]

    def moves(self, state: State) -> Iterator[Move]:
        """Yield the possible moves: a forward in any mode, a gradient, and copies or recomputations between them."""
        in_use = [sum_over(form, state) for form in self._memory_in_use]
        for mode in self.modes:
            stage, last = self.stages[mode.stage], len(mode.holds) - 1
            device = stage.device
            came = stage.number if stage.before is None else state[self.stages[stage.before].begun]
            if state[stage.begun] < came and self._fits(device, more := in_use[device] + stage.activation):
                new = self._state_after(state, device, (stage.begun, 1), (mode.slot, 1))
                yield Move(mode, FORWARD, new, self._pending_weights(device, more))
            turned = stage.after is None or sum_over(stage.left, state) > sum_over(self.stages[stage.after].left, state)
            if state[mode.slot + last] and turned and self._fits(device, in_use[device]):
                runs = mode.stage + 1 if sum(sum_over(own.left, state) for own in self.of_device[device]) > 1 else 0
                new = self._state_after(state, device, (mode.slot + last, -1), (device, runs))
                yield Move(mode, last, new, self._pending_weights(device, in_use[device]))
            for phase in range(last):
                if state[mode.slot + phase]:
                    yield from self._saving(state, mode, phase, in_use[device])

    def _saving(self, state: State, mode: ActivationMode, phase: int, in_use: MemorySteps) -> Iterator[Move]:
        """Yield the next moves of a micro-batch after `phase` steps in a mode: a copy or a recomputation.

        The end of an offload is a move too, which occupies no stream. `in_use` is the memory level of the device.
        """
        device, streams = self.stages[mode.stage].device, (mode.out[0], None, mode.back[0]) if mode.waits else (None,)
        stream = streams[phase] if mode.waits else device
        changes = (mode.slot + phase, -1), (mode.slot + phase + 1, 1)
        more = in_use + max(0, mode.holds[phase + 1] - mode.holds[phase])
        if stream == device:
            if self._fits(device, more):
                yield Move(mode, phase, self._state_after(state, device, *changes), self._pending_weights(device, more))
            return
        new = self._state_after(state, None, *changes)
        if phase < _BACK:
            yield Move(mode, phase, new)
        elif self._fits(device, more):
            yield Move(mode, phase, new, self._pending_weights(device, more), after_last_step=True)
            memory_of_running, later = 0, 0
            if state[device]:
                running = self.stages[state[device] - 1]
                memory_of_running, later = running.activation, running.later
            if self._fits(device, more + memory_of_running):
                yield Move(mode, phase, new, self._pending_weights(device, more + memory_of_running), later=later)

    def _state_after(self, state: State, device: ModelledDeviceId | None, *changes: tuple[int, int]) -> State:
        """Return the state with some entries changed; `changes` are (index of an entry, number to add).

        With `device`, a step of its compute stream has run: its entry for the stage whose gradient it runs is reset to
        0. Changes of a device's entry that need not be known are left out.
        """
        new = list(state)
        if device is not None:
            new[device] = 0
        for entry, change in changes:
            if entry >= len(self.devices) or entry in self._watched:
                new[entry] += change
        return tuple(new)

    def _fits(self, device: ModelledDeviceId, in_use: MemorySteps) -> bool:
        room = self._rooms[device]
        return room is None or in_use <= room

    def _pending_weights(self, device: ModelledDeviceId, in_use: MemorySteps) -> int:
        """Return the number of weight passes that may be pending on a device at the memory level `in_use`.

        `ANY` without a limit.
        """
        room, memory_each = self._rooms[device], self._open[device]
        return ANY if room is None or memory_each <= 0 else (room - in_use) // memory_each
