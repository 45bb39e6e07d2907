"""Settings for Megatron-LM by its flags alone.

They are partition, groups of micro-batches, and recomputation equal on all stages.
"""

from __future__ import annotations

from pipesched.layers.recompute_rule import RecomputeRule
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import flag_file
from runtime.partitions.megatron_flags import ORDERS, module_notes, order_notes, recompute_flags
from runtime.partitions.megatron_hybrid_pattern import check_hybrid, is_pattern, mtp_place, read_pattern
from runtime.partitions.megatron_layout import checked_layout
from runtime.partitions.megatron_partition import partition_flags
from runtime.partitions.mixer_limits import GATED_DELTA, MAMBA2, MixerLimits
from runtime.partitions.plan_limits import MtpPlace, PlanLimits
from runtime.partitions.staged_model import StageCounts, StagedModel

_NAME = "megatron"


def _write(model: StagedModel) -> PartitionSettings:
    values, flags = partition_flags(_NAME, model)
    flags |= recompute_flags(_NAME, model)
    return PartitionSettings(values, flag_file(model, "Megatron-LM", flags), order_notes(model) + module_notes(model))


def _read(text: str, devices: int, layers: int) -> tuple[StageCounts, ...]:
    if is_pattern(text):
        return read_pattern(text, devices, layers)
    return checked_layout(_NAME, text, devices, layers)


PARTITION_FORMATS.register(
    PartitionFormat(
        name=_NAME,
        description="Megatron-LM: --pipeline-model-parallel-layout, or --hybrid-layer-pattern",
        main="megatron-layout",
        suffix=".megatron.args",
        write=_write,
        read=_read,
        limits=PlanLimits(
            ("linear", "interleaved"),
            RecomputeRule.SAME,
            ORDERS,
            MtpPlace.ONE_STAGE,
            groups=True,
            mtp_of=mtp_place,
            mixers=MixerLimits((GATED_DELTA,), (MAMBA2, GATED_DELTA)),
            check=check_hybrid,
        ),
    )
)
