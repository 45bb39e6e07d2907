"""Megatron-LM's settings of a partition: a layout, or the pattern of a hybrid model; and groups of micro-batches."""

from __future__ import annotations

from typing import NamedTuple

from pipesched.errors import BadInput
from pipesched.layers.roles import Role
from runtime.partitions.megatron_flags import group_flags
from runtime.partitions.megatron_hybrid_pattern import check_hybrid, is_hybrid, names_of, pattern_of
from runtime.partitions.megatron_layout import layout_mistakes, layout_text
from runtime.partitions.mixer_limits import GATED_DELTA
from runtime.partitions.setting_limits import loop, mtp_on_last_stage
from runtime.partitions.staged_model import StagedModel


class PartitionFlags(NamedTuple):
    """A partition for Megatron.

    `values` is its main setting, the layout or pattern, under its name; `flags` are the values of all flags except
    those of recomputation, by name without `--`.
    """

    values: dict[str, object]
    flags: dict[str, object]


def partition_flags(name: str, model: StagedModel, placed: bool = False) -> PartitionFlags:
    """Return a partition's layout or pattern, with all its other flags; `BadInput` if Megatron refuses the partition.

    `placed`: the executor puts stages where the plan has them, not where Megatron puts them by itself. `name` is the
    format's, with which messages begin.
    """
    if not placed:
        loop(name, model)
    flags: dict[str, object] = {"pipeline-model-parallel-size": model.devices}
    names = names_of(model)
    if is_hybrid(names):
        try:
            check_hybrid(names)
        except BadInput as error:
            raise BadInput(f"{name}: not supported: {error.mistakes[0]}") from None
        mtp_on_last_stage(name, model, "a pattern ends with them")
        pattern = pattern_of(model)
        return PartitionFlags(
            {"megatron-hybrid-layer-pattern": pattern},
            flags | {"hybrid-layer-pattern": pattern} | group_flags(name, model),
        )
    broken = layout_mistakes(model.counts, model.devices, model.layers)
    if broken:
        raise BadInput(f"{name}: not supported: {broken[0]}")
    layout = layout_text(model.counts)
    flags |= {"num-layers": model.layers, "pipeline-model-parallel-layout": layout}
    if model.mtp:
        flags["mtp-num-layers"] = model.mtp
    flags |= _linear_attention(model)
    return PartitionFlags({"megatron-layout": layout}, flags | group_flags(name, model))


def _linear_attention(model: StagedModel) -> dict[str, object]:
    """Return the flags with which GPTModel builds gated delta nets in layers named -linear.

    They have 1 for each such layer, 0 for others. Empty for models without.
    """
    if model.step is None or model.step.mixer != GATED_DELTA:
        return {}
    runs = [run for stage in model.stages for run in stage.runs if run.role is Role.TRANSFORMER]
    linear = [int(run.name.lower().endswith("-linear")) for run in runs for _ in range(run.layers)]
    freq = f"[{','.join(map(str, linear))}]"
    return {"experimental-attention-variant": "gated_delta_net", "linear-attention-freq": freq}
