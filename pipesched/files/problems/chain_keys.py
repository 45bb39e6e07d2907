"""The keys of a problem file for micro-batches that take different ways: `chains`, and `pipelines` side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.field import PLAIN_NUMBER, as_list, field, finite_number, whole_number
from pipesched.files.fields.section import Section
from pipesched.problem.chains.data_parallel import Worker

_WORKER = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})")
_PAIR: dict[str, Any] = {
    "type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2,
}  # fmt: skip


def _stages(value: object) -> list[int] | None:
    numbers = [whole_number(0)(entry) for entry in as_list(value) or ()]
    found = [number for number in numbers if number is not None]
    return found if found and len(found) == len(numbers) else None


def _workers(value: object) -> list[Worker] | None:
    entries = as_list(value)
    pairs = [_stages(entry) for entry in entries or ()]
    found = [Worker(*pair) for pair in pairs if pair is not None and len(pair) == 2]
    return found if entries is not None and len(found) == len(entries) else None


def _factors(value: object) -> dict[Worker, Fraction] | None:
    if not isinstance(value, Mapping):
        return None
    found: dict[Worker, Fraction] = {}
    for key, given in value.items():
        match, factor = _WORKER.fullmatch(key) if isinstance(key, str) else None, finite_number(given)
        # Ticks become finer by the denominators of factors.
        if match is None or factor is None or not 0 < factor <= 100 or 1000 % factor.denominator:
            return None
        found[Worker(int(match[1]), int(match[2]))] = factor
    return found


StageNumbers = Annotated[
    list[int],
    field("a list of stages", _stages, {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}),
]


class Chain(Section):
    """Stages that some micro-batches go through, in this order; their backward goes back."""

    required = ("stages", "microbatches")

    stages: StageNumbers | None = Field(None, description="the stages, first to last")
    microbatches: field_types.Count | None = Field(None, description="how many go through them: those that come next")


class PipelinesSection(Section):
    """Copies of the pipeline that the other keys describe; its micro-batches are those of each copy."""

    required = ("count",)

    count: field_types.Count | None = Field(None, description="how many pipelines there are")
    lost: Annotated[
        list[Worker], field("a list of pairs, [pipeline, device]", _workers, {"type": "array", "items": _PAIR})
    ] = Field([], description="workers whose passes go in turn to the others that hold the same stages")
    slow: Annotated[
        dict[Worker, Fraction],
        field(
            'a factor above 0 and up to 100, with at most 3 digits, for "pipeline.device" as text: {"0.2": 2}',
            _factors,
            {"type": "object", "additionalProperties": PLAIN_NUMBER},
        ),
    ] = Field({}, description="how many times as long all takes that a worker runs")
