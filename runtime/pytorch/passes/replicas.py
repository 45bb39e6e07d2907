"""Gradients of a stage that two devices run: summed at the end of a step, so that both copies have the sum."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId


def sum_replicas(problem: Problem, stages: Mapping[StageId, PipelineStage]) -> None:
    """Sum the gradients over the replicas of the stages of this process, so that each `grad` is the sum.

    `stages` are those of this process by number. All processes must call it, since they exchange gradients. A parameter
    without a gradient counts as 0; with one chain nothing happens.
    """
    where = problem.placement
    for number, stage in sorted(stages.items(), key=lambda item: _position(problem, item[0])):
        position = _position(problem, number)
        for twin in (chain[position] for chain in where.chains if chain[position] != number):
            _add(stage.submod, where.stage_device[twin], stages.get(twin), first=number < twin)


def _position(problem: Problem, stage: StageId) -> int:
    where = problem.placement
    return where.chains[where.chain_index[stage]].index(stage)


def _add(module: nn.Module, peer: int, here: PipelineStage | None, first: bool) -> None:
    """Add a replica's gradients to those of `module`, in place; afterwards both replicas have the sum.

    The replica is the stage `here`, if on this device (then only the call with `first` adds), else in the process
    `peer`.
    """
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
