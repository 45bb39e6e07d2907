"""The settings of a runtime for a plan that it can express and run, always with that plan's own figures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from pipesched.errors import BadInput
from pipesched.files.plans.features.catalogue import PLAN_FEATURES
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.results.plan import Plan, PlanCandidate
from pipesched.results.plan_figures import searched, step_time
from pipesched.results.schedule_figures import memory_capacity
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from runtime.partitions.catalogue import PartitionFormat, PartitionSettings
from runtime.partitions.megatron_hybrid_pattern import names_of
from runtime.partitions.mixer_limits import check_built, model_note
from runtime.partitions.staged_model import StagedModel, staged


@dataclass(frozen=True)
class PlanSettings:
    """Settings of one runtime (`form`) for `plan.best`, which it runs in the plan's order.

    `plan` is the result of searching all plans that the runtime can express and run, `free` that of searching all plans
    of the file. If there are no settings, `refusal` is the reason, and `plan` and `settings` are None. `words` are
    texts on what was left out for the runtime.
    """

    form: PartitionFormat
    free: Plan
    plan: Plan | None = None
    settings: PartitionSettings | None = None
    refusal: str | None = None
    words: tuple[str, ...] = ()

    @property
    def figures(self) -> tuple[str, ...]:
        """Lines with time and memory of the plan, its lower bound, and what all plans allow; empty without settings."""
        return () if self.plan is None else figures(self.form, self.plan, self.free)

    def document(self) -> dict[str, object]:
        """Return the entries of `settings` of `plan --json`: each setting by name, with the figures of its plan.

        A setting is under `text`, or under `args` if it is not text. Figures are floats in the file's units: `value`,
        `lower_bound`, `free_value` (the best value of all plans of the file, None if unknown), `peak_memory` and
        `memory_capacity` by device (None: no limit). With them are `runtime`, `schedule`, `partition` and `recompute`
        (layers, and recomputed layers, of each stage), `restricted_to` and `notes`. Empty without settings or a plan.
        """
        if self.settings is None or self.plan is None or self.plan.best is None:
            return {}
        problem, metrics = self.plan.best.timeline.problem, self.plan.best.metrics
        figures_of_plan = {
            "runtime": self.form.name,
            "value": float(self.plan.best.value),
            "peak_memory": metrics.peak_memory,
            "memory_capacity": memory_capacity(problem),
            "lower_bound": float(self.plan.lower_bound),
            "free_value": None if self.free.value is None else float(self.free.value),
            "schedule": self.plan.best.schedule,
            "partition": list(self.plan.best.partition.counts),
            "recompute": list(self.plan.best.partition.recompute_counts()),
            "restricted_to": list(self.words),
            "notes": list(self.settings.notes),
        }
        return {
            name: {"text" if isinstance(value, str) else "args": value} | figures_of_plan
            for name, value in self.settings.values.items()
        }


def settings_of(form: PartitionFormat, plan: Plan, free: Plan, words: tuple[str, ...] = ()) -> PlanSettings:
    """Return the settings for `plan.best`, or without settings the reason why the runtime cannot run it (`refusal`).

    `free` is the result of searching all plans, to which the plan is compared; `words` is what was left out for the
    runtime.
    """
    if plan.best is None:
        reason = plan.reason or "no plan was found in the time given"
        return PlanSettings(form, free, refusal=f"{form.name}: {reason}", words=words)
    if refused := plan.best.choice.cut.refused_by_settings:
        return PlanSettings(form, free, refusal=f"{form.name}: not supported: {refused}")
    order = plan.best.schedule.partition(":")[0]
    if form.limits.schedules and order not in form.limits.schedules:
        runs = " or ".join(form.limits.schedules)
        refusal = f"{form.name}: not supported: the order of this plan; it runs {runs} (`plan --for {form.name}`)"
        return PlanSettings(form, free, refusal=refusal)
    try:
        notes = notes_on(form, plan.problem)
        settings = written(form, staged_plan(plan.problem, plan.best, (*figures(form, plan, free), *notes)))
    except BadInput as error:
        return PlanSettings(form, free, refusal=error.mistakes[0], words=words)
    settings = replace(settings, notes=(*settings.notes, *notes))
    return PlanSettings(form, free, plan, settings, words=words)


def written(form: PartitionFormat, model: StagedModel) -> PartitionSettings:
    """Return a runtime's settings for a plan; `BadInput` if it cannot express the plan or build the model."""
    try:
        check_built(form.limits.mixers, model.step, names_of(model))
    except BadInput as error:
        raise BadInput(f"{form.name}: not supported: {error.mistakes[0]}") from None
    return form.write(model)


