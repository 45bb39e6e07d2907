"""Settings for DeepSpeed: a subclass of `PipelineModule` that sets `self.parts`, since no argument takes a list."""

from __future__ import annotations

from itertools import accumulate, pairwise

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import FULL, RecomputeRule
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import header
from runtime.partitions.list_texts import check_length, numbers
from runtime.partitions.mixer_limits import ANY_MODEL
from runtime.partitions.plan_limits import PlanLimits
from runtime.partitions.setting_limits import all_or_none, every_stage_trains, known_modes, loop
from runtime.partitions.staged_model import StageCounts, StagedModel

_NAME = "deepspeed"

_MODULE = '''{header}
"""Use `PlannedPipelineModule` in place of PipelineModule. Its list of layers: {order}."""

from deepspeed.pipe import PipelineModule

PARTS = {parts}


class PlannedPipelineModule(PipelineModule):
    def _partition_layers(self, method="uniform"):
        stages, layers = self._topo.get_dim("pipe"), len(self._layer_specs)
        if (stages, layers) != (len(PARTS) - 1, PARTS[-1]):
            raise ValueError(
                f"this partition is of {{PARTS[-1]}} layers on {{len(PARTS) - 1}} stages, not {{layers}} on {{stages}}"
            )
        self.parts = list(PARTS)
        stage = self._topo.get_coord(self.global_rank).pipe
        self._set_bounds(start=self.parts[stage], stop=self.parts[stage + 1])
'''


def _write(model: StagedModel) -> PartitionSettings:
    loop(_NAME, model, chunks=1)
    every_stage_trains(_NAME, model)
    known_modes(_NAME, model, *FULL)
    recomputed = all_or_none(_NAME, model, FULL, "activation_checkpoint_interval")
    parts = [0, *accumulate(sum(one) for one in model.counts)]
    tail = f", {model.mtp} multi-token prediction layers" if model.mtp else ""
    order = f"the embedding, {model.layers} transformer layers{tail}, the head"
    notes = [f"gradient_accumulation_steps of the configuration is the number of micro-batches, {model.microbatches}."]
    if model.schedule != "1f1b":
        notes.append("DeepSpeed runs 1f1b unless it is given this plan's order (`export --format deepspeed`).")
    if recomputed:
        notes.append("Every layer is recomputed: activation_checkpoint_interval=1.")
    text = _MODULE.format(header=header(model, "DeepSpeed"), parts=parts, order=order)
    return PartitionSettings({"deepspeed-parts": parts}, text, tuple(notes))


def _read(text: str, devices: int, layers: int) -> tuple[StageCounts, ...]:
    """Return the layers of each stage from the list of parts, in which entry d is where device d begins.

    Layers beyond the embedding, `layers` transformer layers and the head count as multi-token prediction layers.
    `BadInput` if the list has not one entry more than there are `devices`, does not begin with 0, falls, or ends before
    the head.
    """
    parts = numbers(_NAME, text)
    if parts[0] != 0:
        raise BadInput(f"{_NAME}: found {parts}, which begins with {parts[0]}; allowed: 0, then where each device ends")
    check_length(_NAME, len(parts) - 1, devices, "device, after a 0")
    if any(a > b for a, b in pairwise(parts)) or parts[-1] < layers + 2:
        raise BadInput(f"{_NAME}: found {parts}; allowed: from 0 upwards to the {layers} layers, embedding and head")
    kinds = ["embedding", *["layers"] * layers, *["mtp"] * (parts[-1] - layers - 2), "head"]
    stages = [kinds[a:b] for a, b in pairwise(parts)]
    return tuple(StageCounts(*(one.count(kind) for kind in StageCounts._fields)) for one in stages)


PARTITION_FORMATS.register(
    PartitionFormat(
        name=_NAME,
        description="DeepSpeed: a PipelineModule that sets self.parts",
        main="deepspeed-parts",
        suffix=".deepspeed_partition.py",
        write=_write,
        read=_read,
        limits=PlanLimits(
            ("linear",), RecomputeRule.ALL, whole_backwards=True, every_stage_trains=True, mixers=ANY_MODEL
        ),
    )
)
