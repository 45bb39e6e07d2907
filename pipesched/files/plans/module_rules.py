"""Features that a plan may not have together with an encoder or a split vocabulary, whose stages are none of its
layers'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipesched.files.fields.field import as_list
from pipesched.files.fields.together import Part, Refused, given


def _holds_stages_twice(document: Mapping[str, Any]) -> bool:
    placement = document.get("placement")
    return "bidirectional" in (as_list(placement) or [placement])


def _fixed(document: Mapping[str, Any]) -> bool:
    return as_list(document.get("partition")) is not None


_BIDIRECTIONAL = Part("placement", "placement bidirectional", _holds_stages_twice, "bidirectional")
_PARTITION = Part("partition", "a partition as a list", _fixed, "a list")


def refused_with_modules(module: Part) -> Iterator[Refused]:
    """Yield the pairs of features that `module` excludes."""
    sends = "transfers of modules occupy none"
    yield Refused(given("transfer.on"), module, "transfers that occupy no stream", sends)
    twice = "a module feeds one copy of a stage"
    yield Refused(_BIDIRECTIONAL, module, "placements that hold each stage once", twice)
    yield Refused(_PARTITION, module, "free or even", "a list says nothing of the stages of modules")
    chains = "micro-batches whose pieces are chains have no modules"
    yield Refused(given("sequence_chunks"), module, "one of the two", chains)
