"""First orders of what remains of an iteration: list scheduling that keeps memory, by several rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from formulations.jobs.jobs import Jobs
from pipesched.problem.passes import F, W
from solver.tasks.job_graph import JobGraph, graph_of, with_modes

Rank = tuple[float, ...]


def first_orders(jobs: Jobs) -> Iterator[dict[int, int]]:
    """The starts of the jobs that run, in steps, as each rule has them; nothing of a rule that memory stops.

    Backwards fused and split; first what is longest from its end to the last one, backwards first, and one micro-batch
    after the other, which memory stops only where it stops all.
    """
    for fused in (True, False) if jobs.choices else (True,):
        graph = graph_of(jobs, with_modes(jobs, fused))
        tails = graph.tails()

        def longest(n: int, start: int, tails: Mapping[int, int] = tails) -> Rank:
            return (start, -tails[n])

        def backwards(n: int, start: int) -> Rank:
            kind, stage, j = jobs.jobs[n].task.of
            return (start, kind is W, kind is F, j, stage)

        def in_turn(n: int, start: int) -> Rank:
            return (jobs.jobs[n].task.of.microbatch, start)

        yield from _placed(graph, longest)
        yield from _placed(graph, backwards)
        yield from _placed(graph, in_turn)


def _placed(graph: JobGraph, rank: Callable[[int, int], Rank]) -> Iterator[dict[int, int]]:
    """Again and again the job of lowest rank of those that can run next, which has its start as well, within memory."""
    jobs = graph.jobs
    takes, gives = dict.fromkeys(graph.running, 0), dict.fromkeys(graph.running, 0)
    for one in jobs.holdings:
        if one.where in takes:
            takes[one.where] += one.takes
            gives[one.where] += one.gives
    left = list(jobs.room)
    free = [0] * len(left)
    missing = {n: len(graph.before[n]) for n in graph.running}
    begin = {n: jobs.released(n) for n in graph.running}
    ready = {n for n, count in missing.items() if not count}
    starts: dict[int, int] = {}
    while ready:
        able = [n for n in ready if (own := left[jobs.device(n)]) is None or takes[n] <= own]
        if not able:
            return
        n = min(able, key=lambda n: (*rank(n, max(begin[n], free[jobs.device(n)])), n))
        device = jobs.device(n)
        starts[n] = max(begin[n], free[device])
        free[device] = starts[n] + jobs.jobs[n].steps
        own = left[device]
        left[device] = None if own is None else own - takes[n] + gives[n]
        ready.remove(n)
        for after, lag in graph.after[n]:
            begin[after] = max(begin[after], free[device] + lag)
            missing[after] -= 1
            if not missing[after]:
                ready.add(after)
    yield starts
