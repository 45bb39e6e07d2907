"""The keys of a problem file for micro-batches that take different ways through the stages: `chains`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list, field, whole_number
from pipesched.files.fields.section import Section


def _stages(value: object) -> list[int] | None:
    numbers = [whole_number(0)(entry) for entry in as_list(value) or ()]
    found = [number for number in numbers if number is not None]
    return found if found and len(found) == len(numbers) else None


StageNumbers = Annotated[
    list[int],
    field("a list of stages", _stages, {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}),
]


class Chain(Section):
    """Stages that some micro-batches go through, in this order; their backward goes back."""

    required = ("stages", "microbatches")

    stages: StageNumbers | None = Field(None, description="the stages, first to last")
    microbatches: field_types.Count | None = Field(None, description="how many go through them: those that come next")
