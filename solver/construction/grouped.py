"""Orders of passes that gather parameters rarely: groups of micro-batches one after the other, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby

from pipesched.problem.chains.chain_groups import chain_groups
from pipesched.problem.passes import BW, F, Pass, PassKind
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId
from pipesched.schedule.schedule import Schedule, schedule_of


def in_groups(problem: Problem, size: int) -> Schedule:
    """Return the order in which groups of `size` micro-batches run through one stage of a device before the next stage.

    Backwards run so too, in reverse order of stages, and all are full. `size` is at least 1; the last group may be
    smaller. Groups of one are one micro-batch after the other; larger groups gather the parameters of each stage less
    often, and have more activations in memory.
    """
    return schedule_of([list(_of_device(problem, device, size)) for device in range(problem.devices)], "pipesched")


def _of_device(problem: Problem, device: DeviceId, size: int) -> Iterator[Pass]:
    chains = problem.placement.chains
    holder = problem.parameters.holder
    for chains_of_group in chain_groups(problem):
        stages = [
            s for s in chain(*(chains[n] for n in chains_of_group)) if problem.placement.stage_device[s] == device
        ]
        # Pieces of one stage are adjacent, since they share its parameters.
        place = {own: at for at, own in enumerate(dict.fromkeys(holder(s) for s in stages))}
        stages.sort(key=lambda s: place[holder(s)])
        turns = [list(own) for _, own in groupby(stages, key=holder)]
        count = max(len(problem.walking[n]) for n in chains_of_group)
        # A pass for several micro-batches runs forward before the first of these, and backward after the last.
        walks = {s: problem.microbatches_of[s] for s in stages}
        for begin, end in ((at, min(at + size, count)) for at in range(0, count, size)):
            for own in turns:
                share = {s: (-(-begin * len(walks[s]) // count), -(-end * len(walks[s]) // count)) for s in own}
                yield from _dealt(F, own, walks, share)
            for own in reversed(turns):
                share = {s: (begin * len(walks[s]) // count, end * len(walks[s]) // count) for s in own}
                yield from _dealt(BW, own[::-1], walks, share)


def _dealt(
    kind: PassKind, stages: Sequence[StageId], walks: Mapping[StageId, range], share: Mapping[StageId, tuple[int, int]]
) -> Iterator[Pass]:
    """Yield the passes of one kind, micro-batch by micro-batch, each through all of these stages that it traverses.

    `walks` are the micro-batches of each stage, `share` the range of indices in them that the group has.
    """
    longest = max(until - since for since, until in share.values())
    for at in range(longest):
        yield from (Pass(kind, s, walks[s][share[s][0] + at]) for s in stages if share[s][0] + at < share[s][1])
