"""Shared parts of runtimes based on Megatron: flags for recomputation, and a note that they run their own order."""

from __future__ import annotations

from collections.abc import Mapping

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import FULL, MODULES, modules_of
from pipesched.layers.roles import Role
from pipesched.schedule.microbatch_groups import ORDER, group_of, group_sizes
from runtime.partitions.setting_limits import first_recomputed, refuse_ends
from runtime.partitions.staged_model import StagedModel

ORDERS = ("1f1b", ORDER)
# What Megatron asks for beside the name of a module.
_NEEDS = {
    "moe_act": "--moe-grouped-gemm",
    "mla_up_proj": "--multi-latent-attention",
    "shared_experts": "no --moe-shared-expert-overlap",
}


def order_notes(model: StagedModel, any_order: str = "megatron-order") -> tuple[str, ...]:
    """Return a note that Megatron runs its own order; empty if that is the plan's.

    `any_order` is the name, for `plan --for`, of a runtime of Megatron that runs any order.
    """
    if (model.schedule or "").partition(":")[0] in ORDERS:
        return ()
    own = "interleaved-1f1b" if len(model.stages) > model.devices else "1f1b"
    return (
        f"Megatron runs {own}, not the order of this plan: its time is that of a plan with `schedule: {own}`; "
        f"a module inside it runs any order (`export --format megatron`, `plan --for {any_order}`).",
    )


def group_flags(name: str, model: StagedModel) -> dict[str, object]:
    """Return the flag for the size of Megatron's groups of micro-batches, by its name; empty with one chunk a device.

    It is the size in the name of the plan's order, else the smallest that Megatron accepts. Raises `BadInput`, whose
    text begins with `name`, if Megatron does not accept the size, or accepts none.
    """
    if len(model.stages) == model.devices:
        return {}
    m, p = model.microbatches, model.devices
    group = group_of(model.schedule, m, p)
    if group is None:
        sizes = ", ".join(map(str, group_sizes(m, p))) or f"{p} or more micro-batches with several chunks"
        raise BadInput(
            f"{name}: not supported: {model.schedule or ORDER} of {m} micro-batches on {p} devices; its groups have at "
            f"least {p} and leave none or at least {p} ({sizes})"
        )
    return {"microbatch-group-size-per-virtual-pipeline-stage": group}


def module_notes(model: StagedModel) -> tuple[str, ...]:
    """Return a note for each recomputed module that needs a further flag of Megatron."""
    used = frozenset[str]().union(*(modules_of(mode) for stage in model.stages for mode in stage.recompute_modes))
    return tuple(f"--recompute-modules {one} needs {_NEEDS[one]}." for one in sorted(used & set(_NEEDS)))


def recompute_flags(name: str, model: StagedModel) -> dict[str, object]:
    """Return the values of Megatron's flags for recomputation, by name; empty if nothing is recomputed.

    Raises `BadInput`, whose message begins with `name`, that of the format, if one setting for all stages cannot
    express the plan, or for modes, embeddings and heads that Megatron does not recompute.
    """
    modes = {mode for stage in model.stages for mode in stage.recompute_modes}
    unknown = [mode for mode in sorted(modes) if mode not in FULL and not modules_of(mode)]
    if unknown:
        allowed = f"{', '.join((*FULL, *MODULES))}, or several of these modules joined by +"
        raise BadInput(f"{name}: not supported: recomputation in the way {unknown[0]!r}; it knows {allowed}")
    refuse_ends(name, model)
    if modes & set(FULL) and modes - set(FULL):
        raise BadInput(f"{name}: not supported: {', '.join(sorted(modes))} together; --recompute-granularity is one")
    if not modes:
        return {}
    if modes - set(FULL):
        return {"recompute-granularity": "selective", "recompute-modules": _modules(name, model)}
    full = {"recompute-granularity": "full"}
    counts = first_recomputed(name, model, Role.TRANSFORMER)
    layer_counts = [stage.count(Role.TRANSFORMER) for stage in model.stages]
    with_mtp = sum(first_recomputed(name, model, Role.MTP))
    if counts == layer_counts and with_mtp == model.mtp:
        return full | {"recompute-method": "uniform", "recompute-num-layers": 1}
    if with_mtp:
        raise BadInput(f"{name}: not supported: recomputed multi-token prediction layers; it leaves them out")
    number = max(counts)
    if counts != [min(number, layers) for layers in layer_counts]:
        more = sum(min(number, layers) for layers in layer_counts) - sum(counts)
        raise BadInput(
            f"{name}: not supported: {', '.join(map(str, counts))} layers recomputed by stage; --recompute-num-layers "
            f"is one number for all ({number} holds no more memory and recomputes {more} more layers)"
        )
    return full | {"recompute-method": "block", "recompute-num-layers": number}


def _modules(name: str, model: StagedModel) -> list[str]:
    """Return the modules for `--recompute-modules`: recomputed in every layer, they are what the plan recomputes.

    Raises `BadInput`, whose message begins with `name`, that of the format, if no one list of modules does.
    """
    runs = [run for stage in model.stages for run in stage.runs if run.role in (Role.TRANSFORMER, Role.MTP)]
    for selection in model.selections:
        if all(
            _used(run.recomputed) == ({selection[run.name]: run.layers} if run.name in selection else {})
            for run in runs
        ):
            return sorted(frozenset[str]().union(*map(modules_of, selection.values())))
    number = sum(sum(run.recomputed.values()) for run in runs)
    raise BadInput(
        f"{name}: not supported: modules of {number} layers recomputed; --recompute-modules is one list for all layers"
    )


def _used(recomputed: Mapping[str, int]) -> dict[str, int]:
    return {mode: layers for mode, layers in recomputed.items() if layers}
