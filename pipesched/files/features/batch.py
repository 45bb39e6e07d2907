"""The key `batch`: times and memory of a whole batch, of which each micro-batch takes an equal share.

`batch.overhead` is a fixed time that every pass takes in addition to its share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from pydantic import Field

from pipesched.errors import BadInput
from pipesched.files.batch_sizes import COUNT, SEARCHED, or_several
from pipesched.files.features.catalogue import FEATURES, Feature, FeatureKeys, ProblemForm
from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list, finite_number, whole_number
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Refused, given, more_than_one
from pipesched.files.schema_errors import shown

_KEY = "batch"


class OverheadSection(Section):
    """Time that each pass takes, however small its micro-batch, in the file's unit."""

    forward: field_types.Number | None = Field(None, description="of F; default 0")
    backward: field_types.Number | None = Field(None, description="of B, and of a full backward; default 0")
    weight: field_types.Number | None = Field(None, description="of W; default 0")
    transfer: field_types.Number | None = Field(None, description="of a transfer that takes time; default 0")


class BatchSection(Section):
    """A batch that is the same for every number of micro-batches."""

    size: field_types.Count | None = Field(
        None, description="sequences of the batch, which micro-batches share evenly; default: any share"
    )
    overhead: OverheadSection | None = Field(None, description="time of each pass besides its share of the batch's")


class Keys(FeatureKeys):
    """The key `batch`: times and memory are those of a whole batch, which micro-batches share."""

    batch: BatchSection | None = Field(
        None, description="times and memory of passes are those of a whole batch; a micro-batch has its share of them"
    )


def share_of_microbatch(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document with the times and memory of one micro-batch in place of those of the whole batch.

    They are exact fractions; a missing `memory.activation` is divided as its default, 1. The document itself where it
    has no `batch`, or where keys are wrong, which later checks report. `BadInput` for a list of micro-batch counts, of
    which the caller has to choose one.
    """
    section, count = document.get(_KEY), whole_number(1)(document.get(COUNT))
    if section is not None and (listed := as_list(document.get(COUNT))) is not None:
        raise BadInput(f"{COUNT}: found {shown(listed)}; allowed: {SEARCHED}")
    times = document.get("times")
    if not isinstance(section, Mapping) or count is None or not isinstance(times, Mapping):
        return document
    own = section.get("overhead")
    overhead = own if isinstance(own, Mapping) else {}
    found = {
        key: share_of_pass(value, count, overhead.get("backward" if key == "fused" else key), key == "transfer")
        for key, value in times.items()
    }
    memory = document.get("memory")
    section_memory = dict(memory) if isinstance(memory, Mapping) else {}
    section_memory.setdefault("activation", 1)
    for key in ("activation", "freed_by_backward", "workspace", "until_end"):
        if key in section_memory:
            section_memory[key] = scaled(section_memory[key], count)
    return dict(document) | {
        "times": found,
        "memory": section_memory if memory is None or isinstance(memory, Mapping) else memory,
    }


def share_of_pass(value: Any, count: int, overhead: Any, if_any: bool = False) -> Any:
    """Return times of a whole batch divided by `count` micro-batches, plus `overhead`, for every number of `value`.

    `value` is a number, or lists and mappings of numbers, whose form the result has, with exact fractions; negative
    numbers stay as they are. With `if_any`, a time of 0 stays 0 (no transfer, no overhead). An `overhead` that is no
    number is 0.
    """
    besides = finite_number(overhead) or Fraction(0)
    # Negative ones are refused as they are.
    return _each(value, lambda x: x if x < 0 or (if_any and not x) else x / count + besides)


def scaled(value: Any, count: int) -> Any:
    """Return memory amounts of a whole batch divided by `count` micro-batches, for every number of `value`.

    `value` is a number, or lists and mappings of numbers, whose form the result has, with exact fractions.
    """
    return _each(value, lambda x: x / count)


def _each(value: Any, change: Callable[[Fraction], Fraction]) -> Any:
    """Return a nested value with `change` applied to every number, except under `nodes` and `on`, which are no amounts.

    Entries that are no numbers are left for the file's checks to refuse.
    """
    if isinstance(value, Mapping):
        return {key: one if key in ("nodes", "on") else _each(one, change) for key, one in value.items()}
    if isinstance(value, list):
        return [_each(one, change) for one in value]
    number = finite_number(value)
    return value if number is None else change(number)


def _mistakes(form: ProblemForm, _stages: int | None, wrong: WrongPaths) -> Iterator[str]:
    """Yield a mistake where the number of micro-batches does not divide the batch's sequences."""
    size = form.batch.size if form.batch else None
    if size and form.microbatches and not wrong & {"microbatches", "batch.size"} and size % form.microbatches:
        yield f"microbatches: found {form.microbatches}; allowed: what divides batch.size, {size}"


def _amend_schema(schema: dict[str, Any]) -> None:
    """Change the JSON Schema in place so that `microbatches` may be a list: several numbers to cut a batch into."""
    schema["properties"][COUNT] = or_several(schema["properties"][COUNT])


_OWN = given(_KEY)
_EITHER = "one of the two"
_NO_SHARE = "how it shares in a batch has no key"
_REFUSED = (
    *(
        Refused(_OWN, given(path), _EITHER, _NO_SHARE)
        for path in ("tasks", "modules", "microbatch_scale", "times.overlapped", "memory.offload", "memory.recompute")
    ),
    Refused(_OWN, more_than_one("sequence_chunks"), _EITHER, _NO_SHARE),
)

FEATURES.register(
    Feature(
        name=_KEY,
        keys=Keys,
        amend_schema=_amend_schema,
        rewritten=share_of_microbatch,
        mistakes=_mistakes,
        refused=_REFUSED,
        with_units={"batch.overhead": QuantityKind.TIME},
    )
)
