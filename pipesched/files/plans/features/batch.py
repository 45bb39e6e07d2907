"""The key `batch` of a plan file: scales the costs of layers to a micro-batch, or gives the number of micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from pipesched.errors import BadInput
from pipesched.files.batch_sizes import COUNT, SEARCHED, SIZE
from pipesched.files.features.batch import scaled, share_of_pass
from pipesched.files.features.catalogue import FEATURES
from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list, whole_number
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Refused, at, given
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, PlanFeature
from pipesched.files.schema_errors import shown

_SHARED_TIMES = ("forward", "backward", "weight", "fused")
_SHARED_MEMORY = ("activation", "freed_by_backward", "kept_for_later")


class PlanOverheadSection(Section):
    """Time that each pass of a stage takes, however small its micro-batch, in the file's unit."""

    forward: field_types.Number | None = Field(None, description="of F; default 0")
    backward: field_types.Number | None = Field(None, description="of B, and of a full backward; default 0")
    transfer: field_types.Number | None = Field(None, description="of a transfer that takes time; default 0")


class PlanBatchSection(Section):
    """A batch of a plan file that is the same for every size of a micro-batch."""

    size: field_types.Count | None = Field(
        None,
        description="its sequences, which micro-batches share evenly; with model it gives microbatches, on each data "
        "parallel replica; default with layers: any share",
    )
    overhead: PlanOverheadSection | None = Field(
        None, description="with layers: time of each pass besides its share of the batch's"
    )


class Keys(Section):
    """The key `batch`: costs or sequences of a whole batch, which micro-batches share."""

    batch: PlanBatchSection | None = Field(
        None, description="costs of layers are those of a whole batch; with model: the sequences of a step"
    )


def _of_microbatch(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document of one micro-batch, in plain numbers; itself without `batch`, or where keys are wrong.

    With `layers` their costs are divided by the number of micro-batches; with `model` that number is computed.
    `BadInput` for a list of sizes, of which the caller has to choose one.
    """
    if not isinstance(document.get("batch"), Mapping):
        return document
    for path in (COUNT, SIZE):
        if (listed := as_list(at(document, path))) is not None:
            raise BadInput(f"{path}: found {shown(listed)}; allowed: {SEARCHED}")
    if document.get("model") is not None:
        count = _count_of_model(document)
        return document if count is None or document.get(COUNT) is not None else {**document, COUNT: count}
    count, layers = whole_number(1)(document.get(COUNT)), as_list(document.get("layers"))
    if count is None or layers is None:
        return document
    own = at(document, "batch.overhead")
    overhead = own if isinstance(own, Mapping) else {}
    given = document.get("stage_overhead")
    stage = {key: overhead[key] for key in ("forward", "backward") if overhead.get(key) is not None}
    found = {**document, "layers": [_layer(one, count) for one in layers]}
    if stage and given is None:
        found["stage_overhead"] = stage
    if document.get("transfer") is not None:
        found["transfer"] = share_of_pass(document["transfer"], count, overhead.get("transfer"), if_any=True)
    return found


def _layer(entry: Any, count: int) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    found = {key: share_of_pass(one, count, None) if key in _SHARED_TIMES else one for key, one in entry.items()}
    found |= {key: scaled(entry[key], count) for key in _SHARED_MEMORY if key in entry}
    modes = as_list(entry.get("recompute"))
    if modes is not None:
        found["recompute"] = [
            {**mode, "time": share_of_pass(mode["time"], count, None)}
            if isinstance(mode, Mapping) and "time" in mode
            else mode
            for mode in modes
        ]
    return found


def _count_of_model(document: Mapping[str, Any]) -> int | None:
    """Return the number of micro-batches of each data parallel replica.

    None if they cannot share the batch evenly, or a size is missing or wrong.
    """
    one = whole_number(1)
    size, each = one(at(document, "batch.size")), one(at(document, SIZE) or 1)
    data = one(at(document, "model.parallel.data") or 1)
    if size is None or each is None or data is None or size % (each * data):
        return None
    return size // (each * data)


def _mistakes(document: Mapping[str, Any], wrong: WrongPaths) -> Iterator[str]:
    """Yield mistakes of `batch`: keys that it excludes, a missing size, and micro-batches that do not divide it."""
    if not isinstance(document.get("batch"), Mapping):
        return
    size = whole_number(1)(at(document, "batch.size"))
    if document.get("model") is None:
        count = whole_number(1)(document.get(COUNT))
        if size and count and size % count:
            yield f"{COUNT}: found {count}; allowed: what divides batch.size, {size}"
        return
    if at(document, "batch.size") is None:
        yield "batch.size: missing; it is required with model"
    if at(document, "batch.overhead") is not None:
        yield "batch.overhead: found with model; allowed: with layers, since the hardware says what launches take"
    if document.get(COUNT) is not None:
        yield f"{COUNT}: found with model and batch; allowed: one of the two"
    elif size and not wrong & {SIZE, "model.parallel.data"} and _count_of_model(document) is None:
        each, data = at(document, SIZE) or 1, at(document, "model.parallel.data") or 1
        yield f"{SIZE}: found {shown(each)}; allowed: what divides batch.size, {size}, on {data} data parallel replicas"


PLAN_FEATURES.register(
    PlanFeature(
        name="batch",
        keys=Keys,
        with_units=FEATURES["batch"].with_units,
        refused=(Refused(given("batch.overhead"), given("stage_overhead"), "one of the two", "both are of each pass"),),
        rewritten=_of_microbatch,
        of_document=_mistakes,
    )
)
