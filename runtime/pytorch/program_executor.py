"""Execution of a rank's program with PyTorch's stages, for schedules that PyTorch's runtime does not support.

These have a stage on two devices, or offload or recomputation, on the streams and with the waits of the program. Sends
and receives are at the places of the proof, in one order with all other steps that the rank launches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining._utils import InferenceMode
from torch.utils._pytree import tree_flatten

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MicrobatchId, StageId
from runtime.execution.program import Program, Step
from runtime.execution.streams import Streams
from runtime.execution.transfers import Transfers
from runtime.pytorch.passes.activations import Activations
from runtime.pytorch.passes.boundary import Boundary
from runtime.pytorch.passes.replicas import sum_replicas


class RankStages(Protocol):
    """A process's stages by the placement's stage number, and the inputs (`takes`) and outputs (`gives`) of each."""

    @property
    def stages(self) -> Mapping[StageId, PipelineStage]: ...

    @property
    def takes(self) -> Mapping[StageId, Boundary]: ...

    @property
    def gives(self) -> Mapping[StageId, Boundary]: ...


class ProgramExecutor:
    """The executor of this rank's row of `program`, on its stages (`local`).

    `loss(output, target)` is the loss of a micro-batch. With `scale_grads` gradients are divided by the number of
    micro-batches. `executed` has the steps of the last iteration, as text; `moved` is the number of bytes that the
    iteration copied to the host. Each pass is run by a call of `watch(step, run)`, once the tensors that it waits for
    are there; `watch` returns the result of `run()`. The rank is that of the default process group, which must exist.
    """

    def __init__(
        self,
        problem: Problem,
        program: Program,
        local: RankStages,
        loss: Callable[[Any, Any], Tensor],
        scale_grads: bool = True,
        watch: Callable[[Step, Callable[[], Any]], Any] = lambda _, run: run(),
    ) -> None:
        self._problem, self._program, self._local, self._loss = problem, program, local, loss
        self._rank, self._row = dist.get_rank(), program.rows[dist.get_rank()]
        self._scale = program.microbatches if scale_grads else 1
        self.executed, self.moved, self._watch = list[str](), 0, watch
        for number, stage in local.stages.items():
            _prepare(stage, problem, number)

    def step(
        self, inputs: Mapping[MicrobatchId, Any], targets: Mapping[MicrobatchId, Any]
    ) -> dict[MicrobatchId, float]:
        """Run one iteration; return by micro-batch the losses, unscaled, of those whose last stage is on this rank.

        `inputs` and `targets` are by micro-batch. Gradients are added to the `grad` of parameters, which is then
        divided by the number of micro-batches if `scale_grads` is set. At the end gradients are summed over both copies
        of a stage, but not over data-parallel ranks.
        """
        for stage in self._local.stages.values():
            stage.clear_runtime_states()
        kept = Activations(
            self._program, self._rank, self._local.stages, lambda j, output: self._loss(output, targets[j])
        )
        transfers, streams = Transfers(dist.group.WORLD, self._empty), Streams(self._row)
        leaving = dict[tuple[Any, ...], list[Tensor]]()
        run: dict[str, Callable[[Step], None]] = {
            "F": lambda step: self._forward(step, kept, transfers, leaving, inputs),
            "W": self._watched(lambda step: self._local.stages[step.stage].backward_weight_one_chunk(step.microbatch)),
            "O": self._watched(kept.move_out),
            "L": self._watched(kept.move_in),
        }
        run["B"] = run["BW"] = lambda step: self._backward(step, kept, transfers, leaving)
        self.executed.clear()
        for step in self._row:
            if step.transfer == "send":
                for tensor in leaving.pop(step.yields):
                    transfers.send(step.peer, tensor)
            elif step.transfer:
                for name in self._names(step):
                    transfers.receive(step.peer, name)
            else:
                streams.run(step, run.get(step.kind, self._watched(kept.again)))
            self.executed.append(str(step))
        transfers.finish()
        self.moved = kept.moved
        for stage in self._local.stages.values():
            stage.scale_grads(self._scale)
        sum_replicas(self._problem, self._local.stages)
        return {j: loss.item() for j, loss in kept.losses.items()}

    def _watched(self, start: Callable[[Step], None]) -> Callable[[Step], None]:
        return lambda step: self._watch(step, lambda: start(step))

    def _forward(
        self, step: Step, kept: Activations, transfers: Transfers, leaving: dict[Any, Any], inputs: Mapping[int, Any]
    ) -> None:
        stage = self._local.stages[step.stage]
        if not stage.is_first:
            before = Step("F", self._neighbour("B", step.stage), step.microbatch)
            stage.set_local_fwd_input(tuple(map(transfers.take, self._names(before))), step.microbatch)
        arguments = tuple(tree_flatten(inputs[step.microbatch])[0]) if stage.is_first else ()
        yielded = self._watch(step, lambda: kept.forward(step, arguments))
        if not stage.is_last:
            self._give(step, yielded, transfers, leaving)

    def _backward(self, step: Step, kept: Activations, transfers: Transfers, leaving: dict[Any, Any]) -> None:
        stage = self._local.stages[step.stage]
        if not stage.is_last:
            after = Step("B", self._neighbour("F", step.stage), step.microbatch)
            coming = map(transfers.take, self._names(after))
            likes = self._local.gives[step.stage].like
            gradients = tuple(next(coming) if like.requires_grad else None for like in likes)
            stage.set_local_bwd_input(gradients, step.microbatch)
        self._watch(step, lambda: kept.backward(step))
        if not stage.is_last:
            for message, like in zip(stage.grad_recv_info[step.microbatch], likes, strict=True):
                message.buffer = None if like.requires_grad else message.buffer
        if stage.is_first:
            return
        for message in stage.args_recv_info[step.microbatch]:
            message.buffer = None
        given = stage.get_local_bwd_output(step.microbatch)  # type: ignore[no-untyped-call]
        pairs = zip(given, self._local.takes[step.stage].like, strict=True)
        found = [torch.zeros_like(like) if one is None else one for one, like in pairs if like.requires_grad]
        self._give(step, found, transfers, leaving)

    def _give(self, step: Step, tensors: list[Tensor], transfers: Transfers, leaving: dict[Any, Any]) -> None:
        """Hand a pass's tensors to the next stage if it is on this rank, else put them into `leaving` for the send."""
        if self._neighbour(step.kind, step.stage) in self._local.stages:
            for name, tensor in zip(self._names(step), tensors, strict=True):
                transfers.hand_over(name, tensor)
        else:
            leaving[step.yields] = tensors

    def _neighbour(self, kind: str, stage: StageId) -> StageId:
        """Return the stage that gets the output of a pass: after a forward (`kind` F) the next, else the previous."""
        where = self._problem.placement
        found = where.next[stage] if kind == "F" else where.previous[stage]
        assert found is not None
        return found

    def _names(self, step: Step) -> Iterator[tuple[Any, ...]]:
        """Yield the names of the tensors that a pass yields for the neighbouring stage.

        A name is (kind, stage, micro-batch, number).
        """
        return ((*step.yields, at) for at in range(len(self._likes(*step.yields))))

    def _likes(self, kind: str, stage: StageId, _: int) -> list[Tensor]:
        """Return empty tensors with the shapes of those that a pass sends.

        They are outputs of a forward (`kind` F), else gradients of inputs. The stage or the one that receives them is
        on this rank.
        """
        takes, gives = self._local.takes, self._local.gives
        if kind == "F":
            return [*(gives[stage] if stage in gives else takes[self._neighbour("F", stage)]).like]
        likes = takes[stage].like if stage in takes else gives[self._neighbour("B", stage)].like
        return [like for like in likes if like.requires_grad]

    def _empty(self, name: tuple[Any, ...]) -> Tensor:
        *yields, at = name
        return torch.empty_like(self._likes(*yields)[at], requires_grad=False)


def _prepare(stage: PipelineStage, problem: Problem, number: StageId) -> None:
    """Prepare a stage as PyTorch's schedules do before its first step, for the chain that the stage is on."""
    placement = problem.placement
    chain = placement.chains[placement.chain_index[number]]
    stage.stage_index_to_group_rank = {at: placement.stage_device[s] for at, s in enumerate(chain)}
    stage.has_backward = True
    stage.chunks = problem.microbatches
    stage._inference_mode = InferenceMode.STATIC
    stage._prepare_forward_infra(problem.microbatches, None, None, has_backward=True)
    stage._prepare_backward_infra(problem.microbatches)
