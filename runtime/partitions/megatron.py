"""Settings for Megatron-LM: `--pipeline-model-parallel-layout`, and recomputation where it is alike on every stage."""

from __future__ import annotations

from pipesched.errors import BadInput
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import flag_file
from runtime.partitions.format_limits import FULL, SELECTIVE, all_or_none, first_recomputed, known_ways, loop
from runtime.partitions.megatron_layout import layout_mistakes, layout_text, read_layout
from runtime.partitions.roles import Role
from runtime.partitions.staged_model import StageCounts, StagedModel

_NAME = "megatron"
_ORDERS = ("1f1b", "interleaved-1f1b")


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


def order_notes(model: StagedModel) -> tuple[str, ...]:
    """That Megatron runs its own order."""
    if model.schedule in _ORDERS:
        return ()
    own = "interleaved-1f1b" if len(model.stages) > model.devices else "1f1b"
    return (
        f"Megatron runs {own}, not the order of this plan: its time is that of a plan with `schedule: {own}`; "
        "an executor of your own runs any order (`export --format program`).",
    )


def recompute_flags(name: str, model: StagedModel) -> dict[str, object]:
    """Flags for what is recomputed; `BadInput` where stages differ in a way that one number cannot say."""
    known_ways(name, model, *FULL, *SELECTIVE)
    ways = {way for stage in model.stages for way in stage.ways}
    if ways & set(FULL) and ways & set(SELECTIVE):
        raise BadInput(f"{name}: not supported: {', '.join(sorted(ways))} together; --recompute-granularity is one")
    if ways & set(SELECTIVE):
        all_or_none(name, model, SELECTIVE, "--recompute-granularity selective")
        return {"recompute-granularity": "selective", "recompute-modules": "core_attn"}
    if not ways:
        return {}
    full = {"recompute-granularity": "full"}
    counts = first_recomputed(name, model, Role.TRANSFORMER)
    held = [stage.count(Role.TRANSFORMER) for stage in model.stages]
    with_mtp = sum(first_recomputed(name, model, Role.MTP))
    if counts == held and with_mtp == model.mtp:
        return full | {"recompute-method": "uniform", "recompute-num-layers": 1}
    if with_mtp:
        raise BadInput(f"{name}: not supported: recomputed multi-token prediction layers; it leaves them out")
    number = max(counts)
    if counts != [min(number, layers) for layers in held]:
        more = sum(min(number, layers) for layers in held) - sum(counts)
        raise BadInput(
            f"{name}: not supported: {', '.join(map(str, counts))} layers recomputed by stage; --recompute-num-layers "
            f"is one number for all ({number} holds no more memory and recomputes {more} more layers)"
        )
    return full | {"recompute-method": "block", "recompute-num-layers": number}


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
    )
)
