"""What `plan` says: the placements side by side, the best plan stage by stage, and what its time is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from commands.shared.output import idle_said, idle_shown, percent
from commands.shared.tables import Column, table
from pipesched.layers.ample_memory import why_no_plan_is_limited
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.results.plan import Candidate, ChoiceResult, Plan
from pipesched.results.plan_figures import device_memory, searched, stage_rows, step_time, time_parts
from pipesched.results.solution import Status
from pipesched.schedule.metrics import BUBBLE, IDLE, measure
from solver.planning.sensitivity import Change

CHOICES = [
    Column("placement"),
    Column("stages", True),
    Column("value", True),
    Column("bound", True),
    Column("gap", True),
    Column("than the best", True),
    Column(IDLE, True, 2),
    Column(BUBBLE, True, 3),
    Column("order"),
    Column("status", leave_out=1),
]
VARIANTS = [Column("left open by the file"), Column("value", True), Column("bound", True), Column("status")]
_STAGES = [
    Column("stage", True),
    Column("device", True),
    Column("layers"),
    Column("recomputed"),
    Column("forward", True),
    Column("backward", True),
    Column("parameters", True, 1),
    Column("activation", True, 2),
]
CHANGES = [
    Column("change"),
    Column("value", True),
    Column("difference", True),
    Column("bound", True),
    Column("gap", True),
    Column("the change brings", True),
]


def show(plan: Plan, changes: Sequence[Change] = (), more: Sequence[str] = (), scope: str = "") -> None:
    """The verdict, tables and sentences; `more` are sentences of the caller, `scope` the plans spoken of."""
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
    table(f"best plan: {best.choice}{_lengths(plan)}", stage_columns(plan), stage_cells(plan, best))
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
    """With a note where memory never limits any plan."""
    ample = why_no_plan_is_limited(found.problem)
    return found if ample is None else replace(found, notes=(*found.notes, ample))


def variant_rows(plan: Plan) -> list[list[str]]:
    """A row for each variant, the best first."""
    return [
        [
            one.name,
            *("" if number is None else _time(plan, number) for number in (one.value, one.lower_bound)),
            one.reason or ("optimal" if one.value == one.lower_bound else "feasible"),
        ]
        for one in plan.variants
    ]


def choice_rows(plan: Plan) -> list[list[str]]:
    """A row for each placement, the best first."""

    def key(one: ChoiceResult) -> tuple[bool, float, float]:
        value = None if one.best is None else float(one.best.value)
        return value is None, value or 0.0, float(one.lower_bound or 0)

    rows = []
    for one in sorted(plan.choices, key=key):
        gap = dearer = ""
        if one.best is not None and one.lower_bound is not None:
            gap = percent(float(1 - one.lower_bound / one.best.value) if one.best.value else 0.0)
            dearer = (
                "" if plan.value is None or not plan.value else f"+{percent(float(one.best.value / plan.value - 1))}"
            )
        rows.append(
            [
                str(one.choice),
                "" if one.best is None else str(one.best.timeline.problem.placement.stages // one.choice.pieces),
                "" if one.best is None else _time(plan, one.best.value),
                "" if one.lower_bound is None else _time(plan, one.lower_bound),
                gap,
                dearer if one.best is not plan.best else "",
                *_idle(one.best),
                "" if one.best is None else one.best.schedule,
                one.reason or one.status.value,
            ]
        )
    return rows


def _lengths(plan: Plan) -> str:
    """Of each piece its part of the sequence."""
    own = [f"{100 * length:.1f}" for length in plan.piece_lengths]
    return f" ({' '.join(own)} % of the sequence)" if len(own) > 1 else ""


def _idle(best: Candidate | None) -> list[str]:
    """Both readings of idle time, empty without a plan."""
    if best is None:
        return ["", ""]
    return [percent(share) for _, share in idle_shown(best.timeline.problem, measure(best.timeline))]


def stage_columns(plan: Plan) -> list[Column]:
    """What is said of each stage."""
    return [*_STAGES, *(Column(key, True, 1) for key in _of_parameters(plan))]


def _of_parameters(plan: Plan) -> list[str]:
    """What stages run for their parameters, by the names of its times."""
    own = plan.problem.model.parameters
    return [key for key, one in zip(own._fields, own, strict=True) if one is not None]


def stage_cells(plan: Plan, best: Candidate) -> list[list[str]]:
    """A row for each stage of the best plan."""
    rows, more = [], _of_parameters(plan)
    for row in stage_rows(plan.problem, best):
        costs = row.costs
        again = ", ".join(f"{number} {way}" for way, number in row.recomputed.items())
        backward = min(costs.fused, costs.backward + (costs.weight or 0))
        numbers = [costs.forward, backward, costs.memory, costs.activation, *(getattr(costs, key) for key in more)]
        rows.append([str(row.stage), str(row.device), row.layers, again, *(plain(round(float(x), 3)) for x in numbers)])
    return rows


def memory_columns(plan: Plan) -> list[Column]:
    """What is said of each device's memory."""
    taken = "activations and gathered" if plan.problem.model.parameters.gather else "activations"
    return [Column(name, True) for name in ("device", "parameters", taken, "peak", "capacity")]


