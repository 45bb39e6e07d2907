"""One training iteration of one rank: its passes, sends and receives in the order of a program."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

from megatron.core.enums import ModelType
from megatron.core.pipeline_parallel import schedules

from runtime.execution.program import Program, Step
from runtime.execution.streams import Streams
from runtime.execution.transfers import Transfers
from runtime.megatron.activations import Activations
from runtime.megatron.call import Call
from runtime.megatron.reductions import Reductions
from runtime.megatron.weight_gradients import WeightGradients


class Iteration:
    """One iteration of a rank, to be run once; tensors are named by (kind, stage, micro-batch) of their pass.

    `executed` has the steps run so far as text, `activations` the losses, tokens and bytes copied to the host.
    """

    def __init__(self, program: Program, call: Call) -> None:
        self._program, self._call, self._row = program, call, program.rows[call.rank]
        self._chunk = {stage: chunk for chunk, stage in enumerate(program.stages_of(call.rank))}
        self.activations = Activations(program, call)
        self._transfers = Transfers(call.group, lambda _: call.empty())
        self._weights = WeightGradients(call.chunks, any(step.kind == "W" for step in self._row))
        self._reductions = Reductions(call.config, call.chunks, call.force_all_reduce)
        self._last_backward = {step.stage: step for step in self._row if step.kind in ("B", "BW") and not step.transfer}
        self._last_weight = {step.stage: step for step in self._row if step.kind in ("W", "BW") and not step.transfer}
        self._gradients: dict[tuple[int, int], Any] = {}
        forwards = (self._chunk[step.stage] for step in self._row if step.kind == "F" and not step.transfer)
        self._to_gather = iter(dict.fromkeys(forwards))
        self.executed: list[str] = []

    def run(self) -> None:
        """Run all steps of the row; hooks and settings are restored at the end, and after an error too."""
        kept, streams = self.activations, Streams(self._row)
        run = {"F": self._forward, "B": self._backward, "BW": self._backward, "W": self._weight}
        run |= {"O": kept.move_out, "L": kept.move_in}
        self._gather_parameters(2)
        try:
            for step in self._row:
                if step.transfer:
                    self._send(step) if step.transfer == "send" else self._transfers.receive(step.peer, step.yields)
                else:
                    streams.run(step, run.get(step.kind, kept.again))
                self.executed.append(str(step))
            self._transfers.finish()
        finally:
            self._reductions.close()

    def _send(self, step: Step) -> None:
        if step.kind == "F":
            self._transfers.send(step.peer, self.activations.leaving(step))
        else:
            self._transfers.send(step.peer, self._gradients.pop((step.stage, step.microbatch)))

    def _forward(self, step: Step) -> None:
        stage, microbatch = step.stage, step.microbatch
        if self.activations.forwards.is_first(stage):
            self._gather_parameters(1)
        x = self._transfers.take(("F", stage - 1, microbatch)).requires_grad_() if stage else None
        self.activations.forward(step, x)
        if stage + 1 in self._chunk:
            self._transfers.hand_over(step.yields, self.activations.leaving(step))

    def _backward(self, step: Step) -> None:
        stage, microbatch = step.stage, step.microbatch
        chunk = self._chunk[stage]
        after = None if stage == self._program.last_stage else self._transfers.take(("B", stage + 1, microbatch))
        if self._last_backward[stage] is step:
            self._reductions.last_backward(chunk)
        with self._weights.put_aside(chunk, microbatch):
            gradient = _backward_step(*self.activations.take(step), after, self._call.config)
        self._reductions.add_gradients(chunk)
        if stage - 1 in self._chunk:
            self._transfers.hand_over(step.yields, gradient)
        elif stage:
            self._gradients[stage, microbatch] = gradient
        if step.kind == "BW":
            self._weight(step)

    def _weight(self, step: Step) -> None:
        chunk = self._chunk[step.stage]
        self._weights.compute(chunk, step.microbatch)
        self._reductions.add_gradients(chunk)
        if self._last_weight[step.stage] is step:
            self._reductions.last_weight(chunk)

    def _gather_parameters(self, chunks: int) -> None:
        """Start gathering the parameters of the next `chunks` chunks, in the order of their first forwards.

        Nothing is started without a `param_sync_func` in Megatron's configuration, or after the last chunk.
        """
        gather = self._call.config.param_sync_func
        for chunk in itertools.islice(self._to_gather, chunks if gather is not None else 0):
            (gather[chunk] if isinstance(gather, list) else gather)(self._call.chunks[chunk].parameters())


def _backward_step(x: Any, output: Any, gradient: Any, config: Any) -> Any:
    """Return the gradient of input `x`, from Megatron's backward step; `gradient` is that of `output`, None for a loss.

    Before 0.17 the step also takes the type of the model.
    """
    more = (
        (ModelType.encoder_or_decoder,) if "model_type" in inspect.signature(schedules.backward_step).parameters else ()
    )
    return schedules.backward_step(x, output, gradient, *more, config)
