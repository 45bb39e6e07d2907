"""Rules for modules of a plan file (an encoder, a vocabulary on all devices): features that exclude them.

Their stages have none of the model's layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipesched.files.fields.field import as_list
from pipesched.files.fields.together import Part, Refused, given, of_value
from pipesched.layers.vocabulary import Vocabulary


def _holds_stages_twice(document: Mapping[str, Any]) -> bool:
    placement = document.get("placement")
    return "bidirectional" in (as_list(placement) or [placement])


def _fixed(document: Mapping[str, Any]) -> bool:
    return as_list(document.get("partition")) is not None


ENCODER = given("encoder")
VOCABULARIES = tuple(of_value("vocabulary", str(one)) for one in Vocabulary if one is not Vocabulary.ONE)
MODULES = (ENCODER, *VOCABULARIES)


def has_modules(document: Mapping[str, Any]) -> bool:
    """Return True if a document has stages without any of the model's layers: an encoder or a shared vocabulary."""
    return any(module.is_in(document) for module in MODULES)


ANY_MODULE = Part("encoder", "an encoder or a shared vocabulary", has_modules)
_BIDIRECTIONAL = Part("placement", "placement bidirectional", _holds_stages_twice, "bidirectional")
_PARTITION = Part("partition", "a partition as a list", _fixed, "a list")


def refused_with_modules(module: Part) -> Iterator[Refused]:
    """Yield the pairs of `module`, an encoder or a shared vocabulary, with each feature that does not go with it."""
    sends = "transfers of modules occupy none"
    yield Refused(given("transfer.on"), module, "transfers that occupy no stream", sends)
    twice = "a module feeds one copy of a stage"
    yield Refused(_BIDIRECTIONAL, module, "placements that hold each stage once", twice)
    yield Refused(_PARTITION, module, "free or even", "a list says nothing of the stages of modules")
    chains = "micro-batches whose pieces are chains have no modules"
    yield Refused(given("sequence_chunks"), module, "one of the two", chains)
