"""Settings for inference engines, vLLM and SGLang: an environment variable of every process.

Both split the variable at commas, and stop if the numbers are not as many as pipeline ranks or do not add up to the
model's hidden layers: `get_pp_indices` in vllm/distributed/utils.py and sglang/srt/distributed/utils.py. The embedding
is on the first rank, the head on the last.
"""

from __future__ import annotations

from functools import partial

from pipesched.errors import BadInput
from pipesched.layers.recompute_rule import RecomputeRule
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat, PartitionSettings
from runtime.partitions.flags import header
from runtime.partitions.list_texts import layers_of_devices
from runtime.partitions.mixer_limits import ANY_MODEL
from runtime.partitions.plan_limits import MtpPlace, PlanLimits
from runtime.partitions.setting_limits import loop, no_mtp
from runtime.partitions.staged_model import StagedModel

# By the format's name: the engine, its variable, and its option for the number of pipeline ranks.
_ENGINES = {
    "vllm": ("vLLM", "VLLM_PP_LAYER_PARTITION", "--pipeline-parallel-size"),
    "sglang": ("SGLang", "SGLANG_PP_LAYER_PARTITION", "--pp-size"),
}


def _write(name: str, model: StagedModel) -> PartitionSettings:
    engine, variable, ranks = _ENGINES[name]
    loop(name, model, chunks=1)
    no_mtp(name, model, "a layer of a drafter is none of the model's hidden layers")
    if model.trains or any(stage.recompute_modes for stage in model.stages):
        raise BadInput(f"{name}: not supported: layers with a backward; it runs forwards alone")
    layers = ",".join(str(one.layers) for one in model.counts)
    lines = [
        header(model, engine),
        f"# For every process, together with {ranks} {model.devices}; embedding on the first rank, head on the last.",
        f"export {variable}={layers}",
    ]
    notes = [] if all(one.layers for one in model.counts) else [f"{engine} was not tried with a rank without a layer."]
    return PartitionSettings({f"{name}-pp-layer-partition": layers}, "\n".join(lines) + "\n", tuple(notes))


for _name, (_engine, _variable, _) in _ENGINES.items():
    PARTITION_FORMATS.register(
        PartitionFormat(
            name=_name,
            description=f"{_engine}: {_variable}",
            main=f"{_name}-pp-layer-partition",
            suffix=f".{_name}.sh",
            write=partial(_write, _name),
            read=partial(layers_of_devices, _name),
            limits=PlanLimits(
                ("linear",), RecomputeRule.ALL, mtp=MtpPlace.NOWHERE, forwards_only=True, mixers=ANY_MODEL
            ),
        )
    )
