"""What each argument of the check proves of some hundred problems, held by a file: a slip either way is noticed.

    python -m tests.pipesched.checking.test_proved_values

writes the file anew, after a change that is meant to change what is proved. That nothing is proved above an optimum is
the matter of `test_forged_evidence.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from random import Random

import pytest

from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.bound_problems import changed, draw
from benchmarks.proofs.branch import Branch, Likely
from pipesched.checking.devices.cool_down import cool_down
from pipesched.checking.devices.device_arguments import in_flight_limit, load, round_trip
from pipesched.checking.devices.head_and_tail import head_and_tail
from pipesched.checking.devices.unpaired import unpaired_passes
from pipesched.checking.devices.warm_up import integral_warm_up
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.checking.memory.memory_and_modes import memory_and_modes
from pipesched.checking.period import period_in_flight, period_load, period_memory, period_modes
from pipesched.checking.streams.load import stream_load
from pipesched.checking.streams.tasks import stream_tasks
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.units import Units
from pipesched.results.evidence import (
    AroundDevice,
    ModeMultipliers,
    OnDevice,
    OnStage,
    OnStream,
    ReturnTo,
    StreamTasks,
)
from tests.support.daily import daily
from tests.support.makers import problem as linear
from tests.support.task_brute_force import tiny_tasks

HELD = Path(__file__).with_name("proved_values.json")
COUNT, STREAMS = 3, 60
Value = Fraction | int
# Those added since the file was written are compared when it is written again; a sixth of the others on each day.
held_branches = pytest.mark.parametrize(
    "branch",
    daily([branch for branch in BRANCHES if branch.name in json.loads(HELD.read_text(encoding="utf-8"))], 6),
    ids=lambda branch: branch.name,
)


def said(argument: Callable[[], Value]) -> str:
    """The value; a letter where the evidence is refused, or the problem not covered."""
    try:
        return str(argument())
    except RefusedEvidenceError:
        return "r"
    except NotCoveredError:
        return "n"


def greatest(holds: Callable[[int], Value], most: int) -> int:
    """The greatest whole number up to which nothing is refused, as bisection finds it."""
    least, above = 0, most
    while above - least > 1:
        middle = (least + above) // 2
        try:
            holds(middle)
            least = middle
        except RefusedEvidenceError:
            above = middle
    return least


def of_devices(problem: Problem) -> Iterator[tuple[str, str]]:
    """Each argument about devices with what it proves of each."""
    most = 3 * sum(s.forward + s.fused + 2 * s.transfer for s in problem.stages) * problem.microbatches
    owners = (None,) if problem.objective == Objective.MAKESPAN else range(problem.devices)
    for device in range(problem.devices):
        one = OnDevice(device)
        yield "load", said(lambda one=one: load(problem, one))
        yield "round trip", said(lambda one=one: round_trip(problem, one))
        yield "unpaired", said(lambda one=one: unpaired_passes(problem, one))
        yield "warm-up", said(lambda one=one: greatest(lambda b: integral_warm_up(problem, one, b), most))
        yield "modes", said(lambda one=one: greatest(lambda b: memory_and_modes(problem, one, b), most))
        for owner, last in product(owners, (False, True)):
            around = AroundDevice(device, owner, last)
            yield "head and tail", said(lambda around=around: head_and_tail(problem, around))
        for other in range(problem.devices):
            back = ReturnTo(device, other)
            yield "cool-down", said(lambda back=back: cool_down(problem, back))
    for stage in range(len(problem.stages)):
        yield "in-flight limit", said(lambda stage=stage: in_flight_limit(problem, OnStage(stage)))


def of_periods(problem: Problem, random: Random) -> Iterator[tuple[str, str]]:
    """Each argument about the period with what it proves of each device or stage."""
    for device in range(problem.devices):
        one = OnDevice(device)
        yield "load", said(lambda one=one: period_load(problem, one))
        yield "memory", said(lambda one=one: period_memory(problem, one))
    for stage in range(len(problem.stages)):
        yield "in-flight limit", said(lambda stage=stage: period_in_flight(problem, OnStage(stage)))

    def some(count: int) -> tuple[Fraction, ...]:
        return tuple(Fraction(random.choice((0, 0, 1, 1, 3)), 4) for _ in range(count))

    for _ in range(3):
        tick = problem.tick * random.choice((1, Fraction(1, 2)))
        each = ModeMultipliers(tick, some(problem.devices), some(problem.devices), some(len(problem.stages)))
        yield "modes", said(lambda each=each: period_modes(problem, each))


def of_streams(problem: Problem, random: Random) -> Iterator[tuple[str, str]]:
    """Each argument about streams with what it proves of each stream of each device."""
    owners = (None,) if problem.objective == Objective.MAKESPAN else range(problem.devices)
    for device, stream in product(range(problem.devices), problem.streams):
        load_of = OnStream(device, stream)
        yield "load", said(lambda one=load_of: stream_load(problem, one))
        for owner in owners:
            head, tail = random.choice((0, random.randint(0, 12))), random.choice((0, random.randint(0, 12)))
            tasks = StreamTasks(device, stream, owner, problem.tick, head, tail)
            yield "tasks", said(lambda one=tasks: stream_tasks(problem, one))


def line(found: Iterator[tuple[str, str]]) -> str:
    """The arguments, each with all that it said."""
    values: dict[str, list[str]] = {}
    for name, value in found:
        values.setdefault(name, []).append(value)
    return "; ".join(" ".join((name, *each)) for name, each in values.items())


def drawn(branch: Branch) -> Iterator[Problem]:
    """Problems as the branch draws them, with some neighbours, of both objectives."""
    random = Random(f"check {branch.name}")
    for number in range(COUNT):
        problem = draw(random, branch.likely)
        for _ in range(3 * (number % 2)):
            problem = changed(random, problem, branch.likely)
        # A tick of half a unit of the file's: evidence says which ticks it counts.
        yield replace(
            problem, objective=random.choice((Objective.MAKESPAN, Objective.SPAN)), units=Units(tick=Fraction(1, 2))
        )


def proved(branch: Branch) -> list[str]:
    """A line for each problem."""
    return [line(of_devices(problem)) for problem in drawn(branch)]


def periods(branch: Branch) -> list[str]:
    """A line for each problem."""
    return [line(of_periods(problem, Random(branch.name))) for problem in drawn(branch)]


def two_chains() -> list[str]:
    """Of problems with two directions, which few branches draw."""
    random, found = Random("two chains"), list[str]()
    kinds = Likely(), Likely(tight=0.9, unlimited=0), Likely(blocks=0.9), Likely(short_whole=0.9, whole_only=0)
    while len(found) < 24:
        problem = draw(random, random.choice(kinds))
        if len(problem.placement.chains) > 1:
            found.append(line(of_devices(problem)))
    return found


def many() -> list[str]:
    """Warm-up of so many micro-batches that the sums of their forwards are counted only where memory is short."""
    one = linear(2, 12_000, times={"forward": [5, 3], "backward": 4, "weight": 1, "transfer": 9})
    one = one.with_stages(activation=(100, 100))
    problems = [one.with_room((room, None)) for room in (None, 100, 220, 350, 400, 599)]
    return [str(greatest(partial(_warm_up, problem), 200_000)) for problem in problems]


def _warm_up(problem: Problem, bound: int) -> Value:
    return integral_warm_up(problem, OnDevice(0), bound)


def streams() -> list[str]:
    """A line for each problem with several streams."""
    return [line(of_streams(tiny_tasks(Random(seed)), Random(seed))) for seed in range(STREAMS)]


@held_branches
def test_what_the_check_proves_of_devices(branch: Branch) -> None:
    assert proved(branch) == json.loads(HELD.read_text(encoding="utf-8"))[branch.name]


@held_branches
def test_what_the_check_proves_of_periods(branch: Branch) -> None:
    assert periods(branch) == json.loads(HELD.read_text(encoding="utf-8"))[f"{branch.name}: periods"]


def test_what_the_check_proves_of_streams() -> None:
    assert streams() == json.loads(HELD.read_text(encoding="utf-8"))["streams"]


def test_what_the_check_proves_of_two_chains_and_of_many_micro_batches() -> None:
    held = json.loads(HELD.read_text(encoding="utf-8"))
    assert two_chains() == held["two chains"]
    assert many() == held["many micro-batches"]


if __name__ == "__main__":
    every = {branch.name: proved(branch) for branch in BRANCHES} | {"streams": streams()}
    every |= {"two chains": two_chains(), "many micro-batches": many()}
    every |= {f"{branch.name}: periods": periods(branch) for branch in BRANCHES}
    HELD.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")
