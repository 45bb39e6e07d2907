"""Settings for MindFormers: `offset` and `recompute`, by chunk and device; layers of a chunk = L // (p·v) + offset."""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import FULL, RecomputeRule
from pipesched.layers.roles import Role
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import header
from runtime.partitions.list_texts import between_embedding_and_head, check_length, rows
from runtime.partitions.plan_limits import MtpPlace, PlanLimits
from runtime.partitions.setting_limits import (
    by_chunk,
    first_recomputed,
    known_modes,
    loop,
    microbatches_a_device,
    mtp_on_last_stage,
)
from runtime.partitions.staged_model import StageCounts, StagedModel

_NAME = "mindformers"


def _write(model: StagedModel) -> PartitionSettings:
    chunks = loop(_NAME, model)
    microbatches_a_device(_NAME, model, 1)
    mtp_on_last_stage(_NAME, model, "it counts them as the last layers of the last stage")
    known_modes(_NAME, model, *FULL)
    counts = [one.layers + one.mtp for one in model.counts]
    share = sum(counts) // len(counts)
    offset = by_chunk([layers - share for layers in counts], model.devices)
    recomputed = first_recomputed(_NAME, model, Role.TRANSFORMER, Role.MTP)
    values: dict[str, object] = {"mindformers-offset": offset}
    lines = [header(model, "MindFormers"), "parallel_config:", f"  pipeline_stage: {model.devices}"]
    lines.append(f"  micro_batch_num: {model.microbatches}")
    step = model.step
    if step is not None:
        shared = step.parallel
        sizes = {"data": shared.data, "model": shared.tensor, "context": shared.context, "expert": shared.expert}
        lines += [f"  {name}_parallel: {size}" for name, size in sizes.items()]
        lines.append(f"  use_seq_parallel: {str(shared.tensor > 1).lower()}")
    if any(recomputed):
        values["mindformers-recompute"] = by_chunk(recomputed, model.devices)
        lines += ["recompute_config:", f"  recompute: {values['mindformers-recompute']}"]
    lines += ["model:", "  model_config:", f"    offset: {offset}", f"    num_layers: {model.layers}"]
    if step is not None:
        lines.append(f"    seq_length: {step.sequence}")
    if chunks > 1:
        lines += [
            f"    pp_interleave_num: {chunks}",
            "parallel:",
            "  pipeline_config:",
            "    pipeline_interleave: true",
        ]
    own = model.schedule in ("1f1b", "interleaved-1f1b")
    notes = () if own else ("MindSpore runs its own order, not this plan's.",)
    return PartitionSettings(values, "\n".join(lines) + "\n", notes)


def _read(text: str, devices: int, layers: int) -> tuple[StageCounts, ...]:
    """Return the layers of each stage from `offset`, a row for each chunk and a column for each device.

    MTP layers count among `layers`, since MindFormers does not distinguish them. `BadInput` has a line for each rule
    that the offsets break.
    """
    table = rows(_NAME, text, least=-layers)
    check_length(_NAME, len(table[0]), devices)
    offsets = [one for row in table for one in row]
    share, remainder = divmod(layers, len(offsets))
    mistakes = []
    if sum(offsets) != remainder:
        mistakes.append(
            f"{_NAME}: found offsets of {sum(offsets)} in all; allowed: {remainder}, {layers} mod {len(offsets)}"
        )
    if share + min(offsets) < 0:
        mistakes.append(f"{_NAME}: found an offset of {min(offsets)}; allowed: at least {-share}")
    if mistakes:
        raise BadInput(*mistakes)
    return between_embedding_and_head([share + one for one in offsets])


PARTITION_FORMATS.register(
    PartitionFormat(
        name=_NAME,
        description="MindFormers: offset and recompute by chunk and device",
        main="mindformers-offset",
        suffix=".mindformers.yaml",
        write=_write,
        read=_read,
        limits=PlanLimits(
            ("linear", "interleaved"),
            RecomputeRule.FIRST,
            ("1f1b", "interleaved-1f1b"),
            MtpPlace.LAST_STAGE,
            microbatches_a_device=1,
        ),
    )
)
