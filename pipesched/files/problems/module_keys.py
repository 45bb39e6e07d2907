"""The key `modules` of a problem file: stages of their own that feed the others, such as a vision encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from pipesched.files.features.parameters import ParametersSection
from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list, field, whole_number
from pipesched.files.fields.section import Section

REPLICATED: Literal["replicated"] = "replicated"
SHARED: Literal["shared"] = "shared"
# The devices of the stages of each copy; or each device holds a copy, or a part.
Copies = list[list[int]] | Literal["replicated", "shared"]
REQUIRED = ("times", "times.forward", "times.backward")

_DEVICES: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}


def _numbers(value: object) -> list[int] | None:
    found = [number for entry in as_list(value) or () if (number := whole_number(0)(entry)) is not None]
    return found if found and len(found) == len(as_list(value) or ()) else None


def _copies(value: object) -> Copies | None:
    if value in (REPLICATED, SHARED):
        return value
    entries = as_list(value)
    if entries and all(as_list(entry) is not None for entry in entries):
        rows = [_numbers(entry) for entry in entries]
        found = [row for row in rows if row is not None]
        alike = len({len(row) for row in found}) == 1
        return found if alike and len(found) == len(rows) else None
    one = _numbers(value)
    return None if one is None else [one]


def _fed(value: object) -> list[int] | None:
    single = whole_number(0)(value)
    found = _numbers(value) if single is None else [single]
    return None if found is None or len(set(found)) < len(found) else found


class ModuleTimes(Section):
    """Durations of its passes: a number for every stage of it, or a list with one per stage."""

    forward: field_types.Numbers | None = Field(None, description="forward pass (F)")
    backward: field_types.Numbers | None = Field(None, description="backward for the input (B); without weight: full")
    weight: field_types.Numbers | None = Field(None, description="backward for the weights (W), as for the trunk")
    fused: field_types.Numbers | None = Field(None, description="full backward in one go; default backward + weight")
    transfer: field_types.Numbers | None = Field(
        None, description="from its stage to the next or to the trunk, and back, besides that of a link; default 0"
    )


class ModuleMemory(Section):
    """Memory of its passes, in the unit of `memory`."""

    activation: field_types.Numbers | None = Field(None, description="taken when F starts; default 1")
    freed_by_backward: field_types.SignedNumbers | None = Field(None, description="given back when B ends; default 0")
    static: field_types.Numbers | None = Field(None, description="always held, for each stage; default 0")


class ModuleSection(Section):
    """Stages on some devices, whose output stages of the trunk need; their backward follows that of these."""

    placement: (
        Annotated[
            Copies,
            field(
                "a list of devices, one a stage; a list of such lists, one a copy, all as long; replicated; or shared",
                _copies,
                {"anyOf": [{"enum": [REPLICATED, SHARED]}, _DEVICES, {"type": "array", "items": _DEVICES}]},
            ),
        ]
        | None
    ) = Field(
        None,
        description="the device of each stage; copies take passes in turn; shared: each device runs a part of every "
        "pass; default: one stage on device 0",
    )
    stages: field_types.Count | None = Field(None, description="stages of each copy; default: as placement lists, or 1")
    feeds: Annotated[
        list[int],
        field("a stage, or a list of different stages", _fed, {"anyOf": [{"type": "integer", "minimum": 0}, _DEVICES]}),
    ] = Field([0], description="the stages of the trunk that need its output")
    follows: Annotated[int, field("a stage", whole_number(0), {"type": "integer", "minimum": 0})] | None = Field(
        None,
        description="instead of feeds, of a shared head: the stage of the trunk whose forward comes before its own, "
        "and whose backward after",
    )
    barriers: (
        Annotated[
            int,
            field(
                "1 or 2", lambda value: value if value in (1, 2) and whole_number(1)(value) else None, {"enum": [1, 2]}
            ),
        ]
        | None
    ) = Field(
        None,
        description="of a head: 2, after its forwards and after its backwards; 1, after its forwards alone, which "
        "compute the gradient of the input, too",
    )
    serves: field_types.Count = Field(1, description="micro-batches of the trunk that one pass is for")
    frozen: field_types.YesOrNo = Field(
        False, description="its stages run forwards alone; needed where it feeds frozen stages; default false"
    )
    times: ModuleTimes | None = None
    memory: ModuleMemory | None = None
    parameters: ParametersSection | None = Field(
        None, description="what its stages run once an iteration for their own, where the trunk's run something too"
    )


def split_off(document: object) -> tuple[object, Mapping[str, object] | None]:
    """The document without its modules, and these."""
    if not isinstance(document, Mapping) or document.get("modules") is None:
        return document, None
    held = document["modules"]
    return {key: value for key, value in document.items() if key != "modules"}, held
