"""The bound by crossings of steps where one device interrupts no weight pass in the first rounds.

Crossings of steps lose what interrupted weight passes save; with whole ones labels are too many to go through all
rounds, and merged ones prove less than interruptible passes do. So some devices have whole weight passes in front of
the first steps, as in `crossing_whole`; their other ones, and those of other devices, may be interrupted:

- A device that interrupts has no numbers of weight passes that wait, but the time by which it would have run all, which
  is raised by its steps as in `crossing_steps`. One label is as good as another of its state if that time is no later.
- A label whose times and numbers are the least of two is as good as either: what waits and ended so is no more and no
  later. So near labels are merged as those of `crossing_steps` are.
- After the last of those steps a label becomes one of `crossing_steps`: each device would have run all that waits after
  what it has begun, and no sooner than it can start a step. Where a label is as good as another one, none of these
  times is later. If it could run, by when the other one had run all so far, what waits for it and not for that, then
  what waits for both ends no later. If fewer wait, and all so far has run when the other device can start a step, that
  is so where none is left; and where one is left of some length, all so far has run by so many of these sooner as more
  wait for the other. From there on no schedule's steps come sooner than those of labels that interrupt weight passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from pipesched.problem.formatting import amount, counted
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingSomeWhole
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_some_whole.follow import least_with_some_whole
from solver.bounds.crossing_steps.steps import steps_of, walked_chains

# The name of its certificates.
KIND = "crossings of steps with some whole weight passes"
# Labels looked at in all; labels of a state; rounds with whole weight passes, in each of which every step runs once.
WORK, WIDTH, WHOLE_ROUNDS = 40_000_000, 256, 12


def bounds_with_some_whole(
    problem: Problem,
    stop: Event,
    width: int = WIDTH,
    rounds: int = WHOLE_ROUNDS,
    work: int = WORK,
    everywhere: bool = False,
) -> Iterator[Certificate]:
    """On all devices of each chain, with whole weight passes on the one in the middle or `everywhere`.

    Nothing where blocks overlap a forward and a backward, or a pass is several tasks.
    """
    if problem.overlaps or problem.network.options or not problem.network.one_task_each:
        return
    best, paths = 0, Paths(problem)
    for chain in walked_chains(problem):
        devices = tuple(dict.fromkeys(problem.placement.stage_device[stage] for stage in chain))
        steps = steps_of(problem, paths, chain, devices)
        if steps is None:
            continue
        # At least one step is left to weight passes that may be interrupted.
        many = min(rounds * len(steps.ticks), steps.microbatches * len(steps.ticks) - 1)
        whole = range(len(devices)) if everywhere else (len(devices) // 2,)
        found = least_with_some_whole(steps, whole, many, width, work, stop)
        work -= found.work
        if found.ticks is not None and found.ticks > best:
            best = found.ticks
            on = tuple(devices[number] for number in whole)
            yield _certificate(problem, best, CrossingSomeWhole(chain[0], devices, width, on, many))
        if work <= 0 or stop.is_set():
            return


def _certificate(problem: Problem, least: int, own: CrossingSomeWhole) -> Certificate:
    count, names = len(problem.microbatches_of[own.stage]), [", ".join(map(str, n)) for n in (own.devices, own.whole)]
    text = (
        f"On devices {names[0]} the forwards and gradients of a chain take turns: a device runs one at a time, and "
        f"starts a forward only while its memory has room for it. In front of the first {counted(own.steps, 'pass')} "
        f"of them no weight pass of {'device' if len(own.whole) == 1 else 'devices'} {names[1]} is interrupted. In "
        f"whichever order they run, all {count} micro-batches take at least {amount(problem, least)}."
    )
    return Certificate(KIND, least, text, own.devices[0], own)
