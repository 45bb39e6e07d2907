"""Measurement of one stage of a model: repeats its passes and records their time and memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.quantities import MicrobatchId
from runtime.profiling.profile import KINDS, Samples, StageProfile
from runtime.pytorch.profiling.memory_meter import Meter, meter
from runtime.pytorch.profiling.stage_passes import StagePasses

SPLIT, FUSED = (F, B, W), (F, BW)


class StageBench:
    """A stage ready to run one micro-batch at a time.

    `x` is its input, as the stage before would send it; it needs no gradient if the stage is the `first`. `gradient` is
    the gradient that the next stage would send back; None on the last stage, whose forward ends in `loss`. `store` gets
    the weight gradients that B leaves to W, None where autograd splits the backward.
    """

    def __init__(
        self,
        module: nn.Module,
        x: Tensor,
        gradient: Tensor | None,
        first: bool,
        loss: Callable[[Tensor], Tensor] | None,
        store: Any,
    ) -> None:
        self._module, self._x, self._gradient, self._first = module, x, gradient, first
        self._device = x.device
        self._passes = StagePasses(module, first, loss, store)
        self._runs: dict[PassKind, Callable[[int], None]] = {
            F: lambda j: self._passes.forward(j, self._input()),
            B: lambda j: self._passes.backward(j, self._gradient),
            W: self._passes.weight,
            BW: lambda j: self._passes.fused(j, self._gradient),
        }

    def run(self, kind: PassKind, microbatch: MicrobatchId) -> None:
        """Run one pass of a micro-batch: F first, then BW, or B and later W."""
        self._runs[kind](microbatch)

    def _input(self) -> Tensor:
        """Return a separate tensor for a micro-batch that shares the data of the given input, like a receive buffer.

        It requires a gradient unless the stage is the first.
        """
        x = self._x.detach()
        return x if self._first else x.requires_grad_()

    def timed(self) -> list[tuple[PassKind, float]]:
        """Run one split and one fused micro-batch; return the seconds of each pass in order: F, B, W, F, BW."""
        points = []
        for kinds in (SPLIT, FUSED):
            for kind in kinds:
                start = self._point()
                self.run(kind, 0)
                points.append((kind, start, self._point()))
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            return [(kind, start.elapsed_time(end) / 1000) for kind, start, end in points]
        return [(kind, end - start) for kind, start, end in points]

    def _point(self) -> Any:
        """Return a point in time: a clock reading on CPU, an event between the kernels on GPU."""
        if self._device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        return event

    def meter(self) -> Meter:
        """Return a meter of the memory that passes take.

        On CPU it does not count parameters, their gradients, or tensors of other stages; on GPU it counts all allocated
        memory, of which the change in a pass matters.
        """
        parameters = list(self._module.parameters())
        gradients = [p.grad for p in parameters if p.grad is not None]
        received = [self._x] if self._gradient is None else [self._x, self._gradient]
        return meter(self._device, [*parameters, *gradients, *self._module.buffers(), *received])

    def memory(self) -> tuple[dict[PassKind, int], dict[PassKind, int]]:
        """Return by kind of pass the bytes that it takes (negative: frees), and its workspace in bytes.

        The workspace is the peak of the pass above the level before or after it, whichever is higher.
        """
        taken: dict[PassKind, int] = {}
        workspace: dict[PassKind, int] = {}
        with self.meter() as usage:
            for kind in (*SPLIT, *FUSED, *SPLIT, *FUSED):  # the second time counts: the first may fill caches
                usage.reset_peak()
                before = usage.in_use()
                self.run(kind, 0)
                after = usage.in_use()
                taken[kind], workspace[kind] = after - before, usage.peak() - max(before, after)
        return taken, workspace

    def bytes_of_parameters(self) -> int:
        """Return the bytes of the parameters that require a gradient, and of these gradients."""
        return sum(2 * p.numel() * p.element_size() for p in self._module.parameters() if p.requires_grad)


def profiled(bench: StageBench, warm_up: int, repetitions: int, output: int) -> Iterator[StageProfile | None]:
    """Measure a stage bit by bit: yields None after each of `warm_up` + `repetitions` runs, and the profile at the end.

    Times are of the repetitions alone; `output` is the size in bytes of the stage's output, for the profile.
    """
    for _ in range(warm_up):
        bench.timed()
        yield None
    seconds: dict[PassKind, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(repetitions):
        for kind, value in bench.timed():
            seconds[kind].append(value)
        yield None
    taken, workspace = bench.memory()
    times = {kind: Samples(tuple(values)) for kind, values in seconds.items()}
    yield StageProfile(times, taken, workspace, bench.bytes_of_parameters(), output)
