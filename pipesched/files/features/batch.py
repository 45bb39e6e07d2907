"""Times and memory of a whole batch, of which each micro-batch has a share, and what every pass takes besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from pydantic import Field

from pipesched.errors import BadInput
from pipesched.files.batch_sizes import COUNT, SEARCHED, or_several
from pipesched.files.features.catalogue import FEATURES, Feature, FeatureKeys
from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list, finite_number, whole_number
from pipesched.files.fields.kind import Kind
from pipesched.files.fields.section import Section
from pipesched.files.fields.together import Refused, given, more_than_one
from pipesched.files.schema_errors import shown

_KEY = "batch"


class OverheadSection(Section):
    """Time that each pass takes, however small its micro-batch."""

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
    """The batch."""

    batch: BatchSection | None = Field(
        None, description="times and memory of passes are those of a whole batch; a micro-batch has its share of them"
    )


def share_of_microbatch(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document of one micro-batch's passes; itself where there is no batch, or where its keys are mistaken."""
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
    held = dict(memory) if isinstance(memory, Mapping) else {}
    held.setdefault("activation", 1)
    for key in ("activation", "freed_by_backward", "workspace", "until_end"):
        if key in held:
            held[key] = scaled(held[key], count)
    return dict(document) | {
        "times": found,
        "memory": held if memory is None or isinstance(memory, Mapping) else memory,
    }


def share_of_pass(value: Any, count: int, overhead: Any, if_any: bool = False) -> Any:
    """Times of a micro-batch's passes of times of the batch's, one of `count`; with `if_any` only times above 0."""
    besides = finite_number(overhead) or Fraction(0)
    # Negative ones are refused as they are.
    return _each(value, lambda x: x if x < 0 or (if_any and not x) else x / count + besides)


def scaled(value: Any, count: int) -> Any:
    """Memory of one of `count` micro-batches."""
    return _each(value, lambda x: x / count)


def _each(value: Any, change: Callable[[Fraction], Fraction]) -> Any:
    """Every number of a value changed, but for the numbers of nodes; what is none stays for the reader to refuse."""
    if isinstance(value, Mapping):
        return {key: one if key in ("nodes", "on") else _each(one, change) for key, one in value.items()}
    if isinstance(value, list):
        return [_each(one, change) for one in value]
    number = finite_number(value)
    return value if number is None else change(number)


def _mistakes(form: Any, _stages: int | None, wrong: frozenset[str]) -> Iterator[str]:
    """Micro-batches of whole sequences."""
    size = form.batch.size if form.batch else None
    if size and form.microbatches and not wrong & {"microbatches", "batch.size"} and size % form.microbatches:
        yield f"microbatches: found {form.microbatches}; allowed: what divides batch.size, {size}"


def _amend_schema(schema: dict[str, Any]) -> None:
    """With a batch several numbers of micro-batches may be listed."""
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
        with_units={"batch.overhead": Kind.TIME},
    )
)
