"""Megatron-LM with a number of recomputed layers for each stage, by a small hook module that is imported first.

Megatron's flag is one number for all stages, but every TransformerBlock reads it from its own configuration when it
runs (_checkpointed_forward in megatron/core/transformer/transformer_block.py, later megatron/core/recompute.py).
"""

from __future__ import annotations

from functools import partial

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import FULL, RecomputeRule
from pipesched.layers.roles import Role
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import flag_file
from runtime.partitions.megatron_flags import ORDERS, order_notes
from runtime.partitions.megatron_hybrid_pattern import is_hybrid, names_of, no_hybrid
from runtime.partitions.megatron_layout import checked_layout
from runtime.partitions.megatron_partition import partition_flags
from runtime.partitions.mixer_limits import GPT_MODEL
from runtime.partitions.plan_limits import MtpPlace, PlanLimits
from runtime.partitions.setting_limits import by_chunk, first_recomputed, known_modes
from runtime.partitions.staged_model import StagedModel

_NAME = "megatron-hook"

_MODULE = '''{flags}
"""Import this before Megatron-LM builds the model, and give it the flags above."""

import copy

from megatron.core import parallel_state
from megatron.core.transformer.transformer_block import TransformerBlock

RECOMPUTED = {recomputed}  # the first layers of a stage, by chunk and pipeline rank

_build = TransformerBlock.__init__


def _with_its_number(self, config, *args, **named):
    config = copy.copy(config)
    rank = parallel_state.get_pipeline_model_parallel_rank()
    config.recompute_num_layers = RECOMPUTED[named.get("vp_stage") or 0][rank]
    _build(self, config, *args, **named)


{use}'''
_USE = "TransformerBlock.__init__ = _with_its_number\n"


def _write(model: StagedModel) -> PartitionSettings:
    if is_hybrid(names_of(model)):
        raise BadInput(f"{_NAME}: not supported: hybrid models, whose stages are no TransformerBlock")
    values, flags = partition_flags(_NAME, model)
    known_modes(_NAME, model, *FULL)
    if any(first_recomputed(_NAME, model, Role.MTP)):
        raise BadInput(f"{_NAME}: not supported: recomputed multi-token prediction layers; it leaves them out")
    counts = first_recomputed(_NAME, model, Role.TRANSFORMER)
    if any(counts):
        most = {"recompute-method": "block", "recompute-num-layers": max(counts)}
        flags |= {"recompute-granularity": "full"} | most
    table = by_chunk(counts, model.devices)
    lines = flag_file(model, "Megatron-LM", flags).splitlines()
    text = _MODULE.format(
        flags="\n".join(line if line.startswith("#") else f"# {line}" for line in lines),
        recomputed=table,
        use=_USE if any(counts) else "# Nothing is recomputed: the flags say it all.\n",
    )
    hook_values: dict[str, object] = {"megatron-hook-layout": values["megatron-layout"]}
    if any(counts):
        hook_values["megatron-hook-recompute-num-layers"] = table
    return PartitionSettings(hook_values, text, order_notes(model))


PARTITION_FORMATS.register(
    PartitionFormat(
        name=_NAME,
        description="Megatron-LM: the layout, and a hook for recomputed layers of each stage",
        main="megatron-hook-layout",
        suffix=".megatron_hook.py",
        write=_write,
        read=partial(checked_layout, _NAME),
        limits=PlanLimits(
            ("linear", "interleaved"),
            RecomputeRule.FIRST,
            ORDERS,
            MtpPlace.ONE_STAGE,
            recomputes_mtp=False,
            groups=True,
            mixers=GPT_MODEL,
            check=partial(no_hybrid, "megatron takes hybrid models"),
        ),
    )
)
