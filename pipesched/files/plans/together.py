"""The table of pairs of features that exclude each other in a plan file, for the reader and for the docs page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipesched.files.fields.field import as_list, finite_number
from pipesched.files.fields.together import Part, Refused, at, given, of_value
from pipesched.layers.vocabulary import Vocabulary

_ENCODER = given("encoder")


def _published(document: Mapping[str, Any]) -> bool:
    return document.get("schedule") not in (None, "free")


def _holds_stages_twice(document: Mapping[str, Any]) -> bool:
    placement = document.get("placement")
    return "bidirectional" in (as_list(placement) or [placement])


def _fixed(document: Mapping[str, Any]) -> bool:
    return as_list(document.get("partition")) is not None


def _runs_forwards_alone(document: Mapping[str, Any]) -> bool:
    """Return True if the first layers are frozen and no encoder before them trains, so that they have no backward."""
    encoder = document.get("encoder")
    if isinstance(encoder, Mapping):
        return encoder.get("frozen") is True
    first, names = (as_list(document.get("layers")) or [None])[0], as_list(at(document, "model.frozen")) or ()
    of_model = "embedding" in names or at(document, "model.lora") is not None
    return (isinstance(first, Mapping) and first.get("frozen") is True) or of_model


def _above_zero(path: str) -> Part:
    return Part(path, path, lambda document: (finite_number(at(document, path)) or 0) > 0)


_BATCH, _BATCH_OVERHEAD = given("batch"), given("batch.overhead")
_FROZEN = Part("layers.frozen", "frozen layers before all that train", _runs_forwards_alone)
_OVERLAPS = Part("overlap_next", "overlap_next", lambda document: document.get("overlap_next") is True)
_SPANS = "passes without length of frozen stages end a device's span only when gradients are back at its place"
_NONE_THERE = "stages of frozen layers have none"
_VOCABULARY = [of_value("vocabulary", str(one)) for one in Vocabulary if one is not Vocabulary.ONE]
_MODULES = (_ENCODER, *_VOCABULARY)  # of a plan: the stages that are none of the model's layers
_SENDING = given("transfer.on")
_BOTH_WAYS = Part("placement", "placement bidirectional", _holds_stages_twice, "bidirectional")
_PARTITION = Part("partition", "a partition as a list", _fixed, "a list")
_SCHEDULE = Part("schedule", "a published schedule", _published)
_PIECES = given("sequence_chunks")
_NEVER = Part(
    "parameters.gather.keep",
    "gather.keep never",
    lambda document: at(document, "parameters.gather.keep") == "never",
    "never",
)
_EACH = Part(
    "parameters.reduce.every",
    "reduce.every microbatch",
    lambda document: at(document, "parameters.reduce.every") == "microbatch",
    "microbatch",
)

REFUSED = (
    *(Refused(one, _ENCODER, "one", "passes of an encoder and of the vocabulary have no order among them")
      for one in _VOCABULARY),
    Refused(of_value("objective", "span"), _FROZEN, "makespan", _SPANS),
    Refused(_OVERLAPS, _FROZEN, "one of the two", _SPANS),
    *(Refused(_above_zero(path), _FROZEN, "0", _NONE_THERE)
      for path in ("stage_overhead.backward", "batch.overhead.backward", "parameters.reduce.time",
                   "parameters.step.time")),
    Refused(_SCHEDULE, _ENCODER, "free", "no published schedule has an encoder"),
    Refused(_BATCH, _ENCODER, "one of the two", "how its passes share in a batch has no key"),
    Refused(_BATCH_OVERHEAD, given("stage_overhead"), "one of the two", "both are of each pass"),
    *(Refused(_SENDING, one, "transfers that occupy no stream", "transfers of modules occupy none")
      for one in _MODULES),
    *(Refused(_BOTH_WAYS, one, "placements that hold each stage once", "a module feeds one copy of a stage")
      for one in _MODULES),
    *(Refused(_PARTITION, one, "free or even", "a list says nothing of the stages of modules") for one in _MODULES),
    *(Refused(_PIECES, one, "one of the two", "micro-batches whose pieces are chains have no modules")
      for one in _MODULES),
    *(Refused(_NEVER, one, "free, always or a window", "passes of pieces and of modules are one task each")
      for one in (_PIECES, *_MODULES)),
    Refused(
        _NEVER,
        given("parameters.reduce.buckets"),
        "free, always or a window",
        "a bucket's share of a pass's tasks would count its gathering",
    ),
    *(Refused(_EACH, one, "iteration", "pieces reduce together, and modules run one micro-batch for several of others")
      for one in (_PIECES, *_MODULES)),
)  # fmt: skip
