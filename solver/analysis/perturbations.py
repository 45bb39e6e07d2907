"""Perturbations of a problem: more memory, a faster link, faster passes, work moved to a neighbouring stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from pipesched.files.exact_numbers import common_step
from pipesched.problem.device_resources import Pool
from pipesched.problem.formatting import memory_amount
from pipesched.problem.problem import Problem
from pipesched.results.analysis.explanation import Perturbation, PerturbationKind

TENTH = Fraction(1, 10)


def changes(problem: Problem, device: int, busiest: int) -> list[Perturbation]:
    """All changes worth trying, the most informative first; `device` is the bottleneck."""
    memory = list(_more_memory(problem))
    memory.sort(key=lambda change: (change.device is not None, change.device != device))
    moves = [move for origin in dict.fromkeys((busiest, device)) for move in _moves(problem, origin)]
    return [*memory[:2], *_faster_transfer(problem), *_faster_passes(problem, device), *moves, *memory[2:]]


def _more_memory(problem: Problem) -> Iterator[Perturbation]:
    """One more activation, of the largest stage there, on all devices that have a limit, and on each."""
    held, on = problem.network.held_in_flight, problem.placement.stages_of
    more = [max((held[s] for s in stages), default=0) for stages in on]
    limited = [d for d in range(problem.devices) if problem.room[d] is not None and more[d]]

    def with_more(devices: list[int]) -> Problem:
        room = [None if c is None else c + more[d] * (d in devices) for d, c in enumerate(problem.room)]
        return problem.with_room(room)

    def sizes(devices: list[int]) -> str:
        amounts = {memory_amount(problem, more[d]) for d in devices}
        unit = problem.memory_unit
        return f" ({amounts.pop()} {unit})" if len(amounts) == 1 and unit != "activations" else ""

    if len(limited) > 1:
        text = f"one more activation on every device{sizes(limited)}"
        yield Perturbation(PerturbationKind.MEMORY, text, with_more(limited), True)
    for device in limited:
        yield Perturbation(
            PerturbationKind.MEMORY, f"one more activation on device {device}", with_more([device]), True, device
        )


def _faster_transfer(problem: Problem) -> Iterator[Perturbation]:
    if any(stage.transfer for stage in problem.stages) or any(map(any, problem.links)):
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
        self._of, stages = problem, problem.stages
        self.forward, self.backward = [Fraction(s.forward) for s in stages], [Fraction(s.backward) for s in stages]
        self.fused, self.transfer = [Fraction(s.fused) for s in stages], [Fraction(s.transfer) for s in stages]
        self.weight = [Fraction(s.weight or 0) for s in stages] if problem.splittable else None
        self.overlapped = [Fraction(s.overlapped or 0) for s in stages] if problem.overlaps else None
        self.activation, self.freed = [Fraction(s.activation) for s in stages], [Fraction(s.freed) for s in stages]
        self.links = [list(map(Fraction, row)) for row in problem.links]

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
        of = self._of
        times = {
            "forward": self.forward, "backward": self.backward, "weight": self.weight, "fused": self.fused,
            "transfer": self.transfer, "overlapped": self.overlapped,
        }  # fmt: skip
        given = {name: numbers for name, numbers in times.items() if numbers is not None}
        # The factors of unequal micro-batches have to leave integers too.
        tick = common_step(x for numbers in (*given.values(), *self.links) for x in numbers) / of.scale_parts
        static = [Fraction(stage.static) for stage in of.stages]
        limits = [Fraction(x) for pool in of.pools for x in (pool.capacity or 0, pool.static)]
        size = common_step([*self.activation, *self.freed, *static, *limits]) / of.scale_parts
        held = {"activation": self.activation, "freed": self.freed, "static": static}
        columns = {name: _whole(numbers, tick) for name, numbers in given.items()}
        columns |= {name: _whole(numbers, size) for name, numbers in held.items()}
        return replace(
            of.with_stages(**columns),
            tick=of.tick * tick,
            links=tuple(_whole(row, tick) for row in self.links),
            pools=tuple(
                Pool(None if pool.capacity is None else int(pool.capacity / size), int(pool.static / size))
                for pool in of.pools
            ),
            resolution=of.resolution * size,
        )


def _whole(numbers: list[Fraction], step: Fraction) -> tuple[int, ...]:
    return tuple(int(x / step) for x in numbers)
