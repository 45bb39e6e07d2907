"""Which activations a schedule offloads and recomputes, as programs read it."""

from __future__ import annotations

from pipesched.problem.passes import OFFLOAD, RECOMPUTATIONS, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule


def decisions(problem: Problem, schedule: Schedule) -> tuple[list[Pass], dict[Pass, str]]:
    """The forwards whose activation moves to the host, and those recomputed with the name of the way; in order."""
    passes = sorted(schedule.passes(), key=lambda p: (p.stage, p.microbatch))
    offloaded = [p._replace(kind=F) for p in passes if p.kind is OFFLOAD]
    again = [p for p in passes if p.kind in RECOMPUTATIONS]
    return offloaded, {p._replace(kind=F): problem.tasks_of(p.kind, p.stage)[0].name for p in again}


def decisions_document(problem: Problem, schedule: Schedule) -> dict[str, object]:
    """The key `decisions`; empty lists for problems without such decisions."""
    if not problem.network.options:
        return {"decisions": {"offloaded": [], "recomputed": []}}
    offloaded, recomputed = decisions(problem, schedule)
    document: dict[str, object] = {"offloaded": list(map(str, offloaded)), "recomputed": list(map(str, recomputed))}
    if len({way.name for stage in problem.stages for way in stage.recompute}) > 1:
        document["ways"] = {str(p): name for p, name in recomputed.items()}
    return {"decisions": document}
