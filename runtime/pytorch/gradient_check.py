"""Comparison of a step's gradients and losses with the reference, within the tolerance that rounding explains.

Rounding is judged by each parameter's own gradient, in its own type. The pipeline adds up the same contributions of the
micro-batches as the reference, in another order: each of the M additions rounds by up to half an epsilon of the
summand, in either direction, which over many entries is about sqrt(M) / 2 epsilons of the contributions' mean norm. The
kernels that compute a contribution may differ by a little more. A parameter to which no micro-batch contributes must
get nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pipesched.problem.quantities import MicrobatchId, StageId
from runtime.pytorch.reference import Gradient, StepReference
from runtime.running.job import Difference

# How far the kernels that compute one and the same contribution can be apart, as a share of its norm.
_KERNELS: Mapping[torch.dtype, float] = {torch.float64: 1e-12, torch.float32: 2e-6}


@dataclass(frozen=True)
class StepResult:
    """The report of one process on a compared step.

    `losses` has the losses that the pipeline computed here, by micro-batch of the step, `right_losses` those of the
    reference computed here; `loss_limit` is the allowed difference of a loss. `worst_gradient` is the gradient whose
    difference is the largest multiple of its limit, None if none was compared. `missing` names the parameters that got
    a gradient in the reference alone, and `compared` is the number of gradients compared.
    """

    losses: Mapping[MicrobatchId, float]
    right_losses: Mapping[MicrobatchId, float]
    loss_limit: float
    worst_gradient: Difference | None
    missing: tuple[str, ...]
    compared: int


def tolerance(dtype: torch.dtype, microbatches: int) -> float:
    """Return the difference that rounding explains, as a share of the contributions' mean norm.

    It grows with the root of the number of micro-batches, whose contributions are added.
    """
    epsilon = torch.finfo(dtype).eps
    return _KERNELS.get(dtype, epsilon) + math.sqrt(microbatches) * epsilon / 2


def take_gradients(modules: Mapping[StageId, nn.Module]) -> dict[tuple[StageId, str], Tensor | None]:
    """Return every gradient by (stage, parameter) and remove it from its parameter; None where no backward left one.

    Parameters that need no gradient are left out.
    """
    taken = {}
    for number, module in modules.items():
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                taken[number, name], parameter.grad = parameter.grad, None
    return taken


def compare_step(
    step: int, microbatches: int, names: Mapping[StageId, int], losses: Mapping[MicrobatchId, float],
    ran: Mapping[tuple[StageId, str], Tensor | None], right: StepReference,
) -> StepResult:  # fmt: skip
    """Compare one process's part of a step with the reference; `names[s]` is the number of stage s in messages.

    `losses` are those that it computed by micro-batch; `ran` has its gradients by (stage, parameter), None where no
    backward left one, and every key of `right.gradients`. The step, number `step` of the results, has `microbatches`
    micro-batches.
    """
    differences, missing = [], []
    for (stage, name), reference in right.gradients.items():
        what = f"stage {names[stage]} {name}"
        gradient = ran[stage, name]
        if gradient is None and reference.value is not None:
            missing.append(what)
        elif gradient is not None:
            differences.append(_difference(f"the gradient of {what}", step, gradient, reference, microbatches))
    largest = max((abs(loss.item()) for loss in right.losses.values()), default=0.0)
    limit = max((tolerance(loss.dtype, 1) for loss in right.losses.values()), default=0.0) * largest
    right_losses = {j: loss.item() for j, loss in right.losses.items()}
    return StepResult(losses, right_losses, limit, worst(differences), tuple(missing), len(differences))


def _difference(what: str, step: int, gradient: Tensor, reference: Gradient, microbatches: int) -> Difference:
    right = torch.zeros_like(gradient) if reference.value is None else reference.value
    off = float(torch.linalg.vector_norm(gradient - right, dtype=torch.float64))
    norm = float(torch.linalg.vector_norm(right, dtype=torch.float64))
    return Difference(what, step, off, tolerance(gradient.dtype, microbatches) * reference.scale, norm)


def compare_losses(step: int, parts: Sequence[StepResult]) -> list[Difference]:
    """Return for every loss of a step's reference its difference from the pipeline's.

    Its value is NaN where no process computed the loss. `parts` are the reports of all processes on the step; `step` is
    its number in the results.
    """
    found = {j: value for part in parts for j, value in part.losses.items()}
    return [
        Difference(
            f"the loss of micro-batch {j}", step, abs(found.get(j, math.nan) - value), part.loss_limit, abs(value)
        )
        for part in parts
        for j, value in part.right_losses.items()
    ]


def worst(differences: Iterable[Difference | None]) -> Difference | None:
    """Return the difference that is the largest multiple of its limit; None if there is none.

    It need not exceed the limit. NaN counts as worst.
    """
    return max((one for one in differences if one is not None), key=_excess, default=None)


def _excess(one: Difference) -> tuple[bool, float]:
    if math.isnan(one.value) or one.limit == 0:
        return math.isnan(one.value), math.inf if one.value else 0.0
    return False, one.value / one.limit
