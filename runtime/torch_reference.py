"""The single process that a pipelined run is held against: the same model and data, one micro-batch after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from runtime.torch_job import TOLERANCES, Difference
from runtime.torch_model import PipelineModel


class StepResult(NamedTuple):
    """Losses by micro-batch, gradients by (stage of the model, parameter); None where there is no gradient."""

    losses: Mapping[int, float]
    gradients: Mapping[tuple[int, str], Tensor | None]


def reference(model: PipelineModel, steps: int, microbatches: int, device: torch.device) -> Iterator[StepResult]:
    """Losses and gradients of the mean loss over a step's micro-batches; parameters stay as they are."""
    for stage in model.stages:
        stage.to(device)
    for step in range(steps):
        for stage in model.stages:
            stage.zero_grad(set_to_none=True)
        losses: dict[int, float] = {}
        for j in range(microbatches):
            x = model.inputs(step * microbatches + j).to(device)
            for stage in model.stages:
                x = stage(x)
            loss = model.loss(x, model.targets(step * microbatches + j).to(device))
            losses[j] = loss.item()
            (loss / microbatches).backward()  # type: ignore[no-untyped-call]
        yield StepResult(losses, gradients_of(dict(enumerate(model.stages))))


def gradients_of(stages: Mapping[int, torch.nn.Module]) -> dict[tuple[int, str], Tensor | None]:
    """A copy of every gradient of every stage; parameters that ask for none are left out."""
    return {
        (number, name): None if parameter.grad is None else parameter.grad.detach().cpu().clone()
        for number, stage in stages.items()
        for name, parameter in stage.named_parameters()
        if parameter.requires_grad
    }


class Comparison(NamedTuple):
    """The worst differences over all steps, and the parameters with no gradient where the reference has one."""

    worst_loss: Difference | None
    worst_gradient: Difference | None
    missing: tuple[str, ...]
    compared: int


def compare(ran: list[list[StepResult]], right: list[StepResult], dtype: str) -> Comparison:
    """`ran[step]` holds what each process has; a parameter held by two processes is compared on both.

    Every loss and every gradient of the reference must be there: what nobody has is missing.
    """
    tolerance = TOLERANCES[dtype]
    losses: list[Difference] = []
    gradients: list[Difference] = []
    missing: dict[str, None] = {}
    for step, (parts, reference_step) in enumerate(zip(ran, right, strict=True)):
        found = {j: value for part in parts for j, value in part.losses.items()}
        for j, value in reference_step.losses.items():
            what = f"the loss of micro-batch {j}"
            off = abs(found.get(j, float("nan")) - value)
            losses.append(Difference(what, step, off, tolerance * max(1.0, abs(value))))
        for (stage, name), right_gradient in reference_step.gradients.items():
            what = f"stage {stage} {name}"
            held = [part.gradients[stage, name] for part in parts if (stage, name) in part.gradients]
            if right_gradient is None and all(gradient is None for gradient in held):
                continue
            if not held or right_gradient is None or any(gradient is None for gradient in held):
                missing[what] = None
                continue
            limit = tolerance * max(1.0, right_gradient.abs().max().item())
            for gradient in held:
                assert gradient is not None
                off = (gradient - right_gradient).abs().max().item()
                gradients.append(Difference(f"the gradient of {what}", step, off, limit))
    return Comparison(_worst(losses), _worst(gradients), tuple(missing), len(gradients))


def _worst(differences: list[Difference]) -> Difference | None:
    """NaN is worse than everything."""
    return max(differences, key=lambda one: (one.value != one.value, one.value / one.limit), default=None)
