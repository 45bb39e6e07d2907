"""Argument: the work a device has left after its last forward, and the work another device must then run.

Let the last forward of the device end at T. Some of its backwards are left then: `early` of its first stage and `late`
of its last one, whose micro-batches then pass all its stages again. All that is left fits into memory, so T is no
sooner than the work already done allows. After T follow the gradients here, one at a time and each on its path back,
and on the other device all backwards of these micro-batches, none before its gradient arrives. The least over all pairs
of the two numbers is the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from pipesched.checking.devices.head_and_tail import return_path
from pipesched.checking.devices.least_times import least_backward
from pipesched.checking.devices.one_device import Item, OneDevice, most_in
from pipesched.checking.finding import RefusedEvidenceError
from pipesched.deadline import asking
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.results.evidence import ReturnTo

# More numbers of backwards than this are not gone through.
_MOST_NUMBERS = 2_000


def cool_down(problem: Problem, evidence: ReturnTo) -> Ticks:
    """Return a lower bound, in ticks, of the makespan, or of the span of the other device.

    Raises `RefusedEvidenceError` if the device has stages of several chains or none, if its micro-batches do not pass
    the other device before, if passes may run in blocks, if memory has no room for a micro-batch, or if the numbers of
    backwards left are too many to try.
    """
    here = OneDevice(problem, evidence.device)
    if len(here.chains) != 1:
        raise RefusedEvidenceError(f"device {here.device} does not see exactly one chain of stages")
    if here.blocks:
        raise RefusedEvidenceError("nothing is known of passes that run as one block")
    other = _Other(here, evidence.other)
    idle = here.idle_at_first(some_forward_later=True) if here.backward_before_last_forward else 0
    until_then = other.head + here.work + idle + here.idle_between(0)
    after = [other.after(early, late) - most for early, late, most in _left(here)]
    if not after:
        raise RefusedEvidenceError(f"memory of device {here.device} does not hold one micro-batch")
    return until_then + min(after)


class _Other:
    """The other device, whose stages micro-batches pass before the first device (`sooner`) and inside (`between`).

    A stage inside is one between the first device's first and last stages on the chain. `gate` is the stage with whose
    backward the bounded time ends, `head` the least ticks from the start of its forward to the first device's first.
    """

    def __init__(self, here: OneDevice, number: DeviceId) -> None:
        self.here, where = here, here.problem.placement.stage_device
        first, last = here.stages[0], here.stages[-1]
        chain = next(chain for chain in here.problem.placement.chains if first in chain)
        upstream, inside = chain[: chain.index(first)], chain[chain.index(first) : chain.index(last)]
        self.sooner = [s for s in upstream if where[s] == number]
        self.between = [s for s in inside if where[s] == number]
        if not self.sooner:
            raise RefusedEvidenceError(f"micro-batches do not pass device {number} before device {here.device}")
        makespan = here.problem.objective.from_zero
        self.gate = chain[0] if makespan else self.sooner[0]
        self.head = here.times[first].begins - here.times[self.gate].begins

    def after(self, early: int, late: int) -> Ticks:
        """Return the least ticks from the end of the first device's last forward to the last end that the bound counts.

        `early` and `late` are the numbers of backwards that the first device then has left, on its first stage and on
        each later one.
        """
        return max(self._returning(early, late), self._running(early, late))

    def _returning(self, early: int, late: int) -> Ticks:
        """Return the least ticks from the first device's last forward until its last gradients reach the stage `gate`.

        `early` and `late` are the numbers of backwards that the first device then has left, on its first stage and on
        each later one.
        """
        times, stages = self.here.times, self.here.stages
        one = times[stages[-1]]
        # The micro-batch of the last forward has still to come back to the device.
        of_late = max(late * one.gradient, one.returned - one.begins - one.forward)
        of_all = early * times[stages[0]].gradient + late * sum(times[s].gradient for s in stages[1:])
        return max(
            of_late + return_path(self.here, stages[-1], self.gate),
            of_all + return_path(self.here, stages[0], self.gate),
        )

    def _running(self, early: int, late: int) -> Ticks:
        """Return the least ticks from the first device's last forward until the other device has run its backwards.

        These wait for the gradients of the first device to arrive; `early` and `late` are the numbers of backwards that
        it then has left, on its first stage and on each later one.
        """
        first, last = self.here.stages[0], self.here.stages[-1]
        arrivals = [
            (self._arrives(first, self.sooner), (early - late) * self._each(self.sooner)),
            (self._arrives(last, self.sooner), late * self._each(self.sooner)),
        ]
        if self.between:
            arrivals.append((self._arrives(last, self.between), late * self._each(self.between)))
        arrivals.sort(reverse=True)
        work = accumulate(ticks for _, ticks in arrivals)
        return max(since + ticks for (since, _), ticks in zip(arrivals, work, strict=True))

    def _arrives(self, start: StageId, stages: list[StageId]) -> Ticks:
        """Return the ticks from the start of a gradient of stage `start` to its arrival at the last one of `stages`.

        `stages` are in chain order, so that a gradient reaches the last one first.
        """
        times = self.here.times
        return times[stages[-1]].gradient_begins - times[start].gradient_begins

    def _each(self, stages: list[StageId]) -> Ticks:
        """Return the ticks of one micro-batch's backwards on these stages together."""
        return sum(least_backward(self.here.problem.stages[s]) for s in stages)


def _left(here: OneDevice) -> Iterator[tuple[int, int, Ticks]]:
    """Yield possible numbers of backwards left, on the first and on each later stage, and the most ticks of work left.

    Each number is at least 1, the second at most the first; of a single stage they are equal. Memory holds the
    activations of all these backwards. `RefusedEvidenceError` is raised after too many have been yielded.
    """
    stages, numbers = [here.problem.stages[s] for s in here.stages], 0
    everything = here.count[here.stages[0]]
    for early in asking(range(1, everything + 1)):
        for late in range(1, early + 1) if len(stages) > 1 else (early,):
            taken = early * stages[0].activation + late * sum(stage.activation for stage in stages[1:])
            if here.room is not None and taken > here.room:
                break
            numbers += 1
            if numbers > _MOST_NUMBERS:
                raise RefusedEvidenceError(f"device {here.device} may have too many numbers of backwards left")
            whole = early * least_backward(stages[0]) + late * sum(least_backward(stage) for stage in stages[1:])
            room = None if here.room is None else here.room - taken
            yield early, late, whole + most_in(room, _others(here, early, late))


def _others(here: OneDevice, early: int, late: int) -> list[Item]:
    """Return the other work that may be left, as items (ticks, memory, number).

    It is weight passes of other micro-batches, and backwards of inner stages. `early` and `late` are the numbers of
    backwards left on the device's first stage and on each later one.
    """
    items, everything = list[Item](), here.count[here.stages[0]]
    for place, s in enumerate(here.stages):
        stage = here.problem.stages[s]
        if 0 < place < len(here.stages) - 1:
            items.append((least_backward(stage), stage.activation, early - late))
        if stage.weight is not None:
            items.append((stage.weight, stage.activation - stage.freed, everything - (late if place else early)))
    return items
