"""Training with pipesched's schedules in a Megatron-Core script of the user's own.

Needs Megatron-Core 0.16 or later.
"""

from __future__ import annotations

from pathlib import Path


def install(*schedules: str | Path) -> None:
    """Make Megatron train by these schedule files, one for each number of micro-batches that occurs.

    To be called in every process before the first iteration, and before the model is built where stages are placed as
    Megatron does not place them. It replaces the two functions that `get_forward_backward_func` looks up for pipelines;
    evaluation stays Megatron's own. Files of a later call are added. The module that `pipesched export --format
    megatron` writes does the same without pipesched. `BadInput` for a file that cannot be read, a schedule that
    Megatron cannot run, and where Megatron-Core is not installed; ValueError if stages are on other ranks than in an
    earlier file.
    """
    from runtime.running.megatron import install as install_files

    install_files(*schedules)


def delay_transformer_engine() -> None:
    """Make Transformer Engine's linear layers leave weight gradients to the schedule's W.

    Call it before building the model.
    """
    from runtime.megatron.transformer_engine import delay_transformer_engine as delay

    delay()
