"""Which walk a diagram's evidence names, and what its replay proves."""

from __future__ import annotations

from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Problem
from pipesched.results.diagram_evidence import Diagram

_MOST_WIDTH, _NO_WIDTH = 1024, 2**40


def decision_diagram(problem: Problem, evidence: Diagram) -> int:
    """The least end of the orders that are followed, or the value that the others do not end before."""
    from pipesched.checking.diagram.guide import guide_of
    from pipesched.checking.diagram.replay import least_end
    from pipesched.checking.diagram.walk import walk_along

    _require(problem, evidence)
    walk = walk_along(problem, evidence.stages)
    if not evidence.blocks:
        walk = walk._replace(steps=walk.steps._replace(together=walk.steps.together * 0 - 1))
    width = _NO_WIDTH if evidence.width is None else evidence.width
    if evidence.below is None:
        return walk.beside + least_end(walk, width)
    if evidence.below < walk.beside:
        raise RefusedEvidenceError("orders that end below nothing")
    guide = None
    if evidence.guide:
        if not set(evidence.guide) <= set(evidence.stages):
            raise RefusedEvidenceError(f"stages {list(evidence.guide)} are not among {list(evidence.stages)}")
        guide = guide_of(problem, walk, walk_along(problem, evidence.guide), evidence.stages, evidence.guide)
    return walk.beside + least_end(walk, width, guide, evidence.below - walk.beside)


def _require(problem: Problem, evidence: Diagram) -> None:
    """That the diagram is one that the replay knows, of a problem that it covers."""
    if not evidence.blocks and any(stage.overlapped is not None for stage in problem.stages):
        raise NotCoveredError("in a block a forward and a backward need not pass each other")
    if evidence.width is not None and not 0 < evidence.width <= _MOST_WIDTH:
        raise RefusedEvidenceError(f"{evidence.width} labels of a state")
    if evidence.guide and evidence.below is None:
        raise RefusedEvidenceError("a guide, and no value")
    one_task_each = problem.network.one_task_each and not problem.network.options
    plain = Diagram(evidence.stages, evidence.width, tick=evidence.tick)
    if not one_task_each and evidence != plain:
        raise NotCoveredError("a pass is several tasks")
