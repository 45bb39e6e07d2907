"""Orders of passes for few gatherings: groups of micro-batches one behind the other, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, groupby

from pipesched.problem.chain_groups import chain_groups
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of


def in_groups(problem: Problem, size: int) -> Schedule:
    """So many micro-batches run through a stage of a device before any runs through the next, and back likewise.

    Backwards are fused. With groups of one it is one micro-batch after the other; the larger they are, the less often a
    stage's turn comes, and the more activations are held.
    """
    return schedule_of([list(_of_device(problem, device, size)) for device in range(problem.devices)], "pipesched")


def _of_device(problem: Problem, device: int, size: int) -> Iterator[Pass]:
    chains = problem.placement.chains
    holders = problem.holders or range(len(problem.stages))
    for own_chains in chain_groups(problem):
        on = [s for s in chain(*(chains[n] for n in own_chains)) if problem.placement.stage_device[s] == device]
        # Pieces of one stage are next to each other: they have its parameters in common.
        place = {holder: at for at, holder in enumerate(dict.fromkeys(holders[s] for s in on))}
        on.sort(key=lambda s: place[holders[s]])
        turns = [list(own) for _, own in groupby(on, key=lambda s: holders[s])]
        count = len(problem.walking[own_chains[0]])
        for group in (range(begin, min(begin + size, count)) for begin in range(0, count, size)):
            for own in turns:
                yield from (Pass(F, s, problem.microbatches_of[s][at]) for at in group for s in own)
            for own in reversed(turns):
                yield from (Pass(BW, s, problem.microbatches_of[s][at]) for at in group for s in reversed(own))
