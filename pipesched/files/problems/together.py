"""The table of pairs of features that exclude each other in a problem file, for the reader and for the docs page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipesched.files.features.catalogue import FEATURES, Feature
from pipesched.files.fields.field import as_list
from pipesched.files.fields.together import SEVERAL_LAYERS, Part, Refused, at, given, of_value

_EITHER = "one of the two"
_ENDS = "makespan or span"


def _looks_up(document: Mapping[str, Any]) -> bool:
    tasks = as_list(at(document, "tasks.forward")) or ()
    return any(isinstance(task, Mapping) and task.get("needs") == "nothing" for task in tasks)


def _sends(document: Mapping[str, Any]) -> bool:
    """Return True if transfers occupy a stream and passes are single tasks.

    Other rows are for passes of several tasks.
    """
    return at(document, "times.transfer.on") is not None and document.get("tasks") is None


_CHAINS, _TASKS = map(given, ("chains", "tasks"))
_BLOCKS = given("times.overlapped")
_LOOKUPS = Part("tasks.forward", "a task that needs nothing", _looks_up)
_SENDING = Part("times.transfer.on", "times.transfer.on", _sends)
_PERIOD = of_value("objective", "period")


_NO_STEADY_STATE = "no part of such a schedule repeats"
COMMON = (
    Refused(_BLOCKS, _CHAINS, _EITHER, "the partner of a pass may be on another path"),
    Refused(SEVERAL_LAYERS, _LOOKUPS, "1", "a lookup is of the whole stage, not of each of its layers"),
    Refused(given("times.fused"), _TASKS, "one of them, since tasks say what passes take",
            "a full backward is that of the tasks"),
    Refused(_BLOCKS, _TASKS, "one of them, since tasks say what passes take",
            "tasks of two passes overlap by themselves"),
    Refused(_SENDING, _BLOCKS, "one of them", "a block has one end, whichever of its passes is sent"),
    *(Refused(_PERIOD, one, _ENDS, _NO_STEADY_STATE) for one in (_CHAINS, _LOOKUPS)),
)  # fmt: skip


def table_of(features: Iterable[Feature]) -> tuple[Refused, ...]:
    """Return the excluded pairs of keys that every problem file may have, and those of these features."""
    return (*COMMON, *(row for feature in features for row in feature.refused))


REFUSED = table_of(FEATURES)
