"""The keys of a problem file, what each may hold, and the JSON Schema that editors check it by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from pipesched.files import field_types
from pipesched.problem.problem import Objective


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class Times(_Section):
    """Durations: a number for every stage, or a list with one per stage in stage order."""

    forward: field_types.Numbers | None = Field(None, description="forward pass (F)")
    backward: field_types.Numbers | None = Field(None, description="backward for the input (B); without weight: full")
    weight: field_types.Numbers | None = Field(None, description="backward for the weights (W)")
    fused: field_types.Numbers | None = Field(
        None, description="full backward in one go (BW); default backward + weight"
    )
    transfer: field_types.TransferField | None = Field(
        None, description="one activation or gradient between two devices: by stage, or by pair of devices; default 0"
    )
    overlapped: field_types.Numbers | None = Field(None, description="a forward and a full backward run as one block")


class MemorySection(_Section):
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


class ProblemFile(_Section):
    """A pipeline-parallel training iteration to schedule."""

    name: field_types.Text | None = Field(None, description="free text; default the file's stem")
    devices: field_types.Count | None = Field(None, description="pipeline ranks")
    microbatches: field_types.Count | None = Field(None, description="micro-batches of one iteration")
    placement: field_types.PlacementField = Field("linear", description="where the stages live")
    chunks: field_types.Count | None = Field(None, description="stages per device, for interleaved and wave; default 1")
    time_unit: field_types.Text = Field("", description="a label only")
    times: Times | None = None
    memory: MemorySection | None = None
    objective: Annotated[
        Literal["makespan", "span", "period"],
        field_types.one_of(*Objective),
        WithJsonSchema({"enum": list(Objective)}),
    ] = Field("makespan", description="what to minimise")


# Keys without which a file says too little; the model leaves them open so that all other mistakes are still found.
REQUIRED = ("devices", "microbatches", "times", "times.forward", "times.backward")


def json_schema() -> Mapping[str, Any]:
    """The JSON Schema of the problem file, for editors."""
    schema = ProblemFile.model_json_schema()
    sections = {"": schema, "times": schema["$defs"]["Times"]}
    for path in REQUIRED:
        section, _, key = path.rpartition(".")
        sections[section].setdefault("required", []).append(key)
        given = sections[section]["properties"][key]
        given["anyOf"] = [one for one in given["anyOf"] if one != {"type": "null"}]
        del given["default"]
    return schema


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))  # noqa: T201 - docs/problem.schema.json is this output
