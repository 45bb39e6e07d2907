"""Durations that the formulas predict for a layout that was run: of its step, its passes, and its layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput, DoesNotApply
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted, plan_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.even import some_counts
from pipesched.layers.measured_step import MeasuredStep
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.layers.recompute_rule import ROLES, modules_of
from pipesched.layers.roles import role_of
from pipesched.problem.objectives.span import SPAN
from pipesched.problem.problem import Problem
from pipesched.results.plan import PlanCandidate
from pipesched.results.plan_figures import step_time
from pipesched.simulation.simulator import simulate

_MS = 1000
# Their authors run these with optimizer post-validation: each device begins the next step by itself.
_POST_VALIDATED = ("zb-1p", "zb-2p")


def predicted_seconds(step: MeasuredStep, plan: PlanProblem) -> float:
    """Return the predicted seconds of a step with its partition and schedule; `plan` is that of `plan_of`.

    Raises `BadInput` for an impossible partition, or a schedule that does not apply to it.
    """
    return seconds_of(plan, simulated(step, plan))


def simulated(step: MeasuredStep, plan: PlanProblem) -> PlanCandidate:
    """Return the step's own partition and schedule, simulated with the durations of its plan problem.

    `plan` is that of `plan_of`. Raises `BadInput` if the partition is not possible, or the schedule is unknown or does
    not apply.
    """
    choice, partition, name = choice_of(step), partition_of(step, plan), schedule_of(step)
    problem = plan.problem(choice, partition)
    try:
        return PlanCandidate(choice, partition, simulate(problem, HEURISTICS[name].order(problem)), name)
    except BadInput as error:
        raise BadInput(*(f"{step.place}: {mistake}" for mistake in error.mistakes)) from None
    except DoesNotApply as reason:
        text = f"found {name}; allowed: a schedule that applies to this layout ({name} {reason})"
        raise BadInput(f"{step.place}.schedule: {text}") from None


def seconds_of(plan: PlanProblem, run: PlanCandidate) -> float:
    """Return the seconds of a simulated step, including gradient reduction and optimizer; times of `plan` are in ms."""
    return float(step_time(plan, run).total) / _MS


def problem_of(step: MeasuredStep, plan: PlanProblem) -> Problem:
    """Return the problem whose stages are those of the step's partition, with predicted times in ms.

    `plan` is that of `plan_of`. Raises `BadInput` if the partition is impossible.
    """
    return plan.problem(choice_of(step), partition_of(step, plan))


def plan_of(step: MeasuredStep, config: ModelConfig, wanted: Wanted) -> PlanProblem:
    """Return the plan problem of a step's layout, with times in ms predicted from the rates of `wanted`.

    It has no memory limit, since the layout was run. Raises `BadInput` for a layout that no plan can have, or a number
    format that the device does not have.
    """
    return plan_from(step, document_of(step, config, wanted))


def document_of(step: MeasuredStep, config: ModelConfig, wanted: Wanted) -> dict[str, Any]:
    """Return the document of the plan file of a step's layout, with times in ms predicted from the rates of `wanted`.

    Raises `BadInput` for a number format that the device does not have.
    """
    return plan_document(config, with_layout(step, wanted))


def plan_from(step: MeasuredStep, document: dict[str, Any]) -> PlanProblem:
    """Return the plan problem of a step, without a memory limit, from its plan document (`document_of`).

    Raises `BadInput` for a layout that no plan can have.
    """
    plan = plan_problem_from(document, step.place)
    return replace(plan, choices=(), objective=SPAN if step.schedule in _POST_VALIDATED else plan.objective)


def with_layout(step: MeasuredStep, wanted: Wanted) -> Wanted:
    """Return `wanted` with the layout of a step (devices, micro-batches, sizes), and its recomputation."""
    training = dict(wanted.training)
    if step.recompute != "none":
        training["recompute"] = [step.recompute]
    return replace(
        wanted, devices=step.pipeline, microbatches=step.microbatches, sequence=step.sequence or wanted.sequence,
        microbatch_size=step.microbatch_size, sizes=dict(step.sizes), training=training,
    )  # fmt: skip


def schedule_of(step: MeasuredStep) -> str:
    """Return the name of the step's schedule: `1f1b`, or with several chunks `interleaved-1f1b`, if none is given."""
    return step.schedule or ("1f1b" if step.chunks == 1 else "interleaved-1f1b")


def choice_of(step: MeasuredStep) -> Choice:
    """Return the placement of the step's stages: linear, or interleaved with several chunks on a device."""
    return Choice("linear" if step.chunks == 1 else "interleaved", step.chunks)


def partition_of(step: MeasuredStep, plan: PlanProblem) -> Partition:
    """Return the step's partition into stages, nearly equal if it names none, with the layers recomputed as it says.

    Raises `BadInput` if the stages or layers do not match the model.
    """
    stages = step.pipeline * step.chunks
    if stages > plan.model.most_stages:
        raise BadInput(f"{step.place}: found {stages} stages; allowed: up to {plan.model.most_stages}, a layer each")
    counts = step.partition or some_counts(plan.model, stages)
    if sum(counts) != len(plan.model.sequence):
        every = ", ".join(f"{layer.count} {layer.name}" for layer in plan.model.layers)
        raise BadInput(f"{step.place}.partition: found {sum(counts)} layers; allowed: all of {every}")
    partition, one_in = Partition(counts), step.recompute_every
    if step.recompute == "none":
        return partition
    most = None if step.recompute_layers is None else step.recompute_layers * one_in
    modules, recomputed = modules_of(step.recompute), list[tuple[Recomputed, ...]]()
    for layers in partition.layers_of(plan.model):
        number: dict[tuple[str, str], int] = {}
        for layer in layers:
            has = [one.name for one in layer.recompute if one.name == step.recompute or modules_of(one.name) & modules]
            if has and role_of(layer.name) in ROLES and (most is None or sum(number.values()) < most):
                number[layer.name, has[0]] = number.get((layer.name, has[0]), 0) + 1
        recomputed.append(tuple(Recomputed(*key, -(-many // one_in)) for key, many in number.items()))
    return Partition(counts, tuple(recomputed))


def with_rates(wanted: Wanted, rates: Mapping[str, float]) -> Wanted:
    """Return `wanted` with these rates of its device, by name of the field of `Device`, in the unit of that field."""
    return replace(wanted, device=replace(wanted.device, **rates))  # type: ignore[arg-type]
