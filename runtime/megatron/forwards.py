"""Forwards of one rank by Megatron's own `forward_step`, in any order of micro-batches."""

from __future__ import annotations

from typing import Any

import torch
from megatron.core.pipeline_parallel import schedules

from runtime.execution.program import Program, Step
from runtime.megatron.batches import NumberedBatches
from runtime.megatron.call import Call


class Forwards:
    """The forwards of one call of Megatron's forward-backward function, on the rank of the call.

    `run` runs that of a step and returns its output. `tokens`, a tensor of one number on the GPU, sums the token counts
    that the loss functions returned.
    """

    def __init__(self, program: Program, call: Call) -> None:
        self._call, self._last_stage = call, program.last_stage
        self._chunk = {stage: chunk for chunk, stage in enumerate(program.stages_of(call.rank))}
        self._batches = [None if one is None else NumberedBatches(one) for one in call.iterators]
        self._begun, self._losses = set[int](), dict[int, list[Any]]()
        self.tokens = torch.zeros([], dtype=torch.int, device=torch.cuda.current_device())

    @property
    def losses(self) -> list[Any]:
        """The results of the loss function in the order of the micro-batches' numbers.

        Empty except on the last stage's rank.
        """
        return [one for microbatch in sorted(self._losses) for one in self._losses[microbatch]]

    def is_first(self, stage: int) -> bool:
        """Return True if no forward of the stage has run."""
        return stage not in self._begun

    def run(self, step: Step, x: Any, again: bool = False, kept: bool = False) -> Any:
        """Run a forward on input `x` (None for stage 0) and return its output; on the last stage, the loss.

        `again`: it is a recomputation, and counts no tokens or losses; `kept`: the forward will be recomputed, so its
        data items are kept.
        """
        call, chunk, losses = self._call, self._chunk[step.stage], list[Any]()
        batches = self._batches[chunk]
        if batches is not None:
            batches.begin(step.microbatch)
        output, tokens = schedules.forward_step(
            call.forward_step,
            batches,
            call.chunks[chunk],
            call.microbatches,
            x,
            losses,
            call.config,
            cp_group_size=call.groups.cp.size(),
            collect_non_loss_data=call.collect_non_loss_data,
            is_first_microbatch=call.first_val_step and self.is_first(step.stage),
            current_microbatch=step.microbatch,
            vp_stage=chunk if len(call.chunks) > 1 else None,
            is_last_stage=step.stage == self._last_stage,
        )
        if batches is not None:
            batches.end()
            if not kept:
                batches.forget(step.microbatch)
        if again:
            return output
        self._begun.add(step.stage)
        if losses:
            self._losses[step.microbatch] = losses
        self.tokens += tokens
        return output
