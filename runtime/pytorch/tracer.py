"""Recording of the passes that a process executes, with times, by wrapping the methods that run PyTorch's stages."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from pipesched.problem.quantities import StageId
from runtime.execution.program import Step
from runtime.running.heartbeat import RUNS, WAITS, Heartbeat

# Start and end of a pass: seconds, or the CUDA events that will tell.
_Point = Any


class Tracer:
    """Recorder of the passes of one step on one device, with the times of the method that runs each.

    Waiting is not included. `microbatch_of` maps the number that PyTorch gives a micro-batch to ours. `watch` and `run`
    record passes, `begin` starts a step, and `finish` returns its passes with their starts and ends in seconds.
    """

    def __init__(self, device: torch.device, heartbeat: Heartbeat, microbatch_of: Callable[[int], int]) -> None:
        self._cuda = device.type == "cuda"
        self._heartbeat = heartbeat
        self._microbatch_of = microbatch_of
        self._ran: list[tuple[Pass, _Point, _Point]] = []
        self._origin: tuple[float, _Point] = (0.0, None)
        self._seed: Callable[[int, int], None] = lambda _stage, _microbatch: None

    def begin(self, seed: Callable[[int, int], None]) -> None:
        """Start recording, right after the barrier before a step.

        `seed(stage, micro-batch)` is called before each forward.
        """
        self._ran, self._seed = [], seed
        if self._cuda:
            torch.cuda.synchronize()
        self._origin = (time.monotonic(), self._point())
        self._heartbeat.tell(WAITS, 0)

    def finish(self) -> tuple[float, list[tuple[Pass, float, float]]]:
        """Return the start of the step, and its passes in execution order with their starts and ends.

        Times are in seconds of this machine's monotonic clock.
        """
        began, origin = self._origin
        if not self._cuda:
            return began, self._ran
        torch.cuda.synchronize()

        def seconds(event: Any) -> float:
            return began + float(origin.elapsed_time(event)) / 1000

        return began, [(p, seconds(start), seconds(end)) for p, start, end in self._ran]

    def _point(self) -> _Point:
        if not self._cuda:
            return time.monotonic()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def watch(self, stage: Any, number: StageId, module: nn.Module) -> None:
        """Record the passes of a `PipelineStage`, whose methods are replaced for that.

        `number` is the placement's number of it, `module` the module in it, whose `run_fused`, if it has one, is called
        with True or False before each backward.
        """
        forward, backward, weight = stage.forward_one_chunk, stage.backward_one_chunk, stage.backward_weight_one_chunk

        def forward_one_chunk(label: int, *args: Any, **kwargs: Any) -> Any:
            self._seed(number, self._microbatch_of(label))
            return self._run(F, number, label, lambda: forward(label, *args, **kwargs))

        def backward_one_chunk(
            label: int, loss: Any = None, full_backward: bool = True, last_backward: bool = False
        ) -> Any:
            tell = getattr(module, "run_fused", None)  # sleeping stages must know; no other stage has it
            if tell is not None:
                tell(full_backward)
            kind = BW if full_backward else B
            return self._run(kind, number, label, lambda: backward(label, loss, full_backward, last_backward))

        def backward_weight_one_chunk(label: int, last_backward: bool = False) -> Any:
            return self._run(W, number, label, lambda: weight(label, last_backward))

        stage.forward_one_chunk = forward_one_chunk
        stage.backward_one_chunk = backward_one_chunk
        stage.backward_weight_one_chunk = backward_weight_one_chunk

    def run(self, step: Step, execute: Callable[[], Any]) -> Any:
        """Run the pass `step` of a program by calling `execute`, record it, and return what the call returns.

        Before a forward, torch's random numbers are seeded by stage and micro-batch.
        """
        if step.kind == F:
            self._seed(step.stage, step.microbatch)
        return self._run(PassKind(step.kind), step.stage, step.microbatch, execute)

    def _run(self, kind: PassKind, stage: StageId, label: int, execute: Callable[[], Any]) -> Any:
        place = len(self._ran)
        self._heartbeat.tell(RUNS, place)
        start = self._point()
        result = execute()
        self._ran.append((Pass(kind, stage, self._microbatch_of(label)), start, self._point()))
        self._heartbeat.tell(WAITS, place + 1)
        return result

    def with_loss(self, loss: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
        """Return the loss function wrapped so that its time counts as a part of the forward recorded before it."""

        def timed(output: Any, target: Any) -> Tensor:
            value = loss(output, target)
            p, start, _ = self._ran[-1]
            self._ran[-1] = (p, start, self._point())
            return value

        return timed
