"""The keys of a problem file as pydantic models, and the JSON Schema made from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from pipesched.files.features.catalogue import FEATURES, with_features
from pipesched.files.features.chains import Chain
from pipesched.files.features.tasks import PLAIN_TIMES, Tasks
from pipesched.files.fields import field_types
from pipesched.files.fields.blocks_field import BlocksField
from pipesched.files.fields.section import Section
from pipesched.files.fields.sweep_field import SweepField
from pipesched.files.fields.transfer_field import TransferField
from pipesched.problem.objective import of_problems


class Times(Section):
    """Durations: a number for every stage, or a list with one per stage in stage order."""

    forward: field_types.Numbers | None = Field(None, description="forward pass (F)")
    backward: field_types.Numbers | None = Field(None, description="backward for the input (B); without weight: full")
    weight: field_types.Numbers | None = Field(None, description="backward for the weights (W)")
    fused: field_types.Numbers | None = Field(
        None, description="full backward in one go (BW); default backward + weight"
    )
    transfer: TransferField | None = Field(
        None, description="one activation or gradient between two devices: by stage, or by pair of devices; default 0"
    )
    overlapped: BlocksField | None = Field(
        None,
        description="a forward and a full backward run as one block: its time, by the forward's stage; or saves, what "
        "a block takes less than the two, the smaller number of their stages",
    )


class MemoryKeys(Section):
    """Activation memory; without this section it is unlimited and counted in activations."""

    unit: field_types.Text = Field("activations", description="a label only")
    capacity: field_types.NumbersPerDevice | None = Field(
        None, description="what is left for activations, per device; with static: the whole device's"
    )
    static: field_types.NumbersPerDeviceOrStage | None = Field(
        None, description="weights, gradients and optimizer, always held: a number per device, or one per stage"
    )
    activation: field_types.Numbers | None = Field(None, description="taken when F starts; default 1")
    freed_by_backward: field_types.SignedNumbers | None = Field(
        None, description="part given back when B ends, the rest when W ends; negative: B takes more; default 0"
    )


if TYPE_CHECKING:
    MemorySection = MemoryKeys
else:
    MemorySection = with_features("MemorySection", "memory", MemoryKeys)


class CommonKeys(Section):
    """A pipeline-parallel training iteration to schedule."""

    required = ("devices", "microbatches")

    name: field_types.Text | None = Field(None, description="free text; default the file's stem")
    devices: field_types.Count | None = Field(None, description="pipeline ranks")
    microbatches: field_types.Count | None = Field(None, description="micro-batches of one iteration")
    placement: field_types.PlacementField = Field("linear", description="where the stages live")
    chunks: field_types.Count | None = Field(None, description="stages per device, for interleaved and wave; default 1")
    chains: list[Chain] | None = Field(
        None, description="the stages that micro-batches go through, each stage in one chain; default: all, in order"
    )
    time_unit: field_types.Text = Field("", description="a label only")
    streams: field_types.Names | None = Field(
        None, description="what every device runs tasks on, each stream one at a time; default: compute alone"
    )
    tasks: Tasks | None = None
    times: Times | None = None
    memory: MemorySection | None = None
    objective: Annotated[str, field_types.one_of(*(one.name for one in of_problems()))] = Field(
        "makespan", description="what to minimise; of free_memory the most, on the device with the least"
    )
    sweep: SweepField | None = Field(None, description="what `pipesched sweep` changes: fields and their values")


if TYPE_CHECKING:
    ProblemFile = CommonKeys
else:
    ProblemFile = with_features("ProblemFile", "", CommonKeys)


# Keys without which a file says too little; the model leaves them open so that all other mistakes are still found.
REQUIRED = ("devices", "microbatches", "times", "times.forward", "times.backward")
REQUIRED_OF_TASKS = ("devices", "microbatches", "tasks", "tasks.forward", "tasks.backward")


def required(document: object) -> tuple[str, ...]:
    """Return the key paths that a problem document must have, such as `times.forward`.

    They are `devices`, `microbatches`, and `tasks`, `tasks.forward` and `tasks.backward` in a document with `tasks`,
    else `times`, `times.forward` and `times.backward`.
    """
    return REQUIRED_OF_TASKS if isinstance(document, Mapping) and document.get("tasks") is not None else REQUIRED


def json_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of the problem file, with which editors check and complete keys."""
    schema = ProblemFile.model_json_schema()
    for feature in FEATURES:
        feature.amend_schema(schema)
    types = schema["$defs"]
    for key in ("forward", "backward", "weight"):
        types["Tasks"]["properties"][key]["anyOf"][0]["minItems"] = 1
    needed: dict[str, Any] = {"type": "object", "required": ["forward", "backward"]}
    needed["properties"] = {key: {"not": {"type": "null"}} for key in ("forward", "backward")}
    without = {"properties": {key: {"type": "null"} for key in PLAIN_TIMES}}
    schema["anyOf"] = [
        {"required": ["times"], "properties": {"times": needed, "tasks": {"type": "null"}}},
        {"required": ["tasks"], "properties": {"tasks": {"type": "object"}, "times": without}},
    ]
    return schema


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))  # noqa: T201 - docs/problem.schema.json is this output
