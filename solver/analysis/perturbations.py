"""Perturbations of a problem: more memory, a faster link, faster passes, work moved to a neighbouring stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from pipesched.files.exact_numbers import common_step
from pipesched.problem.formatting import memory_amount
from pipesched.problem.problem import Problem
from pipesched.results.explanation import Perturbation, PerturbationKind

TENTH = Fraction(1, 10)


def changes(problem: Problem, device: int, busiest: int) -> list[Perturbation]:
    """All changes worth trying, the most informative first; `device` is the bottleneck."""
    memory = list(_more_memory(problem))
    memory.sort(key=lambda change: (change.device is not None, change.device != device))
    moves = [move for origin in dict.fromkeys((busiest, device)) for move in _moves(problem, origin)]
    return [*memory[:2], *_faster_transfer(problem), *_faster_passes(problem, device), *moves, *memory[2:]]


def _more_memory(problem: Problem) -> Iterator[Perturbation]:
    """One more activation, of the largest stage there, on all devices that have a limit, and on each."""
    memory, held = problem.memory, problem.placement.stages_of
    more = [max((memory.activation[s] for s in stages), default=0) for stages in held]
    limited = [d for d in range(problem.devices) if memory.capacity[d] is not None and more[d]]

    def with_more(devices: list[int]) -> Problem:
        capacity = [None if c is None else c + more[d] * (d in devices) for d, c in enumerate(memory.capacity)]
        return replace(problem, memory=replace(memory, capacity=tuple(capacity)))

    def sizes(devices: list[int]) -> str:
        amounts = {memory_amount(problem, more[d]) for d in devices}
        return f" ({amounts.pop()} {memory.unit})" if len(amounts) == 1 and memory.unit != "activations" else ""

    if len(limited) > 1:
        text = f"one more activation on every device{sizes(limited)}"
        yield Perturbation(PerturbationKind.MEMORY, text, with_more(limited), True)
    for device in limited:
        yield Perturbation(
            PerturbationKind.MEMORY, f"one more activation on device {device}", with_more([device]), True, device
        )


def _faster_transfer(problem: Problem) -> Iterator[Perturbation]:
    if any(problem.costs.transfer):
        numbers = _Numbers(problem)
        numbers.transfer = [(1 - TENTH) * x for x in numbers.transfer]
        yield Perturbation(PerturbationKind.TRANSFER, "transfers 10 % faster", numbers.problem(), True)


def _faster_passes(problem: Problem, device: int) -> Iterator[Perturbation]:
    """Each kind of pass a tenth faster on one device; a fused backward and a block gain as many ticks as their part."""
    stages = problem.placement.stages_of[device]
    words = {"forward": "forwards (F)", "backward": "backwards for the input (B)", "weight": "weight passes (W)"}
    if not problem.splittable:
        words = {"forward": "forwards (F)", "backward": "backwards (BW)"}
    for kind, name in words.items():
        numbers = _Numbers(problem)
        if any(getattr(numbers, kind)[s] for s in stages):
            for s in stages:
                saved = TENTH * getattr(numbers, kind)[s]
                getattr(numbers, kind)[s] -= saved
                if kind != "forward":
                    numbers.fused[s] = max(Fraction(0), numbers.fused[s] - saved)
                if numbers.overlapped is not None:
                    numbers.overlapped[s] = max(Fraction(0), numbers.overlapped[s] - saved)
            yield Perturbation(
                PerturbationKind.PASSES, f"{name} 10 % faster on device {device}", numbers.problem(), True, device
            )


def _moves(problem: Problem, device: int) -> Iterator[Perturbation]:
    """A tenth of the device's largest stage, in time and memory, to the stage before and the stage after it.

    Where several chains hold the same layers, those of all of them move.
    """
    where = problem.placement
    stages = [s for s in where.stages_of[device] if problem.microbatches_of[s]]
    if not stages:
        return
    stage = max(stages, key=problem.least_work)
    place = where.chains[where.chain_index[stage]].index(stage)
    for neighbour in (where.previous[stage], where.next[stage]):
        if neighbour is None or where.stage_device[neighbour] == device:
            continue
        step = 1 if neighbour == where.next[stage] else -1
        numbers = _Numbers(problem)
        for chain in where.chains:
            numbers.move(chain[place], chain[place + step])
        text = (
            f"10 % of stage {stage}'s times and activation moved to stage {neighbour} "
            f"(device {device} to {where.stage_device[neighbour]})"
        )
        yield Perturbation(PerturbationKind.MOVE, text, numbers.problem(), False, device)


class _Numbers:
    """A problem's numbers, exact and free to change, one a stage; times in its ticks, memory in its integers."""

    def __init__(self, problem: Problem) -> None:
        costs, memory = problem.costs, problem.memory
        self._of = problem
        self.forward, self.backward, self.fused, self.transfer = map(
            _exact, (costs.forward, costs.backward, costs.fused, costs.transfer)
        )
        self.weight = None if costs.weight is None else _exact(costs.weight)
        self.overlapped = None if costs.overlapped is None else _exact(costs.overlapped)
        self.activation, self.freed = _exact(memory.activation), _exact(memory.freed)

    def move(self, stage: int, to: int) -> None:
        """A tenth of one stage's times and memory to another."""
        for numbers in (self.forward, self.backward, self.weight, self.fused, self.overlapped, *self._held()):
            if numbers is not None:
                moved = TENTH * numbers[stage]
                numbers[stage] -= moved
                numbers[to] += moved

    def _held(self) -> tuple[list[Fraction], list[Fraction]]:
        return self.activation, self.freed

    def problem(self) -> Problem:
        """The problem with these numbers, in the largest ticks that hold them."""
        costs, memory = self._of.costs, self._of.memory
        times = [self.forward, self.backward, self.weight, self.fused, self.transfer, self.overlapped]
        tick = common_step(x for numbers in times if numbers is not None for x in numbers)
        limits = [*(Fraction(c) for c in memory.capacity if c is not None), *map(Fraction, memory.static)]
        size = common_step([*self.activation, *self.freed, *limits])
        forward, backward, weight, fused, transfer, overlapped = (
            None if numbers is None else _whole(numbers, tick) for numbers in times
        )
        assert forward is not None
        assert backward is not None
        assert fused is not None
        assert transfer is not None
        return replace(
            self._of,
            tick=self._of.tick * tick,
            costs=replace(
                costs,
                forward=forward,
                backward=backward,
                weight=weight,
                fused=fused,
                transfer=transfer,
                overlapped=overlapped,
            ),
            memory=replace(
                memory,
                activation=_whole(self.activation, size),
                freed=_whole(self.freed, size),
                capacity=tuple(None if c is None else int(c / size) for c in memory.capacity),
                resolution=memory.resolution * size,
                static=_whole(_exact(memory.static), size),
            ),
        )


def _exact(numbers: tuple[int, ...]) -> list[Fraction]:
    return list(map(Fraction, numbers))


def _whole(numbers: list[Fraction], step: Fraction) -> tuple[int, ...]:
    return tuple(int(x / step) for x in numbers)
