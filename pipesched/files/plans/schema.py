"""The keys of a plan file as pydantic models, and the JSON Schema made from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field

from pipesched.files.batch_sizes import COUNT, or_several
from pipesched.files.fields import field_types
from pipesched.files.fields.section import Section
from pipesched.files.fields.sweep_field import SweepField
from pipesched.files.fields.transfer_field import TransferField
from pipesched.files.plans.batch import PlanBatchSection
from pipesched.files.plans.fields import (
    ChunksField,
    PartitionField,
    PiecesField,
    PlacementsField,
    SchedulesField,
    ShareField,
    SpeedField,
    WayField,
)
from pipesched.files.plans.model_schema import HardwareSection, ModelSection
from pipesched.files.plans.parameters import PlanParametersSection
from pipesched.layers.encoder import EncoderPlacement
from pipesched.layers.plan_problem import Decide
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.layers.vocabulary import Vocabulary

OBJECTIVES = ("makespan", "span", "iteration")


class RecomputeEntry(Section):
    """A mode that keeps less of a layer's activation, for a longer backward."""

    required = ("name", "time", "keeps")

    name: WayField | None = Field(
        None, description="what it is called, such as full; Megatron's modules by their names, joined by +"
    )
    time: field_types.Number | None = Field(None, description="added to the backward")
    keeps: ShareField | None = Field(None, description="the share of the activation that is kept, 0 to 1")


class _Costs(Section):
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
    frozen: field_types.YesOrNo = Field(
        False,
        description="its weights are not trained: no W, no reduce, no step; and where all layers before it are frozen "
        "too, no backward and no activation held",
    )
    gather: field_types.Number | None = Field(
        None, description="with parameters.gather: time to gather its parameters; default 0"
    )
    gathered: field_types.Number | None = Field(
        None, description="with parameters.gather: memory of its parameters while gathered; default 0"
    )
    reduce: field_types.Number | None = Field(
        None, description="with parameters.reduce: time to reduce its gradients; default 0"
    )
    step: field_types.Number | None = Field(
        None, description="with parameters.step: time of the optimizer for it; default 0"
    )


class LayerEntry(_Costs):
    """Equal layers that follow each other, with the costs of one of them and one micro-batch."""

    required = ("name", "forward", "backward")

    attention: ShareField = Field(
        Fraction(0),
        description="with sequence_chunks: the share of its forward, and of its full backward, that grows with the "
        "pieces before it; default 0",
        json_schema_extra={"default": 0},
    )
    attention_backward: ShareField | None = Field(
        None, description="that share of the full backward, all of it in B; default attention"
    )
    kept_for_later: field_types.Number | None = Field(
        None, description="part of activation (keys and values) held to the first piece's backward; default 0"
    )
    recompute: list[RecomputeEntry] | None = Field(None, description="ways to recompute it in the backward")
    with_previous: field_types.YesOrNo = Field(False, description="shares a stage with the layer before it")


class EncoderEntry(_Costs):
    """Equal layers before the model's first stage, with the costs of one of them and one pass."""

    required = ("forward", "backward")

    placement: Annotated[str, field_types.one_of(*EncoderPlacement)] = Field(
        "free", description="on the first stage's device, on one of its own, cut over all, a copy on each, free"
    )
    serves: field_types.Count = Field(1, description="micro-batches that one pass is for; default 1")

    @property
    def as_layer(self) -> LayerEntry:
        """Return the encoder's costs as an entry of the key `layers`."""
        costs = {key: getattr(self, key) for key in _Costs.model_fields}
        return LayerEntry.model_construct(**costs | {"name": self.name or "encoder"})


class DeviceClass(Section):
    """Devices that follow each other in the pipeline, of one speed and memory."""

    required = ("devices",)

    devices: field_types.Count | None = Field(None, description="how many")
    speed: SpeedField = Field(
        Fraction(1), description="a layer takes its time divided by this; default 1", json_schema_extra={"default": 1}
    )
    memory: field_types.Number | None = Field(None, description="of each, in place of memory.capacity")


class PlanMemory(Section):
    """Memory of a device: its layers and the activations they hold; without this section it is unlimited."""

    unit: field_types.Text = Field("GiB", description="a label only")
    capacity: field_types.NumbersPerDevice | None = Field(
        None, description="the whole device's; a number, or one per device"
    )


