"""Settings for FlagScale: `hetero_pipeline_layer_split`, and recomputed layers by stage."""

from __future__ import annotations

from functools import partial
from itertools import groupby

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import FULL, RecomputeRule
from pipesched.layers.roles import Role
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import header, step_flags
from runtime.partitions.job_flags import leave_out_lines
from runtime.partitions.list_texts import layers_of_devices
from runtime.partitions.megatron_flags import order_notes
from runtime.partitions.plan_limits import MtpPlace, PlanLimits
from runtime.partitions.setting_limits import first_recomputed, known_modes, loop, mtp_on_last_stage
from runtime.partitions.staged_model import StagedModel

_NAME = "flagscale"
_DEVICE = "gpu"
_RECOMPUTATION = ("recompute-granularity", "recompute-method", "recompute-num-layers")
# Of Megatron's flags those that FlagScale has under `model`; the others are under `system`.
_OF_MODEL = ("seq-length", "max-position-embeddings", "micro-batch-size", "global-batch-size")


def _write(model: StagedModel) -> PartitionSettings:
    loop(_NAME, model, chunks=1)
    mtp_on_last_stage(_NAME, model, "it puts them beside the head")
    known_modes(_NAME, model, *FULL)
    split, step = [one.layers for one in model.counts], step_flags(model)
    recomputed = first_recomputed(_NAME, model, Role.TRANSFORMER)
    if any(first_recomputed(_NAME, model, Role.MTP)):
        raise BadInput(f"{_NAME}: not supported: recomputed multi-token prediction layers; it leaves them out")
    again = dict.fromkeys(_RECOMPUTATION, True) if any(recomputed) else {}
    values: dict[str, object] = {"flagscale-layer-split": split}
    lines = [
        header(model, "FlagScale"),
        *leave_out_lines(model, step | again, keys=True),
        "system:",
        f"  pipeline_model_parallel_size: {model.devices}",
        *(f"  {name.replace('-', '_')}: {str(value).lower()}" for name, value in step.items() if name not in _OF_MODEL),
        "  hetero:",
        "    enable_hetero: true",
        "    # one mesh of all devices: tensor, context, expert, data and pipeline parallel size",
        *([] if model.step else ["    # assumed, as the plan's file says nothing of the first four: put in the job's"]),
        f"    hetero_process_meshes: {_mesh(model)}",
        "    # a name for all devices; where the host file has `type=NAME`, that name in both lines",
        f"    hetero_device_types: [{_DEVICE}]",
        f"    hetero_current_device_type: {_DEVICE}",
        f"    hetero_pipeline_layer_split: {split}",
    ]
    if any(recomputed):
        table = recompute_table(recomputed, model.microbatches)
        values["flagscale-recompute-num-layers-per-stage-micro-batch"] = table
        lines += [
            "  recompute:",
            "    recompute_granularity: full",
            "    recompute_method: block",
            f"    recompute_num_layers: {max(recomputed)}",
            "    recompute_num_layers_per_stage_micro_batch:  # stages, then so many micro-batches, layers of each",
            *(f"      - {row}" for row in table),
        ]
    lines += ["model:", f"  num_layers: {model.layers}"]
    lines += [f"  {name.replace('-', '_')}: {step[name]}" for name in _OF_MODEL if name in step]
    if model.mtp:
        lines.append(f"  mtp_num_layers: {model.mtp}")
    return PartitionSettings(values, "\n".join(lines) + "\n", order_notes(model))


def _mesh(model: StagedModel) -> list[int]:
    """Return the sizes of the only mesh: tensor, context, expert, data and pipeline parallel; 1 for those not given.

    FlagScale reads parallelism from here, whatever Megatron's flags say.
    """
    if model.step is None:
        return [1, 1, 1, 1, model.devices]
    shared = model.step.parallel
    expert = shared.expert if model.step.experts else 1
    return [shared.tensor, shared.context, expert, shared.data, model.devices]


def recompute_table(recomputed: list[int], microbatches: int) -> list[list[int]]:
    """Return a row for each run of equal stages.

    It has their number, the number of micro-batches, and the recomputed layers of each. `recomputed` has the number of
    recomputed layers of each stage.
    """
    return [[len(list(equal)), microbatches, layers] for layers, equal in groupby(recomputed)]


PARTITION_FORMATS.register(
    PartitionFormat(
        name=_NAME,
        description="FlagScale: hetero_pipeline_layer_split, recompute_num_layers_per_stage_micro_batch",
        main="flagscale-layer-split",
        suffix=".flagscale.yaml",
        write=_write,
        read=partial(layers_of_devices, _NAME),
        limits=PlanLimits(("linear",), RecomputeRule.FIRST, ("1f1b",), MtpPlace.LAST_STAGE, recomputes_mtp=False),
    )
)
