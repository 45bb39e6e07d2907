"""Activations of forwards in Megatron: kept, moved to the host and back, or recomputed from the input."""

from __future__ import annotations

from typing import Any

import torch
from megatron.core.pipeline_parallel import schedules

from runtime.execution.program import Program, Step
from runtime.execution.saved import Saved
from runtime.megatron.call import Call
from runtime.megatron.forwards import Forwards
from runtime.megatron.random_state import RandomState


class Activations:
    """Activations of one rank in one iteration, by stage and micro-batch.

    Each method does its part of a pass of the schedule. `forward` keeps what the backward needs, `move_out` and
    `move_in` copy it to the host and back, `again` recomputes it, and `take` returns it for the backward. `moved`
    counts the bytes sent to the host.
    """

    def __init__(self, program: Program, call: Call) -> None:
        self._program, self._call = program, call
        self._chunks = dict(zip(program.stages_of(call.rank), call.chunks, strict=True))
        passes = [step for step in program.rows[call.rank] if not step.transfer]
        self._recomputed = {(step.stage, step.microbatch) for step in passes if step.kind[0] == "R"}
        self._offloaded = {(step.stage, step.microbatch) for step in passes if step.kind == "O"}
        self.forwards, self.moved = Forwards(program, call), 0
        self._inputs, self._outputs = dict[tuple[int, int], Any](), dict[tuple[int, int], Any]()
        self._saved, self._random = dict[tuple[int, int], Saved](), dict[tuple[int, int], RandomState]()

    def forward(self, step: Step, x: Any) -> None:
        """Run a forward on input `x`, None for stage 0, and keep what its backward needs.

        That is all saved tensors, also those that an offload moves later; for a recomputation only the input and random
        state.
        """
        where = step.stage, step.microbatch
        self._inputs[where] = x
        if where in self._recomputed:
            self._random[where] = RandomState.now()
            with torch.no_grad():
                self._outputs[where] = self.forwards.run(step, x, kept=True)
        elif where in self._offloaded:
            stay = [*self._chunks[step.stage].parameters(), *([] if x is None else [x])]
            self._saved[where] = Saved(stay, self._program.offloaded[step.stage])
            with self._saved[where].collect():
                self._outputs[where] = self.forwards.run(step, x)
        else:
            self._outputs[where] = self.forwards.run(step, x)

    def leaving(self, step: Step) -> torch.Tensor:
        """Return the output of a stage to hand to the next one, detached from the original.

        If Megatron's `deallocate_pipeline_outputs` is set, the data of the original is freed: the backward only needs
        its node in the autograd graph.
        """
        output = self._outputs[step.stage, step.microbatch]
        left = output.detach()
        schedules.deallocate_output_tensor(output, self._call.config.deallocate_pipeline_outputs)
        return left  # type: ignore[no-any-return]

    def move_out(self, step: Step) -> None:
        self.moved += self._saved[step.stage, step.microbatch].move_out()

    def move_in(self, step: Step) -> None:
        self._saved[step.stage, step.microbatch].move_in()

    def again(self, step: Step) -> None:
        """Recompute a forward, from the same input, data items and random state.

        To be called once, before its backward. On a stage other than the last, the output's data is freed at once if
        Megatron's `deallocate_pipeline_outputs` is set.
        """
        where = step.stage, step.microbatch
        with self._random.pop(where).again():
            self._outputs[where] = self.forwards.run(step, self._inputs[where], again=True)
        if step.stage != self._program.last_stage:
            self.leaving(step)

    def take(self, step: Step) -> tuple[Any, Any]:
        """Return input and output of a forward, for its backward, and forget them; the input is None for stage 0."""
        where = step.stage, step.microbatch
        self._saved.pop(where, None)
        return self._inputs.pop(where), self._outputs.pop(where)