class DecideSection(Section):
    """Decisions of the plan besides partition, placement and order."""

    recompute: Annotated[str, field_types.one_of(*Decide)] = Field(
        "free", description="free: as many layers as is best; never; always: every layer in its first way"
    )
    recompute_layers: Annotated[str, field_types.one_of(*RecomputeRule)] = Field(
        "any",
        description="which of them: any; first: the first ones of each stage; same: the same number of first ones on "
        "each stage, or all; all: all or none",
    )

    cluster: Annotated[str, field_types.one_of("given", "free")] = Field(
        "given", description="free: the order of the classes of devices along the pipeline, too"
    )


class OverheadSection(Section):
    """Time that every stage adds to each of its passes, whatever layers it has."""

    forward: field_types.Number | None = Field(None, description="to a forward; default 0")
    backward: field_types.Number | None = Field(None, description="to a backward (B or BW); default 0")


class PlanFile(Section):
    """A model made of layers, to be cut into stages, placed and scheduled."""

    required = ("devices", "microbatches", "layers")

    name: field_types.Text | None = Field(None, description="free text; default the file's stem")
    devices: field_types.Count | None = Field(None, description="pipeline ranks")
    microbatches: field_types.Count | None = Field(None, description="micro-batches of one iteration")
    batch: PlanBatchSection | None = Field(
        None, description="costs of layers are those of a whole batch; with model: the sequences of a step"
    )
    time_unit: field_types.Text = Field("", description="a label only")
    layers: list[LayerEntry] | None = Field(None, description="the model's layers, first to last")
    model: ModelSection | None = Field(None, description="in place of layers: a transformer's shape")
    hardware: HardwareSection | None = Field(None, description="with model: the devices")
    vocabulary: Annotated[str, field_types.one_of(*Vocabulary)] = Field(
        "one", description="embedding and head: in one stage each, shared by all devices, or free"
    )
    encoder: EncoderEntry | None = Field(None, description="layers whose output the first stage needs, and where")
    cluster: list[DeviceClass] | None = Field(
        None, description="in place of devices: classes of them, in the order of the pipeline"
    )
    stage_overhead: OverheadSection | None = None
    placement: PlacementsField = Field("free", description="free, a placement's name or a list of names")
    sequence_chunks: PiecesField | None = Field(
        None,
        description="pieces of a micro-batch's sequence to choose from: numbers, or count with them and lengths "
        "(equal, equal_time, or free, which tries both); default 1",
    )
    chunks: ChunksField | None = Field(None, description="stages per device to choose from; default 1 and 2")
    partition: PartitionField = Field("free", description="free, even, or the layers of each stage")
    schedule: SchedulesField = Field("free", description="free, or published schedules of which one is run")
    memory: PlanMemory | None = None
    decide: DecideSection | None = None
    transfer: TransferField | None = Field(
        None, description="one activation or gradient between two devices: a number, or by pair of devices; default 0"
    )
    parameters: PlanParametersSection | None = Field(
        None, description="what stages run once an iteration for their parameters; with objective iteration"
    )
    objective: Annotated[str, field_types.one_of(*OBJECTIVES)] = Field("makespan", description="what to minimise")
    overlap_next: field_types.YesOrNo = Field(
        False, description="with objective iteration: a device begins the next one when its own steps have ended"
    )
    sweep: SweepField | None = Field(None, description="what `pipesched sweep` changes: fields and their values")


def json_schema() -> Mapping[str, Any]:
    """The JSON Schema of the plan file, for editors."""
    schema = PlanFile.model_json_schema()
    schema["properties"]["layers"]["anyOf"][0]["minItems"] = 1
    del schema["required"]
    schema["properties"][COUNT] = or_several(schema["properties"][COUNT])
    of_model = schema["$defs"]["ModelSection"]["properties"]
    of_model["microbatch_size"] = or_several(of_model["microbatch_size"])
    schema["allOf"] = [
        {"anyOf": [{"required": [one], "properties": {one: {"not": {"type": "null"}}}} for one in ways]}
        for ways in (("devices", "cluster"), ("layers", "model"), (COUNT, "batch"))
    ]
    return schema


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))  # noqa: T201 - docs/plan.schema.json is this output
