"""Our own executor for schedules that PyTorch's runtime does not take: placements that hold a stage on two devices.

It drives PyTorch's `PipelineStage` pass by pass in the schedule's order. Each message has its own tag, and all
receives of a step are posted before it begins, so that no order of sends can lock; at the end of a step the gradients
of the replicas of a stage are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining._utils import InferenceMode
from torch.utils._pytree import tree_flatten

from pipesched.problem.passes import BW, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from runtime.pytorch.boundary import Boundary


class Held(Protocol):
    """A process's stages by the placement's stage number, and what passes in and out of each."""

    @property
    def stages(self) -> Mapping[int, PipelineStage]: ...

    @property
    def takes(self) -> Mapping[int, Boundary]: ...

    @property
    def gives(self) -> Mapping[int, Boundary]: ...


class Executor:
    """One process: device `device` of the placement, with the stages that it holds."""

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        device: int,
        held: Held,
        loss: Callable[[Any, Any], Tensor],
        scale_grads: bool = True,
    ) -> None:
        self._scale = problem.microbatches if scale_grads else 1
        self._problem, self._device, self._held, self._stages = problem, device, held, held.stages
        self._order = list(schedule.passes_on(device))
        self._loss = loss
        self._most_tensors = 1 + max(
            len(one.like) for held_here in (held.takes, held.gives) for one in held_here.values()
        )
        for number, stage in held.stages.items():
            prepare(stage, problem, number)

    def step(self, inputs: Mapping[int, Any], targets: Mapping[int, Any]) -> dict[int, float]:
        """One iteration; the losses of the micro-batches whose last stage is here."""
        for stage in self._stages.values():
            stage.clear_runtime_states()
        arriving = self._post_receives()
        leaving: list[tuple[Any, Tensor]] = []
        losses: dict[int, Tensor] = {}
        for p in self._order:
            if p in arriving:
                for work, _ in arriving[p]:
                    work.wait()
                self._hand_over(p, [tensor for _, tensor in arriving.pop(p)])
            result = self._run(p, inputs, targets, losses)
            if result is not None:
                leaving += self._pass_on(p, result)
        for work, _ in leaving:
            work.wait()
        self._sum_replicas()
        return {j: loss.item() for j, loss in losses.items()}

    def _run(
        self, p: Pass, inputs: Mapping[int, Any], targets: Mapping[int, Any], losses: dict[int, Tensor]
    ) -> list[Tensor] | None:
        """Run a pass; the tensors it yields for a neighbour, if it does."""
        kind, number, j = p
        stage = self._stages[number]
        if kind is W:
            stage.backward_weight_one_chunk(j)
            return None
        if kind is F:
            output = stage.forward_one_chunk(j, tuple(tree_flatten(inputs[j])[0]) if stage.is_first else ())
            if not stage.is_last:
                return [one.detach() for one in output]
            losses[j] = self._loss(output, targets[j])
            return None
        loss = losses[j] if stage.is_last else None
        stage.backward_one_chunk(j, loss=loss, full_backward=kind is BW, last_backward=False)
        if loss is not None:
            losses[j] = loss.detach()
        if stage.is_first:
            return None
        given = stage.get_local_bwd_output(j)  # type: ignore[no-untyped-call]
        gradients = zip(given, self._held.takes[number].like, strict=True)
        return [torch.zeros_like(like) if one is None else one for one, like in gradients if like.requires_grad]

    def _follower(self, p: Pass) -> int | None:
        """The stage that gets what p yields."""
        where = self._problem.placement
        return where.next[p.stage] if p.kind is F else where.previous[p.stage]

    def _pass_on(self, p: Pass, tensors: list[Tensor]) -> list[tuple[Any, Tensor]]:
        to = self._follower(p)
        assert to is not None
        device = self._problem.placement.stage_device[to]
        follower = Pass(p.kind, to, p.microbatch)
        if device == self._device:
            self._hand_over(follower, tensors)
            return []
        whole = [tensor.contiguous() for tensor in tensors]
        return [(dist.isend(one, device, tag=self._tag(follower, at)), one) for at, one in enumerate(whole)]

    def _hand_over(self, p: Pass, tensors: list[Tensor]) -> None:
        """Give a stage what came from its neighbour; an output that asks for no gradient gets none."""
        stage = self._stages[p.stage]
        if p.kind is F:
            stage.set_local_fwd_input(tuple(tensors), p.microbatch)
        else:
            coming = iter(tensors)
            likes = self._held.gives[p.stage].like
            stage.set_local_bwd_input(
                tuple(next(coming) if like.requires_grad else None for like in likes), p.microbatch
            )

    def _post_receives(self) -> dict[Pass, list[tuple[Any, Tensor]]]:
        where, arriving = self._problem.placement, {}
        for p in self._order:
            sender = None if p.kind is W else where.previous[p.stage] if p.kind is F else where.next[p.stage]
            if sender is None or where.stage_device[sender] == self._device:
                continue
            takes, gives = self._held.takes[p.stage].like, self._held.gives[p.stage].like
            likes = takes if p.kind is F else [like for like in gives if like.requires_grad]
            buffers = [torch.empty_like(like) for like in likes]
            device = where.stage_device[sender]
            arriving[p] = [(dist.irecv(one, device, tag=self._tag(p, at)), one) for at, one in enumerate(buffers)]
        return arriving

    def _tag(self, receiver: Pass, tensor: int) -> int:
        """A unique number for every tensor of every message of a step."""
        message = 2 * (receiver.stage * self._problem.microbatches + receiver.microbatch) + (receiver.kind is F)
        return 1 + message * self._most_tensors + tensor

    def _sum_replicas(self) -> None:
        """Mean loss over the micro-batches, and one gradient for all replicas of a stage."""
        where = self._problem.placement
        for stage in self._stages.values():
            stage.scale_grads(self._scale)
        for number, stage in sorted(self._stages.items(), key=lambda item: _position(self._problem, item[0])):
            position = _position(self._problem, number)
            twins = [chain[position] for chain in where.chains if chain[position] != number]
            for twin in twins:
                _add(stage.submod, where.stage_device[twin], self._stages.get(twin), first=number < twin)


def prepare(stage: PipelineStage, problem: Problem, number: int) -> None:
    """What PyTorch's schedules do with a stage before its first step, for the chain that the stage is on."""
    where = problem.placement
    chain = where.chains[where.chain_index[number]]
    stage.stage_index_to_group_rank = {at: where.stage_device[s] for at, s in enumerate(chain)}
    stage.has_backward = True
    stage.chunks = problem.microbatches
    stage._inference_mode = InferenceMode.STATIC
    stage._prepare_forward_infra(problem.microbatches, None, None, has_backward=True)
    stage._prepare_backward_infra(problem.microbatches)


def _position(problem: Problem, stage: int) -> int:
    where = problem.placement
    return where.chains[where.chain_index[stage]].index(stage)


def _add(module: nn.Module, peer: int, here: PipelineStage | None, first: bool) -> None:
    """Add a replica's gradients to this one's: those of `here`, or of the process `peer`."""
    with torch.no_grad():
        mine = [parameter for parameter in module.parameters() if parameter.requires_grad]
        for parameter in mine:
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        if here is not None:
            if first:  # both replicas are on this device: once is enough
                twins = (twin for twin in here.submod.parameters() if twin.requires_grad)
                for parameter, twin in zip(mine, twins, strict=True):
                    assert parameter.grad is not None
                    if twin.grad is not None:
                        parameter.grad += twin.grad
                    twin.grad = parameter.grad.clone()
            return
        for parameter in mine:
            assert parameter.grad is not None
            theirs = torch.empty_like(parameter.grad)
            ops = [dist.P2POp(dist.isend, parameter.grad, peer), dist.P2POp(dist.irecv, theirs, peer)]
            for work in dist.batch_isend_irecv(ops):
                work.wait()
            parameter.grad += theirs
