"""Tables of a plan: variants, placements, stages and memory, and the gain of possible changes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from commands.shared.output import idle_shown, percent
from commands.shared.tables import Column
from pipesched.problem.formatting import plain
from pipesched.results.plan import ChoiceResult, Plan, PlanCandidate
from pipesched.results.plan_figures import device_memory, stage_rows
from pipesched.schedule.metrics import BUBBLE, IDLE
from solver.planning.sensitivity import ChangeResult

CHOICES = [
    Column("placement"),
    Column("stages", True),
    Column("value", True),
    Column("bound", True),
    Column("gap to bound", True),
    Column("above\nthe best", True),
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
    Column("value found changes by", True),
    Column("bound", True),
    Column("gap to bound", True),
    Column("proved: best possible value changes by", True),
]


def variant_rows(plan: Plan) -> list[list[str]]:
    """Return a table row for each variant, the best first: name, value, bound, and the reason or else the status.

    All are texts, empty where a number is not known.
    """
    return [
        [
            one.name,
            *("" if number is None else time_text(plan, number) for number in (one.value, one.lower_bound)),
            one.reason or ("optimal" if one.value == one.lower_bound else "feasible"),
        ]
        for one in plan.variants
    ]


def choice_rows(plan: Plan) -> list[list[str]]:
    """Return a table row for each placement, those of the least value first, those without a plan last.

    Its texts are placement, chunks, value, bound, gap, what it exceeds the best plan by, idle times, order, and the
    reason or else the status; those that are not known are empty.
    """

    def key(result: ChoiceResult) -> tuple[bool, float, float]:
        value = None if result.best is None else float(result.best.value)
        return value is None, value or 0.0, float(result.lower_bound or 0)

    rows = []
    for result in sorted(plan.choices, key=key):
        gap = dearer = ""
        if result.best is not None and result.lower_bound is not None:
            gap = percent(float(1 - result.lower_bound / result.best.value) if result.best.value else 0.0)
            dearer = (
                "" if plan.value is None or not plan.value else f"+{percent(float(result.best.value / plan.value - 1))}"
            )
        rows.append(
            [
                str(result.choice),
                ""
                if result.best is None
                else str(result.best.timeline.problem.placement.stages // result.choice.cut.number),
                "" if result.best is None else time_text(plan, result.best.value),
                "" if result.lower_bound is None else time_text(plan, result.lower_bound),
                gap,
                dearer if result.best is not plan.best else "",
                *_idle(result.best),
                "" if result.best is None else result.best.schedule,
                result.reason or result.status.value,
            ]
        )
    return rows


def _idle(best: PlanCandidate | None) -> list[str]:
    """Return the table cells for mean idle time and bubble rate; empty without a plan."""
    if best is None:
        return ["", ""]
    return [percent(share) for _, share in idle_shown(best.timeline.problem, best.metrics)]


def stage_columns(plan: Plan) -> list[Column]:
    """Return the columns of the table of stages: stage, device, layers, recomputed layers, times and memory.

    Then come those of gathering, reduction and optimizer step, as far as stages have them.
    """
    return [*_STAGES, *(Column(key, True, 1) for key in _of_parameters(plan))]


def _of_parameters(plan: Plan) -> list[str]:
    """Return the names of the work that stages do for their parameters, as far as the plan has it."""
    own = plan.problem.model.parameters
    return [key for key, one in zip(own._fields, own, strict=True) if one is not None]


def stage_cells(plan: Plan, best: PlanCandidate) -> list[list[str]]:
    """Return a table row for each stage of the best plan, as texts for the columns in `stage_columns`."""
    rows, more = [], _of_parameters(plan)
    for row in stage_rows(plan.problem, best):
        costs = row.costs
        again = ", ".join(f"{number} {mode}" for mode, number in row.recomputed.items())
        backward = min(costs.fused, costs.backward + (costs.weight or 0))
        numbers = [costs.forward, backward, costs.memory, costs.activation, *(getattr(costs, key) for key in more)]
        rows.append([str(row.stage), str(row.device), row.layers, again, *(plain(round(float(x), 3)) for x in numbers)])
    return rows


def memory_columns(plan: Plan) -> list[Column]:
    """Return the columns of the table of memory by device: device, parameters, activations, peak and capacity.

    That of activations says so if it includes gathered parameters.
    """
    taken = "activations and gathered" if plan.problem.model.parameters.gather else "activations"
    return [Column(name, True) for name in ("device", "parameters", taken, "peak", "capacity")]


def memory_cells(plan: Plan, best: PlanCandidate) -> list[list[str]]:
    """Return a table row for each device of the best plan, as texts for the columns in `memory_columns`.

    The capacity is 0 where it is unlimited.
    """
    rows = []
    for device, one in enumerate(device_memory(plan.problem, best)):
        numbers = [one.parameters, one.activations, one.parameters + one.activations, one.capacity or 0]
        rows.append([str(device), *(plain(round(float(number), 3)) for number in numbers)])
    return rows


def change_rows(plan: Plan, changes: Sequence[ChangeResult]) -> list[list[str]]:
    """Return a table row for each change: its text, value, difference from `plan`, bound, gap, and the gain proved.

    All are texts; a change without a plan has "no plan found", and then empty ones.
    """
    rows = []
    for change in changes:
        value = change.plan.value
        if value is None or not plan.value or not value:
            rows.append([change.text, "no plan found", "", "", "", ""])
            continue
        rows.append(
            [
                change.text,
                time_text(plan, value),
                _share(value / plan.value - 1),
                time_text(plan, change.lower_bound),
                "optimal" if change.optimal else percent(float(1 - change.lower_bound / value)),
                _brings(plan, change),
            ]
        )
    return rows


def _brings(plan: Plan, one: ChangeResult) -> str:
    """Return in per cent by how much a change shifts the best value of all plans, from what is proved of both.

    It is a range between the bounds, or one number where both are proved optimal; empty if nothing is known.
    """
    found = one.brings(plan)
    if found is None:
        return ""
    least, most = found
    return _share(least) if least == most else f"{_share(least)} to {_share(most)}"


def _share(share: Fraction) -> str:
    return f"{100 * float(share):+.2f} %"


def time_text(plan: Plan, value: object) -> str:
    """Return a time (a number in the file's unit) as text with the unit's name."""
    return f"{plain(float(value))} {plan.problem.time_unit}".rstrip()  # type: ignore[arg-type]
