"""Streams of a rank other than the compute stream, and events between them; a CPU has one stream."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import torch

from runtime.execution.program import Step

# Streams by number, used again in all iterations: the allocator has memory for each stream, which it reuses.
_STREAMS: dict[int, Any] = {}


class Streams:
    """Launcher of a rank's steps on its GPU streams in one iteration.

    `row` are all steps of the rank, in order; its sends and receives are ignored. One thread must launch the others by
    `run`, each after the steps that it waits for: an event makes it wait on the GPU.
    """

    def __init__(self, row: Iterable[Step]) -> None:
        steps = [step for step in row if not step.transfer]
        self._waited_for = {name for step in steps for name in step.waits}
        for number in {step.stream for step in steps} - {0, *_STREAMS} if _is_gpu() else ():
            _STREAMS[number] = _stream()
        self._ended: dict[str, Any] = {}

    def run(self, step: Step, start: Callable[[Step], None]) -> None:
        """Call `start(step)` on the step's stream, after the events of the steps that it waits for.

        If another step waits for this one, an event is recorded at its end. Without a GPU `start(step)` is called
        directly.
        """
        if not _is_gpu():
            start(step)
            return
        own = _STREAMS.get(step.stream)
        with torch.cuda.stream(own) if own is not None else contextlib.nullcontext():
            now = torch.cuda.current_stream()
            for name in step.waits:
                now.wait_event(self._ended[name])
            start(step)
            if step.name in self._waited_for:
                self._ended[step.name] = now.record_event()


def _stream() -> Any:
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


def _is_gpu() -> bool:
    return bool(torch.cuda.is_available())
