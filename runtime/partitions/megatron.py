"""Settings for Megatron-LM: `--pipeline-model-parallel-layout`, and recomputation where it is alike on every stage."""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import RecomputeRule
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import flag_file
from runtime.partitions.format_limits import loop
from runtime.partitions.megatron_flags import order_notes, recompute_flags
from runtime.partitions.megatron_layout import layout_mistakes, layout_text, read_layout
from runtime.partitions.plan_limits import MtpPlace, PlanLimits
from runtime.partitions.staged_model import StageCounts, StagedModel

_NAME = "megatron"


def _write(model: StagedModel) -> PartitionSettings:
    loop(_NAME, model)
    broken = layout_mistakes(model.counts, model.devices, model.layers)
    if broken:
        raise BadInput(f"{_NAME}: not supported: {broken[0]}")
    layout = layout_text(model.counts)
    flags: dict[str, object] = {
        "pipeline-model-parallel-size": model.devices,
        "num-layers": model.layers,
        "pipeline-model-parallel-layout": layout,
    }
    if model.mtp:
        flags["mtp-num-layers"] = model.mtp
    flags |= recompute_flags(_NAME, model)
    return PartitionSettings({"megatron-layout": layout}, flag_file(model, "Megatron-LM", flags), order_notes(model))


def _read(text: str, devices: int, layers: int) -> tuple[StageCounts, ...]:
    counts = read_layout(text)
    broken = layout_mistakes(counts, devices, layers)
    if broken:
        raise BadInput(*(f"{_NAME}: {mistake}" for mistake in broken))
    return counts


PARTITION_FORMATS.register(
    PartitionFormat(
        name=_NAME,
        description="Megatron-LM: --pipeline-model-parallel-layout",
        main="megatron-layout",
        suffix=".megatron.args",
        write=_write,
        read=_read,
        limits=PlanLimits(
            ("linear", "interleaved"),
            RecomputeRule.SAME,
            ("1f1b", "interleaved-1f1b"),
            MtpPlace.ONE_STAGE,
        ),
    )
)
