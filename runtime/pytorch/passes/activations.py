"""Activations of PyTorch's stages: kept, moved to the host and back, or recomputed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.distributed.pipelining import PipelineStage

from pipesched.problem.quantities import DeviceId, MicrobatchId, StageId
from runtime.execution.program import Program, Step
from runtime.execution.saved import Saved

# Of a pass: its stage and micro-batch.
Where: TypeAlias = tuple[StageId, MicrobatchId]


class Activations:
    """The activations of one rank in one iteration; each method runs, or prepares, a pass of the schedule.

    `move_out` and `move_in` copy what a forward saved to the host and back, `again` recomputes it. `moved` counts the
    bytes sent to the host. `losses` has the losses of the last stage by micro-batch, computed by `loss(microbatch,
    outputs)`. `stages` are those of `rank`, by stage number.
    """

    def __init__(
        self,
        program: Program,
        rank: DeviceId,
        stages: Mapping[StageId, PipelineStage],
        loss: Callable[[MicrobatchId, Any], Tensor],
    ) -> None:
        self._program, self._stages, self._loss = program, stages, loss
        passes = [step for step in program.rows[rank] if not step.transfer]
        self._recomputed = {(step.stage, step.microbatch) for step in passes if step.kind[0] == "R"}
        self._offloaded = {(step.stage, step.microbatch) for step in passes if step.kind == "O"}
        self._saved, self._random = dict[Where, Saved](), dict[Where, list[Tensor]]()
        self._inputs, self.losses = dict[Where, tuple[Any, ...]](), dict[int, Tensor]()
        self.moved = 0

    def forward(self, step: Step, arguments: tuple[Any, ...]) -> list[Tensor]:
        """Run a forward on `arguments`, keep what its backward needs, and return the tensors for the next stage.

        `arguments` are the first stage's input tensors; other stages take what was set as their input, and get (). The
        returned list is empty for the last stage, whose loss is added to `losses`. Kept are all saved tensors, also
        those that an offload moves later; for a recomputation only the input and random state.
        """
        where = step.stage, step.microbatch
        if where in self._recomputed:
            self._inputs[where] = arguments
            self._random[where] = _random_state()
            with torch.no_grad():
                yielded = self._run(step, arguments)
            del self._stages[step.stage].fwd_cache[step.microbatch]
            return yielded
        if where not in self._offloaded:
            return self._run(step, arguments)
        stage = self._stages[step.stage]
        self._saved[where] = Saved([*stage.submod.parameters(), *_input(stage, step, arguments)], self._share(step))
        with self._saved[where].collect():
            return self._run(step, arguments)

    def again(self, step: Step) -> None:
        """Recompute a forward from the same input and random state, once, before its backward."""
        where = step.stage, step.microbatch
        now, before = _random_state(), self._random.pop(where)
        _restore(before)
        try:
            self._run(step, self._inputs.pop(where))
        finally:
            _restore(now)

    def move_out(self, step: Step) -> None:
        self.moved += self._saved[step.stage, step.microbatch].move_out()

    def move_in(self, step: Step) -> None:
        self._saved[step.stage, step.microbatch].move_in()

    def backward(self, step: Step) -> None:
        """Run a B or BW; saved tensors are freed with the graph: at the end of BW, or of the W after a B."""
        stage = self._stages[step.stage]
        loss = self.losses.get(step.microbatch) if stage.is_last else None
        tell = getattr(getattr(stage.submod, "stage", None), "run_fused", None)
        if tell is not None:  # sleeping stages must know; no other stage has it
            tell(step.kind == "BW")
        stage.backward_one_chunk(step.microbatch, loss, step.kind == "BW")
        self._saved.pop((step.stage, step.microbatch), None)
        if loss is not None:
            self.losses[step.microbatch] = loss.detach()

    def _share(self, step: Step) -> float:
        return self._program.offloaded[step.stage]

    def _run(self, step: Step, arguments: tuple[Any, ...]) -> list[Tensor]:
        stage = self._stages[step.stage]
        stage.forward_one_chunk(step.microbatch, arguments, save_forward_output=False)
        outputs = stage.fwd_cache[step.microbatch][0]
        if stage.is_last:
            self.losses[step.microbatch] = self._loss(step.microbatch, outputs)
            return []
        return [_left(one) for one in outputs]


def _left(output: Tensor) -> Tensor:
    """Return an output for the next stage, and free its data here.

    Here only its graph node and shape are still needed.
    """
    left = output.detach()
    output.data = output.new_empty(()).expand(output.shape)
    return left


def _input(stage: PipelineStage, step: Step, arguments: tuple[Any, ...]) -> Iterable[Tensor]:
    """Return the tensors that a forward takes: the micro-batch's input, or the buffers in which it was received."""
    if stage.is_first:
        return [one for one in arguments if isinstance(one, Tensor)]
    return [one.buffer for one in stage.args_recv_info[step.microbatch]]  # type: ignore[misc]


def _random_state() -> list[Tensor]:
    """Return the states of the random generators of the CPU and of this process's GPU, if it has one."""
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if torch.cuda.is_available() else [])]


def _restore(state: list[Tensor]) -> None:
    torch.set_rng_state(state[0])
    for one in state[1:]:
        torch.cuda.set_rng_state(one)
