"""The key `sequence_chunks`: every micro-batch is cut into pieces, such as parts of a sequence, whose costs may differ.

The file stands for one problem for each piece; their join is the problem of all pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from pipesched.files.exact_numbers import as_number, as_numbers
from pipesched.files.features.catalogue import (
    FEATURES,
    Column,
    Columns,
    Feature,
    FeatureKeys,
    ProblemForm,
    SeveralProblems,
)
from pipesched.files.fields import field_types
from pipesched.files.fields.field import NUMBER, as_list, finite_number, whole_number
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Refused, given, more_than_one, of_value
from pipesched.files.schema_errors import shown
from pipesched.problem.chains.sequence_chunks import in_sequence_chunks, pieces_of
from pipesched.problem.kv_cache import KvCache
from pipesched.problem.problem import Problem

_KEY = "sequence_chunks"
# The column of the memory that a piece keeps for later ones.
_KEPT = (_KEY, "kept_for_later")
# The keys whose values may differ from piece to piece.
_VALUES = {
    "times": ("forward", "backward", "weight", "fused"),
    "memory": ("activation", "freed_by_backward", "kept_for_later"),
    "memory.offload": ("out", "in", "amount"),
}
_GROWING = ("first", "each_earlier")
# More chains than this are of no use, and take long to read.
_MOST_PIECES = 1024


class Keys(FeatureKeys):
    """The key `sequence_chunks`: the number of pieces of each micro-batch."""

    sequence_chunks: field_types.Count | None = Field(
        None, description="pieces of each micro-batch, in order; times are then those of a piece; default: one"
    )


class MemoryKeys(Section):
    """The key `memory.kept_for_later`: memory that a piece keeps for the pieces after it."""

    kept_for_later: field_types.Numbers | None = Field(
        None, description="with sequence_chunks: taken besides when F starts, until the first piece's backward ends"
    )


def _forms(number: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a value that may differ by piece: a number, first and growth, or lists of these."""
    grows: dict[str, Any] = {
        "type": "object",
        "properties": {_GROWING[0]: number, _GROWING[1]: field_types.SIGNED},
        "required": list(_GROWING),
        "additionalProperties": False,
    }
    of_stage = {"anyOf": [number, grows, {"type": "array", "items": number, "minItems": 1}]}
    return {"anyOf": [number, grows, {"type": "array", "items": of_stage, "minItems": 1}]}


def _amend(schema: dict[str, Any]) -> None:
    """Extend the JSON Schema of a file, in place: keys whose values may differ by piece accept the forms for that."""
    for path, keys in _VALUES.items():
        section = schema
        for name in path.split("."):
            references = (one.get("$ref", "") for one in section["properties"][name]["anyOf"])
            section = schema["$defs"][next(filter(None, references)).rpartition("/")[2]]
        for key in keys:
            forms = section["properties"][key]["anyOf"]
            optional = [one for one in forms if one == {"type": "null"}]
            number = field_types.SIGNED if key == "freed_by_backward" else NUMBER
            section["properties"][key]["anyOf"] = _forms(number)["anyOf"] + optional