def memory_cells(plan: Plan, best: Candidate) -> list[list[str]]:
    """A row for each device of the best plan."""
    rows = []
    for device, one in enumerate(device_memory(plan.problem, best)):
        numbers = [one.parameters, one.activations, one.parameters + one.activations, one.capacity or 0]
        rows.append([str(device), *(plain(round(float(number), 3)) for number in numbers)])
    return rows


def change_rows(plan: Plan, changes: Sequence[Change]) -> list[list[str]]:
    """A row for each change: the best plan found with it, what that differs by, and what is proved of the change."""
    rows = []
    for one in changes:
        value = one.plan.value
        if value is None or not plan.value or not value:
            rows.append([one.text, "no plan found", "", "", "", ""])
            continue
        rows.append(
            [
                one.text,
                _time(plan, value),
                _share(value / plan.value - 1),
                _time(plan, one.lower_bound),
                "optimal" if one.optimal else percent(float(1 - one.lower_bound / value)),
                _brings(plan, one),
            ]
        )
    return rows


def _brings(plan: Plan, one: Change) -> str:
    """Between which shares the best value of all plans changes, by both bounds; one number where all is proved."""
    found = one.brings(plan)
    if found is None:
        return ""
    least, most = found
    return _share(least) if least == most else f"{_share(least)} to {_share(most)}"


def _share(share: Fraction) -> str:
    return f"{100 * float(share):+.2f} %"


def sentences(plan: Plan, best: Candidate, scope: str = "") -> list[str]:
    """What was found, what is proved of it, and what the time is made of; `scope`: of which plans, where not of all."""
    objective = plan.problem.objective.value
    scope = scope or (" with this partition" if plan.problem.counts is not None or plan.problem.even else "")
    value, bound = _time(plan, best.value), _time(plan, plan.lower_bound)
    if plan.status is Status.OPTIMAL:
        said = f"optimal: {objective} {value}; no plan{scope} is better ({searched(plan.problem)})"
    else:
        said = f"best found: {objective} {value}; no plan{scope} is below {bound}: a gap of {percent(plan.gap)}"
        said += f" ({searched(plan.problem)})"
    parts = time_parts(plan.problem, best)
    named = ("ideal", "imbalance", "recompute", "bubble")
    made_of = " + ".join(f"{name} {plain(float(getattr(parts, name)))}" for name in named)
    idle = idle_said(best.timeline.problem, measure(best.timeline))
    found = [said, step_said(plan, best), f"{value} = {made_of}; {idle}"]
    if plan.certificate:
        found.append(f"why none is below the bound ({plan.certificate.name}): {plan.certificate.text}")
    found += [f"note: {text}" for text in plan.notes if text not in plan.problem.notes]
    if plan.interrupted:
        found.append("interrupted: this is the best plan found until then")
    return found


def step_said(plan: Plan, best: Candidate) -> str:
    """The time of a whole step, and what is not in it."""
    time, objective = step_time(plan.problem, best), plan.problem.objective.value
    if not time.reduction:
        return f"{objective}: {what_is_in_it(plan.problem)}"
    whole, more = (_time(plan, round(each, 3)) for each in (time.total, time.reduction))
    stepped = "is in it" if plan.problem.model.parameters.step is not None else "comes on top"
    return f"a step takes {whole}, {more} of it to exchange gradients among replicas; the optimizer's step {stepped}"


def what_is_in_it(plan: PlanProblem) -> str:
    """What a plan's time is of, and what of a step is not in it."""
    own, more = plan.model.parameters, list[str]()
    more += ["exchange of gradients among replicas"] if own.reduce is None else []
    more += ["the optimizer's step"] if own.step is None else []
    if not more:
        return "to the end of the last step, exchange of gradients among replicas included"
    comes = "come" if len(more) > 1 else "comes"
    return f"the pipeline's{' and its collectives' if own.some else ''}; {' and '.join(more)} {comes} on top"


def _time(plan: Plan, value: object) -> str:
    return f"{plain(float(value))} {plan.problem.time_unit}".rstrip()  # type: ignore[arg-type]
