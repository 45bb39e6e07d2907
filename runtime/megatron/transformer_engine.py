"""Deferral of weight gradients to W in Transformer Engine's linear layers.

Megatron's configuration accepts `delay_wgrad_compute` only with overlapped expert communication, since no other of its
schedules calls `backward_dw`. Here it is set after that check, for models and data parallelism made from then on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from megatron.core.distributed import DistributedDataParallelConfig
from megatron.core.transformer.transformer_config import TransformerConfig


def delay_transformer_engine() -> None:
    """Make Transformer Engine defer weight gradients; call it before the model is built."""
    for kind, name in ((TransformerConfig, "__post_init__"), (DistributedDataParallelConfig, "__init__")):
        setattr(kind, name, _delaying(getattr(kind, name)))


def _delaying(made: Any) -> Any:
    def delayed(self: Any, *args: Any, **named: Any) -> None:
        self.delay_wgrad_compute = False
        made(self, *args, **named)
        self.delay_wgrad_compute = True

    return delayed


def delayed_modules(modules: Iterable[Any], split: bool) -> list[Any]:
    """Return the modules of Transformer Engine that leave their weight gradients to `backward_dw`, which W calls.

    Warns if the schedule's backwards are `split` and other such modules compute theirs in B.
    """
    found = [one for one in modules if hasattr(one, "backward_dw") and getattr(one, "wgrad_store", None) is not None]
    delayed = [one for one in found if one.wgrad_store.delay_wgrad_compute()]
    if split and len(delayed) < len(found):
        warnings.warn(
            "pipesched: linears of Transformer Engine compute weight gradients in B, so W takes no time: call "
            "delay_transformer_engine() before the model is built",
            stacklevel=2,
        )
    return delayed
