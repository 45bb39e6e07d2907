"""Plans for the page: the description of a plan file, and the search for the best partition, placement and order."""

from __future__ import annotations

from fractions import Fraction

from pipesched.errors import BadInput
from pipesched.files.problem_text import problem_text
from pipesched.files.schedule_file import ScheduleFile, to_text
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import counted
from pipesched.results.gap import gap
from pipesched.results.plan_figures import stage_rows
from plots.html.document import document
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_settings import settings_of
from solver.limits import Limits
from solver.planning.progress import PlanProgress
from targets.plans import Planned, narrowed_sentences, planned
from web.settings import Settings
from web.work.channel import Channel


def describe(channel: Channel, problem: PlanProblem) -> None:
    """Send the description of a plan problem, shown before it is searched for, as a message of kind "plan".

    It has `name`, `objective`, `timeUnit`, `memoryUnit`, `notes` and `sentence`.
    """
    layers = counted(sum(layer.count for layer in problem.model.layers), "layer")
    choices = ", ".join(map(str, problem.choices))
    devices = counted(problem.cluster.devices, "device")
    sentence = (
        f"A plan file: {layers} on {devices}, {counted(problem.microbatches, 'micro-batch')}. Solve chooses the "
        f"partition, the recomputation and the order, and among these placements: {choices}."
    )
    labels = {
        "name": problem.name,
        "objective": problem.objective.name,
        "timeUnit": problem.time_unit,
        "memoryUnit": problem.cluster.memory_unit,
        "notes": [*problem.notes, *(f"assumed: {text}" for text in problem.assumptions)],
    }
    channel.send("plan", labels | {"sentence": sentence})


def refuse_large(problem: PlanProblem, settings: Settings) -> None:
    """Raise `BadInput` if one of the placements makes a problem that is too large for the page."""
    devices = problem.cluster.devices
    stages = devices * max(choice.chunks for choice in problem.choices)
    if stages * problem.microbatches > settings.cells:
        raise BadInput(
            f"problem: microbatches: found {problem.microbatches} on up to {stages} stages; allowed on this page: up "
            f"to {settings.cells} stages times micro-batches (`pipesched plan` takes more)"
        )


def scope(target: str | None) -> str:
    """Return the end of a sentence that says which schedules or plans a bound covers.

    They are those that the runtime can express. Empty without a runtime, since the bound then covers all.
    """
    return "" if target is None else f" that {target} can express"


def search(channel: Channel, problem: PlanProblem, limits: Limits, target: str | None) -> None:
    """Search the best plan and send its progress, messages of kind "moment", and at the end what was found.

    A moment has `seconds`, `value` (None: no plan yet) and `bound` in the file's unit of time, `gap`, a share of 1 or
    None, and `phase`. At the end come the "chart" and the schedule "file" of a plan, if there is one, and the
    "solution": the plan with its problem. With `target` the search is restricted to what that runtime can run, and its
    settings are sent with the solution; `BadInput` if it runs none.
    """

    def tell(moment: PlanProgress) -> None:
        value, bound = moment.value, moment.lower_bound
        channel.send(
            "moment",
            {
                "seconds": round(moment.seconds, 2),
                "value": _number(value),
                "bound": float(bound),
                "gap": None if value is None else gap(value, bound),
                "phase": f"{moment.phase}; {moment.settled} of {moment.choices} placements closed",
            },
        )

    forms = [] if target is None else [PARTITION_FORMATS[target]]
    answer = planned(problem, problem, target, forms, limits, tell, lambda _: None, channel.stop)
    found = answer.found
    if found.best is not None:
        channel.send("chart", document(found.best.timeline))
        file = ScheduleFile(found.best.timeline, value_ticks=found.best.period_ticks)
        channel.send("file", to_text(file))
    channel.send("solution", _document(answer) | {"scope": scope(target)})


def _document(answer: Planned) -> dict[str, object]:
    found, settings_by_name = answer.found, {one.form.name: one for one in answer.settings}
    narrowed = [] if answer.narrowed is None else narrowed_sentences(found, answer.narrowed)
    additions: dict[str, object] = {
        "interrupted": found.interrupted,
        "choices": [choice.document() | {"named": str(choice.choice)} for choice in found.choices],
        "problem_text": None,
        "stages": [],
        "settings_texts": [],
    }
    if found.best is not None:
        additions["problem_text"] = problem_text(found.best.timeline.problem)
        settings = [settings_by_name.get(form.name) or settings_of(form, found, found) for form in PARTITION_FORMATS]
        settings.sort(key=lambda one: one.form.name not in settings_by_name)
        additions["stages"] = [
            {"stage": row.stage, "device": row.device, "layers": row.layers, "recomputed": row.recomputed}
            for row in stage_rows(found.problem, found.best)
        ]
        additions["settings_texts"] = [
            {"name": one.form.name, "refusal": one.refusal, "text": one.settings.text if one.settings else None}
            for one in settings
        ]
    return found.document() | {"notes": [*found.notes, *narrowed]} | additions


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
