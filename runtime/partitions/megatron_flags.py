"""What runtimes made from Megatron share: its flags for recomputation, and that it runs an order of its own."""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import FULL, SELECTIVE
from pipesched.layers.roles import Role
from runtime.partitions.format_limits import all_or_none, first_recomputed, known_ways
from runtime.partitions.staged_model import StagedModel

_ORDERS = ("1f1b", "interleaved-1f1b")


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
