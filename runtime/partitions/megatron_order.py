"""Megatron-LM with the order of the plan: flags for the partition, and a module that runs any order inside Megatron.

The module is the one that `export --format megatron` writes for the plan's schedule.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import RecomputeRule
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import flag_file
from runtime.partitions.megatron_flags import module_notes, recompute_flags
from runtime.partitions.megatron_hybrid_pattern import is_hybrid, names_of, no_hybrid
from runtime.partitions.megatron_layout import checked_layout
from runtime.partitions.megatron_own_order import ORDER_NOTE, OWN_ORDER, check_stages
from runtime.partitions.megatron_partition import partition_flags
from runtime.partitions.mixer_limits import GPT_MODEL
from runtime.partitions.plan_limits import MtpPlace
from runtime.partitions.staged_model import StagedModel

_NAME = "megatron-order"
_HYBRID = "hybrid models, in which no order but Megatron's own was run"


def _write(model: StagedModel) -> PartitionSettings:
    if is_hybrid(names_of(model)):
        raise BadInput(f"{_NAME}: not supported: {_HYBRID}")
    check_stages(_NAME, model)
    # Evaluation of a loop stays Megatron's own, in groups that it takes.
    values, flags = partition_flags(_NAME, replace(model, schedule=None), placed=True)
    flags |= recompute_flags(_NAME, model)
    return PartitionSettings(
        {"megatron-order-layout": values["megatron-layout"]},
        flag_file(model, "Megatron-LM", flags),
        (ORDER_NOTE, *module_notes(model)),
    )


PARTITION_FORMATS.register(
    PartitionFormat(
        name=_NAME,
        description="Megatron-LM in the plan's own order: the layout, beside the module of `export --format megatron`",
        main="megatron-order-layout",
        suffix=".megatron_order.args",
        write=_write,
        read=partial(checked_layout, _NAME),
        limits=replace(
            OWN_ORDER,
            rule=RecomputeRule.SAME,
            mtp=MtpPlace.ONE_STAGE,
            mixers=GPT_MODEL,
            check=partial(no_hybrid, _HYBRID),
        ),
    )
)
