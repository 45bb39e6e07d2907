"""Report of `plan`: tables, the bound proved, and the parts of the best plan's time in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from commands.reports.plans.plan_tables import (
    CHANGES,
    CHOICES,
    VARIANTS,
    change_rows,
    choice_rows,
    memory_cells,
    memory_columns,
    stage_cells,
    stage_columns,
    time_text,
    variant_rows,
)
from commands.shared.output import idle_sentence, percent
from commands.shared.tables import table
from pipesched.layers.ample_memory import why_no_plan_is_limited
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.results.plan import Plan, PlanCandidate
from pipesched.results.plan_figures import searched, step_time, time_parts
from pipesched.results.solution import Status
from solver.planning.sensitivity import ChangeResult


def show(plan: Plan, changes: Sequence[ChangeResult] = (), more: Sequence[str] = (), scope: str = "") -> None:
    """Print verdict, tables and sentences on a plan; without a plan, the table of placements and the sentences `more`.

    `changes` are the best plans under changed numbers, `more` are further sentences, and `scope` says which plans were
    searched, if not all.
    """
    best = plan.best
    verdict, *others = [""] if best is None else sentences(plan, best, scope)
    if verdict:
        print(verdict)
    if plan.variants:
        table("variants", VARIANTS, variant_rows(plan))
    table(plan.problem.name, CHOICES, choice_rows(plan))
    if best is None:
        for sentence in more:
            print(sentence)
        return
    units = (("times", plan.problem.time_unit), ("memory", plan.problem.cluster.memory_unit))
    unit_list = ", ".join(f"{what} in {unit}" for what, unit in units if unit)
    title = f"best plan: {best.choice}{_lengths(plan)}" + (f" ({unit_list})" if unit_list else "")
    table(title, stage_columns(plan), stage_cells(plan, best))
    if plan.problem.cluster.capacity is not None:
        title = f"memory at the peak ({plan.problem.cluster.memory_unit})"
        table(title, memory_columns(plan), memory_cells(plan, best))
    for sentence in (*others, *more):
        print(sentence)
    if changes:
        table("what changes would bring", CHANGES, change_rows(plan, changes))
        if changes[0].plan.value and plan.value and changes[0].plan.value < plan.value:
            print(f"what helps most: {changes[0].text}")


def with_note(found: Plan) -> Plan:
    """Return the plan with a note if memory never limits any plan; unchanged if free memory is maximised first."""
    ample = None if found.free is not None else why_no_plan_is_limited(found.problem)
    return found if ample is None else replace(found, notes=(*found.notes, ample))


def _lengths(plan: Plan) -> str:
    """Return each piece's share of the sequence as text; empty without pieces."""
    own = [f"{100 * length:.1f}" for length in plan.piece_lengths]
    return f" ({' '.join(own)} % of the sequence)" if len(own) > 1 else ""


def sentences(plan: Plan, best: PlanCandidate, scope: str = "") -> list[str]:
    """Return sentences: first value and bound, second the whole step, third the parts of the time, then any others.

    Others are on free memory, the argument of the bound, notes, and an interruption, as far as there are any.

    `scope` says which plans were searched, if not all.
    """
    objective = plan.problem.objective.name
    scope = scope or (" with this partition" if plan.problem.counts is not None or plan.problem.even else "")
    scope += "" if plan.free is None else " that leaves as much memory free"
    value, bound = time_text(plan, best.value), time_text(plan, plan.lower_bound)
    if plan.status is Status.OPTIMAL:
        first = f"optimal: {objective} {value}; no plan{scope} is better ({searched(plan.problem)})"
    else:
        first = f"best found: {objective} {value}; no plan{scope} is below {bound}: a gap of {percent(plan.gap)}"
        first += f" ({searched(plan.problem)})"
    parts = time_parts(plan.problem, best)
    named = ("ideal", "imbalance", "recompute", "bubble")
    made_of = " + ".join(f"{name} {plain(float(getattr(parts, name)))}" for name in named)
    idle = idle_sentence(best.timeline.problem, best.metrics)
    ideal = "ideal: all work spread evenly over the devices; imbalance: of the busiest device more than that"
    found = [first, step_sentence(plan, best), f"{value} = {made_of} ({ideal}); {idle}"]
    if plan.free is not None:
        found.append(plan.free.sentence(plan.problem.cluster.memory_unit, "plan"))
    if plan.certificate:
        found.append(f"why none is below the bound ({plan.certificate.name}): {plan.certificate.text}")
    found += [f"note: {text}" for text in plan.notes if text not in plan.problem.notes]
    if plan.interrupted:
        found.append("interrupted: this is the best plan found until then")
    return found


def step_sentence(plan: Plan, best: PlanCandidate) -> str:
    """Return a sentence on the time of a whole training step, and what it does not include."""
    time, objective = step_time(plan.problem, best), plan.problem.objective.name
    if time.total == time.pipeline:
        return f"{objective}: {what_is_in_it(plan.problem)}"
    whole, more, last = (time_text(plan, round(each, 3)) for each in (time.total, time.reduction, time.optimizer))
    stepped = "is in it" if plan.problem.model.parameters.step is not None else "comes on top"
    if time.optimizer:
        return f"a step takes {whole}: {more} of it to exchange gradients among replicas, {last} the optimizer's step"
    return f"a step takes {whole}, {more} of it to exchange gradients among replicas; the optimizer's step {stepped}"


def what_is_in_it(plan: PlanProblem) -> str:
    """Return a sentence on the parts of a step that a plan's time includes, and those that it does not."""
    if plan.objective.repeats:
        return "from one micro-batch to the next in a long run, whose first and last ones do not count"
    own, more = plan.model.parameters, list[str]()
    if not plan.model.trains:
        return "of forwards alone"
    more += ["exchange of gradients among replicas"] if own.reduce is None else []
    more += ["the optimizer's step"] if own.step is None else []
    if not more:
        return "to the end of the last step, exchange of gradients among replicas included"
    verb = "come" if len(more) > 1 else "comes"
    return f"the pipeline's{' and its collectives' if own.some else ''}; {' and '.join(more)} {verb} on top"
