"""Data parallelism: the gradients of each chunk are reduced once its last weight gradient is computed.

Megatron's hook on a parameter runs in B, also for a weight whose gradient was left to W. So while an iteration runs,
such weights are hidden from the hook, and reported as ready after the last W of their chunk.
"""

from __future__ import annotations

import contextlib
from typing import Any

from runtime.megatron.weight_gradients import computed_in_w


class Reductions:
    """Gradient reductions of one rank's chunks in one iteration; an argument `chunk` is an index in `chunks`, from 0.

    The last backward or weight pass of a chunk starts its reduction. `close` restores Megatron's settings, after an
    error too.
    """

    def __init__(self, config: Any, chunks: list[Any], force_all_reduce: bool) -> None:
        self._chunks, self._force_all_reduce = chunks, force_all_reduce
        self._start = _for_each(config.grad_sync_func, chunks)
        self._hidden = [self._hide(chunk) for chunk in chunks]
        self._without_sync = [contextlib.ExitStack() for _ in chunks]
        for stack, no_sync in zip(self._without_sync, _for_each(config.no_sync_func, chunks), strict=True):
            if no_sync is not None:
                stack.enter_context(no_sync())

    @staticmethod
    def _hide(chunk: Any) -> dict[Any, Any]:
        if not getattr(getattr(chunk, "ddp_config", None), "overlap_grad_reduce", False):
            return {}
        groups = chunk.param_to_bucket_group
        return {weight: groups.pop(weight) for weight in computed_in_w(chunk) if weight in groups}

    def last_backward(self, chunk: int) -> None:
        """Let the backward of a chunk that runs next, its last, start the reduction of gradients as they are computed.

        With `grad_sync_func` nothing is done: all of the chunk's gradients are then reduced after its last W.
        """
        if self._start[chunk] is None:
            self._without_sync[chunk].close()

    def add_gradients(self, chunk: int) -> None:
        """Move the `.grad` of weights hidden from Megatron's hook into their `main_grad`, as the hook would.

        These are weights of Transformer Engine, or of an embedding. To be called after every B and every W, since
        Transformer Engine's next pass may overwrite it.
        """
        for weight in self._hidden[chunk]:
            if weight.grad is not None:
                if not getattr(weight, "grad_added_to_main_grad", False):
                    weight.main_grad.add_(weight.grad)
                weight.grad = None

    def last_weight(self, chunk: int) -> None:
        """Start the reduction of a chunk whose gradients are all computed."""
        self._without_sync[chunk].close()
        hidden, self._hidden[chunk] = self._hidden[chunk], {}
        self._chunks[chunk].param_to_bucket_group.update(hidden) if hidden else None
        if self._start[chunk] is not None:
            self._start[chunk](self._chunks[chunk].parameters())
            return
        for weight, group in hidden.items():
            group.register_grad_ready(weight, self._force_all_reduce)

    def close(self) -> None:
        for chunk, stack, hidden in zip(self._chunks, self._without_sync, self._hidden, strict=True):
            stack.close()
            if hidden:
                chunk.param_to_bucket_group.update(hidden)


def _for_each(function: Any, chunks: list[Any]) -> list[Any]:
    """Return for each chunk its function; `function` is a list of them, one for all chunks, or None for none."""
    return function if isinstance(function, list) else [function for _ in chunks]
