"""Certificate of a relaxed decision diagram, with its evidence."""

from __future__ import annotations

from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from solver.diagram.modelled_stages import by_chain, devices_of
from solver.diagram.steps import ModelledSteps

# The name of its certificates.
KIND = "decision diagram"


def certificate_of(
    problem: Problem,
    kept: ModelledSteps,
    least: Ticks,
    width: int | None = None,
    threshold: Ticks | None = None,
    completion_stages: tuple[StageId, ...] = (),
    rows: int | None = None,
) -> Certificate:
    """Return the certificate that no schedule takes less than `least` ticks, proved by a diagram of the steps `kept`.

    The options of the diagram become the evidence: its most labels per state (`width`, None without limit), the
    `threshold` in ticks at which orders were pruned (None: none were), the stages whose completion bounds pruned them
    (`completion_stages`), and the most `rows` of these bounds per state, of each device by itself (None: one bound of
    all).
    """
    tick = None if threshold is None else problem.tick
    evidence = Diagram(kept.stages, width, threshold, completion_stages, rows, kept.device, tick, joint=kept.joint)
    return Certificate(KIND, least, _text(problem, evidence, least), devices_of(problem, kept.stages)[0], evidence)


def _text(problem: Problem, evidence: Diagram, least: Ticks) -> str:
    devices, chains = devices_of(problem, evidence.stages), len(by_chain(problem, evidence.stages))
    where = f"device {devices[0]}" if len(devices) == 1 else f"devices {', '.join(map(str, devices))}"
    which = (
        f"stage {evidence.stages[0]}" if len(evidence.stages) == 1 else f"stages {', '.join(map(str, evidence.stages))}"
    )
    text = f"The forwards and gradients of {which} take turns on {where}"
    if evidence.device is not None and chains > 1:
        text += f", in time from the first start on device {evidence.device} on"
    if problem.network.blocks:
        text += ", or run two at a time as an overlapped block, which ends both"
    text += (
        ": a device starts one of these forwards only while its memory has room for it besides others of these; a "
        "micro-batch is away for as long as other stages take."
    )
    if evidence.joint:
        text += " What a stage's backward leaves in memory is there until all of its tasks for the weights have run."
    if evidence.below is not None:
        shown = (
            ""
            if evidence.guide == evidence.stages
            else f"of which stages {', '.join(map(str, evidence.guide))} show that they "
        )
        cannot = f"{shown}cannot end before {amount(problem, evidence.below)}"
        text += f" Orders {cannot if shown else 'that ' + cannot} are not followed to their end."
    choices = "order and blocks" if problem.network.blocks else "order"
    count = len({microbatch for stage in evidence.stages for microbatch in problem.microbatches_of[stage]})
    return f"{text} In whichever {choices} they run, all {count} micro-batches take at least {amount(problem, least)}."
