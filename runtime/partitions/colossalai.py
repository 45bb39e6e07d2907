"""Settings for ColossalAI: `num_layers_per_stage` of its plugin, and recomputed layers by stage."""

from __future__ import annotations

from functools import partial

from pipesched.layers.recompute_rule import FULL, RecomputeRule
from pipesched.layers.roles import Role
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import header
from runtime.partitions.list_texts import layers_of_devices
from runtime.partitions.plan_limits import MtpPlace, PlanLimits
from runtime.partitions.setting_limits import first_recomputed, known_modes, loop, microbatches_a_device, no_mtp
from runtime.partitions.staged_model import StagedModel

_NAME = "colossalai"

_MODULE = '''{header}
"""Give the plugin these arguments: HybridParallelPlugin(..., **arguments())."""

LAYERS = {layers}
RECOMPUTED = {recomputed}


def arguments():
    """Keyword arguments of HybridParallelPlugin and MoeHybridParallelPlugin."""
    given = {{"pp_size": {devices}, "pp_style": "1f1b", "num_microbatches": {microbatches}}}
    given["num_layers_per_stage"] = LAYERS
{sizes}    if any(RECOMPUTED):
        from colossalai.shardformer import PipelineGradientCheckpointConfig

        given["gradient_checkpoint_config"] = PipelineGradientCheckpointConfig(num_ckpt_layers_per_stage=RECOMPUTED)
    return given
'''


def _write(model: StagedModel) -> PartitionSettings:
    """Return the settings for one stage a device.

    With more, the plugin accepts only lists with one number for each device. Raises `BadInput` if it cannot express the
    model.
    """
    loop(_NAME, model, chunks=1)
    microbatches_a_device(_NAME, model, 1)
    no_mtp(_NAME, model, "its models have none, and num_layers_per_stage counts transformer layers only")
    known_modes(_NAME, model, *FULL)
    layers = [one.layers for one in model.counts]
    recomputed = first_recomputed(_NAME, model, Role.TRANSFORMER)
    text = _MODULE.format(
        header=header(model, "ColossalAI"),
        layers=layers,
        recomputed=recomputed,
        devices=model.devices,
        microbatches=model.microbatches,
        sizes=_sizes(model),
    )
    values: dict[str, object] = {"colossalai-num-layers-per-stage": layers}
    if any(recomputed):
        values["colossalai-num-ckpt-layers-per-stage"] = recomputed
    notes = () if model.schedule == "1f1b" else ("ColossalAI runs 1f1b, not the order of this plan.",)
    return PartitionSettings(values, text, notes)


def _sizes(model: StagedModel) -> str:
    """Return a source line with the tensor and expert parallel sizes of the plan's file; empty if the file has none."""
    if model.step is None:
        return ""
    shared = model.step.parallel
    sizes: dict[str, object] = {"tp_size": shared.tensor}
    if shared.tensor > 1:
        sizes |= {"enable_sequence_parallelism": True, "sequence_parallelism_mode": "split_gather"}
    return f"    given |= {sizes | ({'ep_size': shared.expert} if model.step.experts else {})}\n"


PARTITION_FORMATS.register(
    PartitionFormat(
        name=_NAME,
        description="ColossalAI: num_layers_per_stage",
        main="colossalai-num-layers-per-stage",
        suffix=".colossalai.py",
        write=_write,
        read=partial(layers_of_devices, _NAME),
        limits=PlanLimits(("linear",), RecomputeRule.FIRST, ("1f1b",), MtpPlace.NOWHERE, microbatches_a_device=1),
    )
)
