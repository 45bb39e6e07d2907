"""The reference of a pipelined run: the same stages and data, without pipelining, one micro-batch after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pipesched.problem.quantities import MicrobatchId, StageId
from runtime.pytorch.passes.boundary import call, tensors_of, to_device
from runtime.pytorch.stage_chain import ChainWalk
from runtime.pytorch.stages import RankStages
from runtime.running.job import Job


class Gradient(NamedTuple):
    """A parameter's gradient (`value`), and the mean norm of micro-batches' contributions to it (`scale`).

    `value` is None if the parameter got no gradient.
    """

    value: Tensor | None
    scale: float


class StepReference(NamedTuple):
    """The reference of a step: losses by micro-batch, and gradients by (stage, parameter).

    Losses are not divided by the number of micro-batches, and there are none unless a last stage is in this process.
    Gradients are of the stages of this process.
    """

    losses: Mapping[MicrobatchId, Tensor]
    gradients: Mapping[tuple[StageId, str], Gradient]


def reference(
    job: Job, local: RankStages, rank: int, device: torch.device, step: int, tell: Callable[[], None]
) -> StepReference:
    """Return losses and gradients of the mean loss over a step's micro-batches; to be called by every process.

    Every chain computes all micro-batches of the step, each stage by plain autograd in the process that has it, so that
    no process needs more than its stages. `tell` is called before each stage. Parameters stay as they are, and their
    `grad` ends as None. `rank` is that of this process, `step` the number of the step from 0.
    """
    sums = _Sums(local, job.problem.microbatches)
    where = job.problem.placement
    for chain in where.chains:
        walk = ChainWalk(where, chain, rank, device)
        for j in range(job.problem.microbatches):
            one = _OneMicrobatch(local, chain, device, step * job.problem.microbatches + j, tell)
            walk.forward(to_device(local.model.inputs(one.number), device) if walk.first_is_here else None, one.forward)
            walk.backward(partial(sums.add, one))
            if one.loss is not None:
                sums.losses[j] = one.loss.detach()
    return StepReference(sums.losses, sums.gradients())


class _OneMicrobatch:
    """One micro-batch on its path through the stages of a chain on this device."""

    def __init__(
        self, local: RankStages, chain: Sequence[int], device: torch.device, number: int, tell: Callable[[], None]
    ) -> None:
        self.number = number
        self.loss: Tensor | None = None
        self._local, self._chain, self._device, self._tell = local, chain, device, tell
        self._passed: dict[int, tuple[list[Tensor], list[Tensor]]] = {}

    def forward(self, stage: StageId, value: Any) -> Any:
        self._tell()
        self._local.draws.seed(self._chain.index(stage), stage, self.number)
        result = call(self._local.twins[stage], value)
        if stage == self._chain[-1]:
            target = to_device(self._local.model.targets(self.number), self._device)
            self.loss = result = self._local.model.loss(result, target)
        self._passed[stage] = tensors_of(value, "an input")[0], tensors_of(result, "an output")[0]
        return result

    def backward(self, stage: StageId, given: Sequence[Tensor | None] | None) -> list[Tensor | None]:
        """Return the gradients of a stage's inputs; `given` are those of its outputs, None if its output is the loss.

        Gradients of parameters are added to their `grad`.
        """
        self._tell()
        inputs, outputs = self._passed.pop(stage)
        pairs = list(zip(outputs, [None] * len(outputs) if given is None else given, strict=True))
        wanted = [(y, dy) for y, dy in pairs if y.requires_grad and (given is None or dy is not None)]
        if wanted:
            torch.autograd.backward([y for y, _ in wanted], [dy for _, dy in wanted])
        return [one.grad for one in inputs]


class _Sums:
    """Sums of the contributions of micro-batches to each parameter, added as autograd does, and of their norms."""

    def __init__(self, local: RankStages, microbatches: int) -> None:
        self.losses: dict[int, Tensor] = {}
        self._local, self._microbatches = local, microbatches
        self._sum: dict[tuple[int, str], Tensor] = {}
        self._norms: dict[tuple[int, str], float] = {}

    def add(self, one: _OneMicrobatch, stage: StageId, given: Sequence[Tensor | None] | None) -> list[Tensor | None]:
        """Run a stage's backward, and move the gradients that it left at the parameters to the sums and norms.

        `given` are the gradients of the stage's outputs (None: its output is the loss); returned are those of its
        inputs.
        """
        result = one.backward(stage, given)
        for name, parameter in self._local.twins[stage].named_parameters():
            gradient, parameter.grad = parameter.grad, None
            if gradient is not None:
                key = stage, name
                self._sum[key] = self._sum[key].add_(gradient) if key in self._sum else gradient
                norm = float(torch.linalg.vector_norm(gradient, dtype=torch.float64))
                self._norms[key] = self._norms.get(key, 0.0) + norm
        return result

    def gradients(self) -> dict[tuple[StageId, str], Gradient]:
        """Return each gradient by (stage, parameter's name), with the mean norm of micro-batches' contributions to it.

        A gradient is the sum over micro-batches divided at the end, as PyTorch's runtime does; its `value` is None for
        a parameter that got none. To be called once, as the sums are used up.
        """
        found = {}
        for stage, module in self._local.twins.items():
            for name, parameter in module.named_parameters():
                if parameter.requires_grad:
                    total = self._sum.pop((stage, name), None)
                    value = None if total is None else total.div_(self._microbatches)
                    found[stage, name] = Gradient(value, self._norms.get((stage, name), 0.0) / self._microbatches)
        return found
