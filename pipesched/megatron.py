"""Megatron-Core with schedules of ours, for a training script of your own; needs Megatron-Core, 0.16 or later."""

from __future__ import annotations

from pathlib import Path


def install(*schedules: str | Path) -> None:
    """Have Megatron train by these schedule files, one for each number of micro-batches that occurs.

    To be called in every process before the first iteration. It takes the place of the two functions that
    `get_forward_backward_func` looks up for pipelines; evaluation stays Megatron's own. What `pipesched export --format
    megatron` writes does the same without pipesched. `BadInput` for a schedule that Megatron cannot run.
    """
    from runtime.running.megatron import install as install_files

    install_files(*schedules)


def delay_transformer_engine() -> None:
    """Have linears of Transformer Engine leave weight gradients to the schedule's W; before the model is built."""
    from runtime.megatron.transformer_engine import delay_transformer_engine as delay

    delay()
