"""One micro-batch after the other where chains feed each other: each with what it needs right before it."""

from __future__ import annotations

from collections.abc import Iterator

from pipesched.problem.chain_groups import chain_groups
from pipesched.problem.passes import BW, B, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of


def one_after_another(problem: Problem) -> Schedule:
    """Every backward fused. Of each micro-batch of the chains that feed no other run the forwards, with those of the
    chains that feed it, then the backwards; those of the feeding chains as soon as all that they fed are done.
    """
    chains, number = problem.placement.chains, problem.placement.chain_index
    feeding = {number[arc.before] for arc in problem.stage_arcs if not arc.backward}
    run = _Run(problem)
    for group in chain_groups(problem):
        after = {n: 0 for n in reversed(group) if n in feeding}
        last = [n for n in group if n not in feeding]
        for row in zip(*(problem.walking[n] for n in last), strict=True):
            for kind, end in ((F, -1), (BW, 0)):
                for n, j in zip(last, row, strict=True):
                    run.to(Pass(kind, chains[n][end], j))
            for one, done in after.items():
                left = problem.walking[one][done:]
                while left and run.ready(Pass(BW, chains[one][-1], left[0])):
                    run.to(Pass(BW, chains[one][0], left[0]))
                    left = left[1:]
                after[one] = len(problem.walking[one]) - len(left)
    orders: list[list[Pass]] = [[] for _ in range(problem.devices)]
    for p in run.passes:
        orders[problem.device(p)].append(p)
    return schedule_of(orders, "pipesched")


class _Run:
    """The passes that have run, in their order."""

    def __init__(self, problem: Problem) -> None:
        self._needs = problem.network.needs
        self.passes: dict[Pass, None] = {}

    def to(self, last: Pass) -> None:
        """Run a pass, and before it all that it needs and has not run."""
        waiting = [last]
        while waiting:
            before = [p for p in self._before(waiting[-1]) if p not in self.passes]
            if before:
                waiting.append(before[0])
            else:
                self.passes[waiting.pop()] = None

    def ready(self, p: Pass) -> bool:
        """Whether all that it needs has run."""
        return all(before in self.passes for before in self._before(p))

    def _before(self, p: Pass) -> Iterator[Pass]:
        for alternatives, _, optional, share in self._needs[p.kind, p.stage]:
            kind, stage = alternatives[0]
            if not optional:
                numbers = (p.microbatch,) if share is None else share.numbers(p.microbatch)
                yield from (Pass(BW if kind is B else kind, stage, j) for j in numbers)
