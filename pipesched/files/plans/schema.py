"""The keys of a plan file as pydantic models, and the JSON Schema made from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from pipesched.files.batch_sizes import COUNT, or_several
from pipesched.files.fields import field_types
from pipesched.files.fields.section import Section
from pipesched.files.fields.sweep_field import SweepField
from pipesched.files.fields.transfer_field import TransferField
from pipesched.files.plans.features.catalogue import with_features
from pipesched.files.plans.fields import (
    ChunksField,
    ModeField,
    PartitionField,
    PlacementsField,
    SchedulesField,
    ShareField,
)
from pipesched.files.plans.memory_section import PlanMemory
from pipesched.files.plans.model_schema import HardwareSection, ModelSection
from pipesched.layers.encoder import EncoderPlacement
from pipesched.layers.plan_problem import Decide, Leaves
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.problem.objective import objectives

OBJECTIVES = (*(one.name for one in objectives()), *Leaves)


class RecomputeEntry(Section):
    """A mode that keeps less of a layer's activation, for a longer backward."""

    required = ("name", "time", "keeps")

    name: ModeField | None = Field(
        None, description="what it is called, such as full; Megatron's modules by their names, joined by +"
    )
    time: field_types.Number | None = Field(None, description="added to the backward")
    keeps: ShareField | None = Field(None, description="the share of the activation that is kept, 0 to 1")


class Costs(Section):
    """Costs of one layer and one micro-batch."""

    name: field_types.Name | None = Field(None, description="entries of one name have the same costs")
    count: field_types.Count = Field(1, description="how many; default 1")
    forward: field_types.Number | None = Field(None, description="forward (F)")
    backward: field_types.Number | None = Field(
        None, description="backward for the input (B); without weight: the full backward"
    )
    weight: field_types.Number | None = Field(
        None, description="backward for the weights (W); without it the layer's backward is not split"
    )
    fused: field_types.Number | None = Field(
        None, description="full backward in one go (BW); default backward + weight"
    )
    memory: field_types.Number | None = Field(
        None, description="parameters, gradients and optimizer, always held; default 0"
    )
    activation: field_types.Number | None = Field(
        None, description="taken when F starts, held until the backward; default 0"
    )
    freed_by_backward: field_types.Number | None = Field(
        None, description="part of it that B gives back, W the rest; default 0"
    )


class LayerKeys(Costs):
    """Equal layers that follow each other, with the costs of one of them and one micro-batch."""

    required = ("name", "forward", "backward")

    recompute: list[RecomputeEntry] | None = Field(None, description="ways to recompute it in the backward")
    with_previous: field_types.YesOrNo = Field(False, description="shares a stage with the layer before it")


if TYPE_CHECKING:
    LayerEntry = LayerKeys
else:
    LayerEntry = with_features("LayerEntry", "layers", LayerKeys)


class EncoderKeys(Costs):
    """Equal layers before the model's first stage, with the costs of one of them and one pass."""

    required = ("forward", "backward")

    placement: Annotated[str, field_types.one_of(*EncoderPlacement)] = Field(
        "free", description="on the first stage's device, on one of its own, cut over all, a copy on each, free"
    )
    serves: field_types.Count = Field(1, description="micro-batches that one pass is for; default 1")

    @property
    def as_layer(self) -> LayerEntry:
        """The encoder's costs as an entry of the key `layers`."""
        costs = {key: getattr(self, key) for key in type(self).model_fields if key in LayerEntry.model_fields}
        return LayerEntry.model_construct(**costs | {"name": self.name or "encoder"})


if TYPE_CHECKING:
    EncoderEntry = EncoderKeys
else:
    EncoderEntry = with_features("EncoderEntry", "costs", EncoderKeys)


class DecideKeys(Section):
    """The key `decide`: decisions of the plan in addition to partition, placement and order."""

    recompute: Annotated[str, field_types.one_of(*Decide)] = Field(
        "free", description="free: as many layers as is best; never; always: every layer in its first way"
    )
    recompute_layers: Annotated[str, field_types.one_of(*RecomputeRule)] = Field(
        "any",
        description="which of them: any; first: the first ones of each stage; same: the same number of first ones on "
        "each stage, or all; all: all or none",
    )


if TYPE_CHECKING:
    DecideSection = DecideKeys
else:
    DecideSection = with_features("DecideSection", "decide", DecideKeys)


class PlanKeys(Section):
    """A model made of layers, to be cut into stages, placed and scheduled."""

    required = ("devices", "microbatches", "layers")

    name: field_types.Text | None = Field(None, description="free text; default the file's stem")
    devices: field_types.Count | None = Field(None, description="pipeline ranks")
    microbatches: field_types.Count | None = Field(None, description="micro-batches of one iteration")
    time_unit: field_types.Text = Field("", description="a label only")
    layers: list[LayerEntry] | None = Field(None, description="the model's layers, first to last")
    model: ModelSection | None = Field(None, description="in place of layers: a transformer's shape")
    hardware: HardwareSection | None = Field(None, description="with model: the devices")
    encoder: EncoderEntry | None = Field(None, description="layers whose output the first stage needs, and where")
    placement: PlacementsField = Field("free", description="free, a placement's name or a list of names")
    chunks: ChunksField | None = Field(None, description="stages per device to choose from; default 1 and 2")
    partition: PartitionField = Field("free", description="free, even, or the layers of each stage")
    schedule: SchedulesField = Field("free", description="free, or published schedules of which one is run")
    memory: PlanMemory | None = None
    decide: DecideSection | None = None
    transfer: TransferField | None = Field(
        None, description="one activation or gradient between two devices: a number, or by pair of devices; default 0"
    )
    objective: Annotated[str, field_types.one_of(*OBJECTIVES)] = Field(
        "makespan", description="what to minimise; of free_memory the most, on the device with the least, or per layer"
    )
    sweep: SweepField | None = Field(None, description="what `pipesched sweep` changes: fields and their values")


if TYPE_CHECKING:
    PlanFile = PlanKeys
else:
    PlanFile = with_features("PlanFile", "", PlanKeys)


def json_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of the plan file, with which editors check and complete keys."""
    schema = PlanFile.model_json_schema()
    schema["properties"]["layers"]["anyOf"][0]["minItems"] = 1
    del schema["required"]
    schema["properties"][COUNT] = or_several(schema["properties"][COUNT])
    of_model = schema["$defs"]["ModelSection"]["properties"]
    of_model["microbatch_size"] = or_several(of_model["microbatch_size"])
    schema["allOf"] = [
        {"anyOf": [{"required": [one], "properties": {one: {"not": {"type": "null"}}}} for one in either]}
        for either in (("devices", "cluster"), ("layers", "model"), (COUNT, "batch"))
    ]
    return schema


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))  # noqa: T201 - docs/plan.schema.json is this output
