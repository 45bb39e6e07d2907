"""Our executors with the interface of PyTorch's runtime, for training loops of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage

from pipesched.errors import BadInput
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from runtime.pytorch.passes.boundary import Boundary, FlatStage, boundary_of, call, loss_of_tensors
from runtime.pytorch.stage_chain import ChainWalk
from runtime.pytorch.stages import twin


@dataclass
class WiredStages:
    """A process's stages as PyTorch's `PipelineStage`s, and the input and output of each.

    `takes` and `gives` are the input and output, by stage number.
    """

    stages: dict[StageId, PipelineStage] = field(default_factory=dict)
    takes: dict[StageId, Boundary] = field(default_factory=dict)
    gives: dict[StageId, Boundary] = field(default_factory=dict)


class StageExecutor(Protocol):
    """An executor of one iteration: `step` returns, by micro-batch, the losses of those whose last stage is here."""

    def step(self, inputs: Mapping[int, Any], targets: Mapping[int, Any]) -> dict[int, float]: ...


# Makes the executor of the stages of this rank, with loss(output, target) of a micro-batch.
MakeExecutor: TypeAlias = Callable[[WiredStages, Callable[[Any, Any], Tensor]], StageExecutor]


class StagesRuntime:
    """Runs the stages of this rank, by the placement's number, with the `step` of PyTorch's schedules.

    A rank with the first stage of a chain gives `step` the whole batch, one with a last stage all targets: each chain
    takes its own micro-batches of them. The first `step` sends one micro-batch through all chains to learn shapes, then
    calls `make` for the executor. `BadInput` for a batch or target that is missing or does not divide into
    micro-batches, or without a loss for a last stage.
    """

    def __init__(
        self,
        problem: Problem,
        modules: Mapping[int, nn.Module],
        loss_fn: Callable[[Any, Any], Tensor] | None,
        make: MakeExecutor,
    ) -> None:
        self._problem, self._modules, self._loss, self._make = problem, modules, loss_fn, make
        where, self._rank = problem.placement, dist.get_rank()
        self._first = any(chain[0] in modules for chain in where.chains)
        self._last = any(chain[-1] in modules for chain in where.chains)
        self._executor: StageExecutor | None = None

    def step(self, *args: Any, target: Any = None, losses: list[Tensor] | None = None, **_: Any) -> None:
        """Run an iteration on a batch (`args`, needed for a first stage here) and its `target` (for a last stage here).

        Both are cut into the schedule's micro-batches. The content of `losses`, if given, is replaced by the losses of
        the micro-batches whose last stage is here, in ascending order of their numbers. Further named arguments are
        ignored.
        """
        number = self._problem.microbatches
        self._check(args[0] if args else None, "a batch", self._first)
        self._check(target, "a target", self._last)
        chunks = list(zip(*(one.tensor_split(number) for one in args), strict=True)) if self._first else []
        inputs = {j: chunk[0] if len(chunk) == 1 else chunk for j, chunk in enumerate(chunks)}
        targets = dict(enumerate(target.tensor_split(number))) if self._last else {}
        if self._executor is None:
            self._executor = self._prepared(inputs.get(0))
        found = self._executor.step(inputs, targets)
        if losses is not None:
            losses[:] = [torch.tensor(found[j]) for j in sorted(found)]

    def _check(self, value: Any, what: str, needed: bool) -> None:
        number = self._problem.microbatches
        if needed and (value is None or len(value) % number):
            found = "none" if value is None else f"{what} of {len(value)} samples"
            raise BadInput(f"step: found {found}; allowed: {what} of {number} micro-batches, which are alike")
        if self._last and self._loss is None:
            raise BadInput("loss_fn: found none; allowed: a loss, since this rank holds a last stage")

    def _prepared(self, sample: Any) -> StageExecutor:
        """Return the executor, once the inputs and outputs of stages are known.

        To learn these, the micro-batch `sample` is sent through each chain without gradients.
        """
        wired, placement = WiredStages(), self._problem.placement
        position = {stage: at for chain in placement.chains for at, stage in enumerate(chain)}
        device = next((p.device for module in self._modules.values() for p in module.parameters()), torch.device("cpu"))

        def run(number: int, value: object) -> object:
            wired.takes[number] = boundary_of(value, f"what stage {number} is given")
            result = call(twin(self._modules[number]), value)
            wired.gives[number] = boundary_of(result, f"what stage {number} returns")
            return result

        for chain in placement.chains:
            walk = ChainWalk(placement, chain, self._rank, device)
            walk.forward(sample if walk.first_is_here else None, run)
        for number, module in self._modules.items():
            takes, gives = wired.takes[number], wired.gives[number]
            wired.stages[number] = PipelineStage(
                FlatStage(module, takes.spec), position[number], len(placement.chains[0]), device,
                input_args=takes.like, output_args=gives.like,
            )  # fmt: skip
        return self._make(wired, self._loss_of(wired))

    def _loss_of(self, wired: WiredStages) -> Callable[[Any, Any], Tensor]:
        lasts = [chain[-1] for chain in self._problem.placement.chains if chain[-1] in wired.gives]
        if self._loss is None or not lasts:
            return lambda *_: torch.zeros(())
        return loss_of_tensors(self._loss, wired.gives[lasts[0]].spec)
