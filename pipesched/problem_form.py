"""The keys of a problem file, what each may hold, and the JSON Schema that editors check it by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from pipesched import fields
from pipesched.problem import Objective


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class Times(_Section):
    """Durations: a number for every stage, or a list with one per stage in stage order."""

    forward: fields.Numbers | None = Field(None, description="forward pass (F)")
    backward: fields.Numbers | None = Field(None, description="backward for the input (B); without weight: full")
    weight: fields.Numbers | None = Field(None, description="backward for the weights (W)")
    fused: fields.Numbers | None = Field(None, description="full backward in one go (BW); default backward + weight")
    transfer: fields.Numbers | None = Field(
        None, description="one activation or gradient between a stage and the next on another device; default 0"
    )
    overlapped: fields.Numbers | None = Field(None, description="a forward and a full backward run as one block")


class MemorySection(_Section):
    """Activation memory; without this section it is unlimited and counted in activations."""

    unit: fields.Text = Field("activations", description="a label only")
    capacity: fields.NumbersPerDevice | None = Field(None, description="what is left for activations, per device")
    activation: fields.Numbers | None = Field(None, description="taken when F starts; default 1")
    freed_by_backward: fields.SignedNumbers | None = Field(
        None, description="part given back when B ends, the rest when W ends; negative: B takes more; default 0"
    )


class ProblemFile(_Section):
    """A pipeline-parallel training iteration to schedule."""

    name: fields.Text | None = Field(None, description="free text; default the file's stem")
    devices: fields.Count | None = Field(None, description="pipeline ranks")
    microbatches: fields.Count | None = Field(None, description="micro-batches of one iteration")
    placement: fields.PlacementField = Field("linear", description="where the stages live")
    chunks: fields.Count | None = Field(None, description="stages per device, for interleaved and wave; default 1")
    time_unit: fields.Text = Field("", description="a label only")
    times: Times | None = None
    memory: MemorySection | None = None
    objective: Annotated[
        Literal["makespan", "span", "period"],
        fields.one_of(*Objective),
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
        given["anyOf"] = [way for way in given["anyOf"] if way != {"type": "null"}]
        del given["default"]
    return schema


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))  # noqa: T201 - docs/problem.schema.json is this output