class _NotOfPiecesError(ValueError):
    """A value that has none of the forms allowed for pieces; its text lists those forms."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"a number, {_GROWING[0]} and {_GROWING[1]}, or a list of {count} numbers, one per piece; or a list of "
            "these, one per stage"
        )


def _documents(document: Mapping[str, Any]) -> tuple[list[object], list[str]]:
    """Return a problem document for each piece, as if a micro-batch were this piece alone, and the mistakes found.

    If the number of pieces itself is wrong, the only document is one that hides what depends on it.
    """
    count = whole_number(1)(document[_KEY])
    if count is None or count > _MOST_PIECES:
        # How many values there should be is then unknown.
        text = f"{_KEY}: found {shown(document[_KEY])}; allowed: 1 to {_MOST_PIECES}"
        valid = {"forward": 1, "backward": 1}
        return [dict(document) | {_KEY: None, "times": valid, "memory": None}], [text]
    found = list[str]()
    pieces: list[dict[str, Any]] = [dict(document) for _ in range(count)]
    for path, keys in _VALUES.items():
        for number, piece in enumerate(pieces):
            section = piece
            for name in path.split("."):
                section = _section(section, name)
            for key in (key for key in keys if section.get(key) is not None):
                try:
                    section[key] = _of_piece(section[key], number, count)
                except _NotOfPiecesError as allowed:
                    found.append(f"{path}.{key}: found {shown(section[key])}; allowed: {allowed}")
                    section[key] = 0
    return list(pieces), list(dict.fromkeys(found))


def _section(section: dict[str, Any], key: str) -> dict[str, Any]:
    """Replace the section `key` of a piece's document by a copy that can be changed, and return the copy.

    An empty section where the document has none.
    """
    if not isinstance(section.get(key), Mapping):
        return {}
    found: dict[str, Any] = dict(section[key])
    section[key] = found
    return found


def _of_piece(value: object, piece: int, count: int) -> object:
    """Return the value of piece `piece`, from 0, of `count`: a number, or a list with one number for each stage.

    `_NotOfPiecesError` for a value in none of the forms allowed.
    """
    entries = as_list(value)
    if entries is not None and any(isinstance(entry, Mapping) or as_list(entry) is not None for entry in entries):
        return [_of_stage(entry, piece, count) for entry in entries]
    return _of_stage(value, piece, count)


def _of_stage(value: object, piece: int, count: int) -> object:
    entries = as_list(value)
    if entries is not None:
        if len(entries) != count:
            raise _NotOfPiecesError(count)
        return entries[piece]
    if not isinstance(value, Mapping):
        return value
    first, more = (finite_number(value.get(key)) for key in _GROWING)
    if set(value) != set(_GROWING) or first is None or more is None:
        raise _NotOfPiecesError(count)
    value = first + piece * more
    return value if isinstance(as_number(value), str) else as_number(value)


def _mistakes(form: ProblemForm, _stages: int | None, _wrong: WrongPaths) -> Iterator[str]:
    """Yield a mistake where memory is kept for later pieces but micro-batches are not cut into pieces."""
    if (form.sequence_chunks or 1) == 1 and form.memory and form.memory.kept_for_later:
        yield "memory.kept_for_later: found without sequence_chunks; allowed: with pieces that others wait for"


def _memory(form: ProblemForm) -> Iterator[Column]:
    """Yield the memory kept for later pieces as a column: name, and one number or one for each stage."""
    if form.memory and form.memory.kept_for_later is not None:
        yield _KEPT, form.memory.kept_for_later


def _stages(_form: ProblemForm, amounts: Columns, _count: int) -> dict[str, list[KvCache]]:
    return {"kv_cache": [KvCache(taken) for taken in amounts[_KEPT]]} if _KEPT in amounts else {}


def _per_stage(form: ProblemForm) -> Iterator[tuple[str, object]]:
    if form.memory:
        yield "memory.kept_for_later", form.memory.kept_for_later


def _written(problem: Problem) -> dict[str, object]:
    """Return the key `memory.kept_for_later` of one piece's problem; empty where nothing is kept."""
    kept = [stage.kv_cache.taken for stage in problem.stages]
    return {"memory": {"kept_for_later": as_numbers(kept, problem.resolution)}} if any(kept) else {}


def _document(problem: Problem, write: Callable[[Problem], dict[str, Any]]) -> dict[str, Any]:
    """Return the document of a problem with pieces: the first piece's, with the key `sequence_chunks`.

    Costs that differ by piece or by stage become lists by stage of lists by piece; the others stay numbers.
    """
    pieces = [write(piece) for piece in pieces_of(problem)]
    document = {**pieces[0]}
    stages = problem.placement.stages // len(pieces)
    for path, values in _VALUES.items():
        sections = [_at(piece, path) for piece in pieces]
        merged = {
            key: _in_common([section.get(key, 0) for section in sections], stages)
            for key in values
            if any(key in section for section in sections)
        }
        if merged:
            _at(document, path).update(merged)
    keys = [*document]
    first = keys.index("time_unit")
    return {key: document[key] for key in keys[:first]} | {_KEY: len(pieces)} | document


def _at(document: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the section at a path of a document; an empty one where there is none."""
    for key in path.split("."):
        document = document.get(key, {})
    return document


def _in_common(values: Sequence[Any], stages: int) -> object:
    """Return values by piece as one value: a number where all are equal, else a list by stage of lists by piece.

    `stages` is the number of stages of one piece; a value may be a number for all of them.
    """
    if not any(isinstance(value, list) for value in values) and len(set(values)) == 1:
        return values[0]
    columns = [value if isinstance(value, list) else [value] * stages for value in values]
    return [list(row) for row in zip(*columns, strict=True)]


_OWN, _EITHER = more_than_one(_KEY), "one of the two"
_ONE_CHAIN = "such micro-batches are chains already"
_PAIR = "a block has one time for all micro-batches"
_REFUSED = (
    Refused(given("chains"), _OWN, _EITHER, _ONE_CHAIN),
    Refused(given("tasks"), _OWN, _EITHER, "times of tasks are those of a whole micro-batch"),
    Refused(given("times.overlapped"), _OWN, _EITHER, _PAIR),
    Refused(_OWN, given("modules"), _EITHER, _ONE_CHAIN),
    Refused(of_value("objective", "period"), _OWN, "makespan or span", "no part of such a schedule repeats"),
)

FEATURES.register(
    Feature(
        name=_KEY,
        keys=Keys,
        sections={"memory": MemoryKeys},
        several=SeveralProblems(_documents, in_sequence_chunks, _document),
        mistakes=_mistakes,
        memory=_memory,
        stages=_stages,
        per_stage=_per_stage,
        written=_written,
        amend_schema=_amend,
        refused=_REFUSED,
        with_units={"memory.kept_for_later": QuantityKind.PART},
        present_in=lambda problem: problem.chain_arcs.pieces > 1,
        not_expressible="the micro-batches are several pieces, and this format is for whole ones",
        runs_in_torch=False,
    )
)
