"""Observations: measured durations of steps, passes or layers, each with a function that predicts them from rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipesched.errors import BadInput
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted
from pipesched.layers.measured_step import MeasuredStep
from pipesched.layers.model import Model
from pipesched.layers.plan_problem import PlanProblem
from pipesched.layers.roles import Role, role_of
from pipesched.measurement.calibration import seconds_per_unit
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from solver.calibration.predicted_step import document_of, plan_from, plan_of, predicted_seconds, problem_of

_MS = 0.001  # seconds


class Named(NamedTuple):
    """A measured duration in seconds, and the name under which it is shown."""

    name: str
    seconds: float


class Observation(NamedTuple):
    """Durations of one run, with a function that predicts them.

    They share most of their error, so together they count as `weight` measured steps. `predicted` returns a duration in
    seconds for each measured one, in their order, for the rates of the device in its argument; it raises `BadInput` if
    the layout is impossible or its schedule does not apply.
    """

    measured: tuple[Named, ...]
    predicted: Callable[[Wanted], Sequence[float]]
    weight: float = 1


def of_step(step: MeasuredStep, config: ModelConfig) -> Observation:
    """Return the observation of a whole training step: a single duration, named by the step's place in its file."""
    predicted = _of_documents(step, config, lambda plan: [predicted_seconds(step, plan)])
    return Observation((Named(step.place, step.seconds),), predicted)


def of_passes(measured: Problem, step: MeasuredStep, config: ModelConfig) -> Observation:
    """Return the observation of a forward and a full backward of each stage, from a problem with measured times.

    `step` is the layout that was run. Durations are stage by stage, the forward first. Raises `BadInput` if the numbers
    of stages differ, a time is 0, or the unit of time of `measured` is not known in seconds.
    """
    stages, unit = measured.placement.stages, float(seconds_per_unit(measured))
    if stages != step.pipeline * step.chunks:
        raise BadInput(
            f"{step.place}: found {stages} stages; allowed: pipeline * chunks, {step.pipeline * step.chunks}"
        )
    passes = [Pass(kind, stage, 0) for stage in range(stages) for kind in (F, BW)]

    def seconds(of: Problem, unit: float) -> list[float]:
        return [float(of.duration(one) * of.tick) * unit for one in passes]

    named = [Named(f"{step.place}: {one}", own) for one, own in zip(passes, seconds(measured, unit), strict=True)]
    wrong = [one.name for one in named if one.seconds <= 0]
    if wrong:
        raise BadInput(*(f"{name}: found no time; allowed: times above 0" for name in wrong))
    predicted = _of_documents(step, config, lambda plan: seconds(problem_of(step, plan), _MS))
    return Observation(tuple(named), predicted, weight=2)


def of_layers(measured: Model, unit: float, step: MeasuredStep, config: ModelConfig, wanted: Wanted) -> Observation:
    """Return the observation of a forward and a backward of each layer type but the embedding, from a measured model.

    `unit` is the seconds per unit of time of `measured`. Layer types, in the order of the models, correspond to each
    other. Durations are type by type, the forward first. Raises `BadInput` if their numbers differ, a time is 0, or the
    layout is impossible.
    """
    own = _times(measured, unit)
    derived = [*_times(plan_of(step, config, wanted).model, _MS)]
    if len(own) != len(derived):
        raise BadInput(
            f"{step.place}: found types of layers {', '.join(own) or 'none'}; allowed: as many as the configuration's, "
            f"{', '.join(derived)}, in their order"
        )
    named = [
        Named(f"{step.place}: {kind} of {name}", time)
        for name, times in own.items()
        for kind, time in zip(("forward", "backward"), times, strict=True)
    ]
    wrong = [one.name for one in named if one.seconds <= 0]
    if wrong:
        raise BadInput(*(f"{name}: found no time; allowed: times above 0" for name in wrong))

    def predicted(plan: PlanProblem) -> list[float]:
        return [time for times in _times(plan.model, _MS).values() for time in times]

    return Observation(tuple(named), _of_documents(step, config, predicted), weight=2)


def _of_documents(
    step: MeasuredStep, config: ModelConfig, predicted: Callable[[PlanProblem], list[float]]
) -> Callable[[Wanted], Sequence[float]]:
    """Return a function from rates to the seconds `predicted` from the plan problem of a step's layout.

    Many rates are not in the plan document of a layout, as those of experts: each document is predicted once.
    """
    known = dict[str, list[float]]()

    def by_rates(wanted: Wanted) -> list[float]:
        document = document_of(step, config, wanted)
        key = repr(document)
        if key not in known:
            known[key] = predicted(plan_from(step, document))
        return known[key]

    return by_rates


def _times(model: Model, unit: float) -> dict[str, tuple[float, float]]:
    """Return the seconds of a forward and of a full backward of a layer, by name of each layer type but the embedding.

    `unit` is the seconds in the model's unit of time.
    """
    kinds = [kind for kind in model.kinds if role_of(kind.name) is not Role.EMBEDDING]
    return {kind.name: (float(kind.forward) * unit, float(kind.full_backward) * unit) for kind in kinds}