def notes_on(form: PartitionFormat, problem: PlanProblem) -> tuple[str, ...]:
    """Return sentences on parts of a plan that the settings leave out, so that the user's job must do them.

    Runtimes that run forwards only, for inference, have only those on the model.
    """
    features = () if form.limits.forwards_only else PLAN_FEATURES
    found = (model_note(form.limits.mixers, problem.step), *(feature.settings_note(problem) for feature in features))
    return tuple(f"{form.name}: {note}." for note in found if note)


def staged_plan(problem: PlanProblem, candidate: PlanCandidate, lines: tuple[str, ...] = ()) -> StagedModel:
    """Return a plan's best candidate as the stages that settings are written from; `lines` go at the head of its files.

    `BadInput` if the model's layers are not in an order that runtimes know.
    """
    placement = candidate.timeline.problem.placement
    microbatches = problem.microbatches
    made = staged(problem.model, candidate.partition, placement, microbatches, candidate.schedule, problem.name, lines)
    return replace(made, step=problem.step)


def figures(form: PartitionFormat, plan: Plan, free: Plan) -> tuple[str, ...]:
    """Return lines on the best plan with these settings: time, bound, and how much less the best of all plans takes.

    Empty if there is no plan.
    """
    best = plan.best
    if best is None:
        return ()
    objective = plan.problem.objective.name
    order = f"its own order {best.schedule}" if form.limits.schedules else f"this plan's order ({best.schedule})"
    lines = [f"with these settings, in {order}: {objective} {_time(plan, best.value)}{_memory(best)}"]
    step = step_time(plan.problem, best)
    whole = _time(plan, round(step.total, 3))
    more = (
        f"a step takes {whole} with the exchange of gradients and the optimizer's step"
        if step.optimizer
        else f"a step takes {whole} with the exchange of gradients; the optimizer's own step comes on top"
        if step.reduction
        else f"{objective}: without the exchange of gradients among replicas and the optimizer's step"
        if plan.problem.model.trains
        else f"{objective}: of forwards alone"
    )
    lines += [] if plan.problem.objective.repeats else [more]
    if plan.status is Status.OPTIMAL:
        lines.append(f"optimal: no plan that {form.name} can express and run is better ({searched(plan.problem)})")
    else:
        bound = _time(plan, plan.lower_bound)
        lines.append(f"no plan that {form.name} can express and run is below {bound} ({searched(plan.problem)})")
    if free.value is not None and free.best is not None:
        if free.value < best.value:
            less = f"{100 * float(1 - free.value / best.value):.2f} % less"
            lines.append(
                f"of all plans of the file the best found takes {_time(plan, free.value)}, {less} "
                f"({free.best.choice}, {free.best.schedule})"
            )
        else:
            lines.append("no better plan of the file was found")
    return tuple(lines)


def _memory(best: PlanCandidate) -> str:
    """Return `; peak memory ...` of the device with the least memory left; empty if the file has no memory."""
    problem = best.timeline.problem
    peaks = measure(best.timeline).peak_memory
    if not any(peaks):
        return ""
    rooms = memory_capacity(problem)
    device = max(range(len(peaks)), key=lambda at: peaks[at] - (rooms[at] or 0))
    room = rooms[device]
    of = "" if room is None else f" of {plain(room)}"
    return f"; peak memory {plain(round(peaks[device], 3))}{of} {problem.memory_unit} on device {device}"


def _time(plan: Plan, value: Fraction) -> str:
    return f"{plain(float(value))} {plan.problem.time_unit}".rstrip()
