"""Reading of a partition from a runtime's settings, as the layers of each stage of a model."""

from __future__ import annotations

from collections.abc import Sequence

from pipesched.errors import BadInput
from pipesched.layers.model import Model
from pipesched.layers.roles import Role, role_of
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.staged_model import StageCounts


def partition_from(text: str, model: Model, devices: int) -> tuple[int, ...]:
    """Return the number of entries of `model.sequence` on each stage of a setting, for so many pipeline `devices`.

    An embedding or head that the file lists counts. `text` is `FORMAT=SETTING`, such as `megatron=Et*3|(tt|)*29,m|L`.
    `BadInput` for an unknown format, and with a line for each rule of the runtime that the setting breaks. It is raised
    too if the setting has another number of multi-token prediction layers than the model, unless it has none, and for a
    stage without layers.
    """
    name, found, setting = text.partition("=")
    if not found:
        raise BadInput(f"found {text!r}; allowed: FORMAT=SETTING, formats: {', '.join(PARTITION_FORMATS.names())}")
    form = PARTITION_FORMATS[name.strip()]
    roles = [role_of(layer.name) for layer in model.sequence]
    tells_mtp = form.name != "mindformers"  # MindFormers counts them as layers
    layers = roles.count(Role.TRANSFORMER) + (0 if tells_mtp else roles.count(Role.MTP))
    stages, mtp = form.read(setting, devices, layers), roles.count(Role.MTP)
    given = sum(stage.mtp for stage in stages)
    if given not in (0, mtp):
        allowed = f"the model's {mtp}" if mtp else "none, as in the model"
        raise BadInput(f"{form.name}: found {given} multi-token prediction layers; allowed: {allowed}")
    return _layers_of(roles, stages)


def _layers_of(roles: Sequence[Role], stages: Sequence[StageCounts]) -> tuple[int, ...]:
    """Return the number of the model's layers on each stage of a setting; `roles` are those of the layers, in order.

    The last stage has all that remain, such as multi-token prediction layers that the setting omits. `BadInput` for a
    stage without layers.
    """
    counts, at = [], 0
    for number, stage in enumerate(stages):
        end = at + stage.layers + stage.mtp
        end += Role.EMBEDDING in roles if stage.embedding else 0
        end = len(roles) if number == len(stages) - 1 else end
        if end <= at:
            raise BadInput(f"found no layer of the file on stage {number}; allowed: at least one on each stage")
        counts.append(end - at)
        at = end
    return tuple(counts)
