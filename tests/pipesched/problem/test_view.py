"""The pipeline read off a network is what the problem's fields say, and there is none where passes are more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from benchmarks.cases.drawn_problems import drawn_problems
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.problem.view import PipelineView
from tests.support.daily import DAY
from tests.support.relaxed_cases import drawn


def _problems() -> Iterator[Problem]:
    """Pairs of features of the problem file, others on every day, and larger problems of plain passes."""
    yield from (problem for _, problem in drawn(DAY, 400))
    yield from drawn_problems(7)


def _more_than_plain_passes(problem: Problem) -> set[str]:
    """What of the problem's fields makes it no pipeline."""
    where, stages = problem.placement, problem.stages
    sent = any(problem.lag(one, other) > 0 for chain in where.chains for one, other in pairwise(chain))
    streams = [
        {task.stream for s in on for kind in stages[s].kinds for task in stages[s].tasks_of(kind)}
        for on in where.stages_of
    ]
    several = any(len(stage.tasks_of(kind)) > 1 for stage in stages for kind in stage.kinds)
    found = {
        "copies": any(stage.offload or stage.recompute for stage in stages),
        "parameters": any(stage.gather or stage.once for stage in stages),
        "arcs": bool(problem.chain_arcs.arcs),
        "scale": bool(problem.walks.scale),
        "transfers": problem.resources.transfer_stream is not None and sent,
        "pass memory": any(
            own.workspace.workspace(kind) or own.until_end.until_end(kind) for own in stages for kind in own.kinds
        ),
        "tasks": several or any(len(own) > 1 for own in streams),
    }
    return {name for name, is_there in found.items() if is_there}


def _assert_same(view: PipelineView, problem: Problem) -> None:
    where = problem.placement
    assert view.placement.stage_device == where.stage_device and view.devices == problem.devices
    walked = [chain for chain, walk in zip(where.chains, problem.walking, strict=True) if walk]
    assert [chain for chain in view.placement.chains if view.microbatches_of[chain[0]]] == walked
    assert sorted(view.placement.chains) == sorted(where.chains)
    assert view.microbatches_of == problem.microbatches_of and view.room == problem.room
    assert view.splits is problem.splittable
    for s, own in enumerate(problem.stages):
        for kind in (F, B, W, BW) if problem.splittable else (F, BW):
            assert view.ticks[kind, s] == problem.duration(Pass(kind, s, 0))
        assert view.least_work(s) == problem.least_work(s)
        assert view.least_backward(s) == problem.least_backward(s)
        assert view.memory_in_flight[s] == own.activation
        assert view.freed_by_backward(s) == (own.freed if problem.splittable else own.activation)
        for t in where.on_device_of(s):
            assert view.blocks.get((s, t)) == problem.overlapped_ticks(Pass(F, s, 0), Pass(BW, t, 0))
        for other in (one for one in (where.previous[s], where.next[s]) if one is not None):
            assert view.lag(other, s) == problem.lag(other, s)


def test_the_view_says_what_the_fields_of_the_problem_say() -> None:
    missing, seen = Counter[str](), Counter[str]()
    for problem in _problems():
        more, view = _more_than_plain_passes(problem), problem.view
        assert (view is None) is bool(more), more
        missing.update(more)
        if view is not None:
            _assert_same(view, problem)
            seen.update(
                blocks=bool(view.blocks),
                split=view.splits,
                whole=not view.splits,
                chains=len(view.placement.chains) > 1,
                limited=any(room is not None for room in view.room),
                lags=any(view.arrivals),
            )
    assert all(
        missing[name] > 3 for name in ("copies", "parameters", "arcs", "scale", "transfers", "pass memory", "tasks")
    ), missing
    assert all(seen[name] > 2 for name in ("blocks", "split", "whole", "chains", "limited", "lags")), seen
