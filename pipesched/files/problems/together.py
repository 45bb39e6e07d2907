"""What two features of a problem file may not do together, in one table that the reader asks and a page lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipesched.files.fields.field import as_list, whole_number
from pipesched.files.fields.together import Feature, Refused, at, given

_EITHER = "one of the two"
_ENDS = "makespan or span"


def _of_pieces(document: Mapping[str, Any]) -> bool:
    return (whole_number(1)(document.get("sequence_chunks")) or 1) > 1


def _unequal(document: Mapping[str, Any]) -> bool:
    """Factors that are not all 1, which change nothing."""
    return any(one != 1 for one in as_list(document.get("microbatch_scale")) or ())


def _looks_up(document: Mapping[str, Any]) -> bool:
    tasks = as_list(at(document, "tasks.forward")) or ()
    return any(isinstance(task, Mapping) and task.get("needs") == "nothing" for task in tasks)


def _repeats(document: Mapping[str, Any]) -> bool:
    """Tasks of several layers."""
    layers = at(document, "tasks.layers")
    return any(one not in (None, 1) for one in as_list(layers) or [layers])


def _sends(document: Mapping[str, Any]) -> bool:
    """Transfers of passes of one task; tasks have other refusals."""
    return at(document, "times.transfer.on") is not None and document.get("tasks") is None


_CHAINS, _PIPELINES, _TASKS, _MODULES = map(given, ("chains", "pipelines", "tasks", "modules"))
_BLOCKS, _PARAMETERS = given("times.overlapped"), given("parameters")
_OFFLOAD, _RECOMPUTE = given("memory.offload"), given("memory.recompute")
_PIECES = Feature("sequence_chunks", "sequence_chunks", _of_pieces)
_UNEQUAL = Feature("microbatch_scale", "microbatch_scale", _unequal)
_LOOKUPS = Feature("tasks.forward", "a task that needs nothing", _looks_up)
_SENDING = Feature("times.transfer.on", "times.transfer.on", _sends)


def _of_value(key: str, value: str) -> Feature:
    return Feature(key, f"{key} {value}", lambda document: document.get(key) == value, value)


def _differ_both_ways(document: Mapping[str, Any]) -> bool:
    """Transfers by pair of devices that take other times back."""
    own = at(document, "times.transfer.time")
    rows = [as_list(row) or [] for row in as_list(at(document, "times.transfer") if own is None else own) or ()]
    places = range(len(rows))
    square = all(len(row) == len(rows) for row in rows)
    return square and any(rows[a][b] != rows[b][a] for a in places for b in places)


_TWO_TIMES = Feature("times.transfer", "transfers of two times between two devices", _differ_both_ways)
_LAYERS = Feature("tasks.layers", "tasks.layers", _repeats)
_SPAN, _PERIOD, _BOTH_WAYS = (
    _of_value("objective", "span"),
    _of_value("objective", "period"),
    _of_value("placement", "bidirectional"),
)


_ONE_CHAIN = "micro-batches that take ways of their own through the stages are chains already"
_NO_STEADY_STATE = "no part of such a schedule repeats"
_PAIR = "a block has one time, which does not say what it takes of two micro-batches that differ"
REFUSED = (
    *(Refused(one, _PIECES, _EITHER, _ONE_CHAIN) for one in (_CHAINS, _PIPELINES, _UNEQUAL)),
    Refused(_TASKS, _PIECES, _EITHER, "times of tasks are those of a whole micro-batch"),
    Refused(_BLOCKS, _PIECES, _EITHER, _PAIR),
    *(Refused(one, _MODULES, _EITHER, _ONE_CHAIN) for one in (_CHAINS, _PIPELINES, _PIECES, _UNEQUAL)),
    Refused(_TASKS, _MODULES, _EITHER, "passes of modules are one task each"),
    Refused(_BLOCKS, _MODULES, _EITHER, "which passes of a module may be in a block has no key"),
    Refused(_BOTH_WAYS, _MODULES, "placements that hold each stage once", "a module feeds one copy of a stage"),
    Refused(_SENDING, _MODULES, "transfers that occupy no stream", "transfers of modules occupy none"),
    Refused(_PIPELINES, _CHAINS, "one of the two", "pipelines are chains"),
    *(Refused(_UNEQUAL, one, _EITHER, _ONE_CHAIN) for one in (_CHAINS, _PIPELINES)),
    *(Refused(_BLOCKS, one, _EITHER, "the partner of a pass may be on another way") for one in (_CHAINS, _PIPELINES)),
    Refused(_BLOCKS, _UNEQUAL, "one of the two", _PAIR),
    Refused(_UNEQUAL, _TWO_TIMES, "one both ways", "micro-batches are chains with one time for both ways"),
    Refused(_BLOCKS, _PARAMETERS, _EITHER, "blocks are of passes on one stream, with nothing behind them"),
    Refused(_UNEQUAL, _PARAMETERS, _EITHER, "what runs once an iteration belongs to no micro-batch"),
    *(Refused(_BLOCKS, one, "one of them", "the time of a block with a copy or a recomputation inside is not given")
      for one in (_OFFLOAD, _RECOMPUTE)),
    Refused(_LAYERS, _LOOKUPS, "1", "a lookup is of the whole stage, not of each of its layers"),
    Refused(given("times.fused"), _TASKS, "one of them, since tasks say what passes take",
            "a full backward is that of the tasks"),
    Refused(_BLOCKS, _TASKS, "one of them, since tasks say what passes take",
            "tasks of two passes overlap by themselves"),
    Refused(_SENDING, _BLOCKS, "one of them", "a block has one end, whichever of its passes is sent"),
    *(Refused(_PERIOD, one, _ENDS, _NO_STEADY_STATE) for one in (_CHAINS, _PIPELINES, _PIECES, _MODULES, _LOOKUPS)),
    Refused(_PERIOD, _UNEQUAL, "makespan or span, since unequal micro-batches have no steady state", _NO_STEADY_STATE),
    *(Refused(_PERIOD, one, _ENDS, "the periodic model has no copies and no recomputation")
      for one in (_OFFLOAD, _RECOMPUTE)),
    Refused(_SPAN, _PARAMETERS, "iteration", "with overlap_next that is the span"),
    Refused(_PERIOD, _PARAMETERS, "iteration", "what runs once an iteration does not repeat with micro-batches"),
)  # fmt: skip
