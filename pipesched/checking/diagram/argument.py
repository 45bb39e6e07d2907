"""Which walk a diagram's evidence names, and what its replay proves; older forms of evidence are such diagrams too."""

from __future__ import annotations

from dataclasses import replace

from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Problem
from pipesched.results.crossing_evidence import (
    CrossingBlocks,
    CrossingSomeWhole,
    CrossingStages,
    CrossingStepsBelow,
    CrossingWhole,
    GuidedStages,
    OldForm,
)
from pipesched.results.diagram_evidence import Diagram

_MOST_WIDTH, _NO_WIDTH = 1024, 2**40


def decision_diagram(
    problem: Problem, evidence: Diagram, only_last: bool = False, devices: tuple[int, ...] | None = None
) -> int:
    """The least end of the orders that are followed, or the value that the others do not end before.

    Of older evidence: `only_last` where no device's own end counts, and its order of devices.
    """
    from pipesched.checking.diagram.guide import guide_of
    from pipesched.checking.diagram.replay import least_end
    from pipesched.checking.diagram.walk import walk_along

    _require(problem, evidence)
    walk = walk_along(problem, evidence.stages, evidence.whole, only_last, devices)
    total = walk.steps.microbatches * len(walk.steps.ticks)
    if evidence.whole_steps is not None and not 0 <= evidence.whole_steps < total:
        raise RefusedEvidenceError(f"{evidence.whole_steps} steps before the last one")
    if not evidence.blocks:
        walk = walk._replace(steps=walk.steps._replace(together=walk.steps.together * 0 - 1))
    width = _NO_WIDTH if evidence.width is None else evidence.width
    if evidence.below is None:
        return walk.beside + least_end(walk, width, whole_steps=evidence.whole_steps)
    if evidence.below < walk.beside:
        raise RefusedEvidenceError("orders that end below nothing")
    guide = None
    if evidence.guide:
        if not set(evidence.guide) <= set(evidence.stages):
            raise RefusedEvidenceError(f"stages {list(evidence.guide)} are not among {list(evidence.stages)}")
        fewer = walk_along(
            problem, evidence.guide, (), only_last, devices if evidence.guide == evidence.stages else None
        )
        guide = guide_of(problem, walk, fewer, evidence.stages, evidence.guide)
    return walk.beside + least_end(walk, width, guide, evidence.below - walk.beside, evidence.whole_steps)


def _require(problem: Problem, evidence: Diagram) -> None:
    """That the diagram is one that the replay knows, of a problem that it covers."""
    if evidence.rounds:
        raise NotCoveredError("a diagram merged by rounds")
    if evidence.whole_steps is not None and evidence.blocks:
        raise NotCoveredError("whole weight passes for some steps, and blocks")
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


def old_form(problem: Problem, evidence: OldForm) -> int:
    """What evidence proves that names a diagram by its devices, or without the ends of devices."""
    if isinstance(evidence, CrossingStages | GuidedStages):
        guide = evidence.guide if isinstance(evidence, GuidedStages) else evidence.stages
        if not guide:
            raise RefusedEvidenceError("no stages guide")
        blocks = isinstance(evidence, CrossingStages)
        diagram = Diagram(evidence.stages, evidence.width, evidence.below, guide, blocks=blocks)
        if not problem.network.one_task_each or problem.network.options:
            raise NotCoveredError("a pass is several tasks")
        return decision_diagram(problem, diagram, only_last=True)
    chain = next((chain for chain in problem.placement.chains if chain[0] == evidence.stage), None)
    if chain is None:
        raise RefusedEvidenceError(f"no chain begins with stage {evidence.stage}")
    where, devices = problem.placement.stage_device, evidence.devices
    if (
        not devices
        or len(set(devices)) < len(devices)
        or devices[0] != where[evidence.stage]
        or not {where[stage] for stage in chain} >= set(devices)
    ):
        raise RefusedEvidenceError(f"devices {list(devices)} are not the chain's first and others of it")
    diagram = Diagram(tuple(stage for stage in chain if where[stage] in devices))
    if isinstance(evidence, CrossingStepsBelow | CrossingWhole):
        diagram = replace(diagram, below=evidence.below, guide=diagram.stages)
    if isinstance(evidence, CrossingSomeWhole):
        diagram = replace(diagram, whole=evidence.whole, whole_steps=evidence.steps)
    if isinstance(evidence, CrossingWhole):
        diagram = replace(diagram, whole=devices)
    else:
        diagram = replace(diagram, width=evidence.width)
    blocks = isinstance(evidence, CrossingBlocks | CrossingStepsBelow)
    return decision_diagram(problem, replace(diagram, blocks=blocks), devices=devices)
