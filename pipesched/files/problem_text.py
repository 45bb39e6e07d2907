"""The text of a problem file in YAML, made from a problem."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal

from pipesched.files.problems.document import problem_document
from pipesched.problem.problem import Problem


def problem_text(problem: Problem) -> str:
    """Return the YAML text that `read_problem` reads as the same problem; ValueError if no file can express it."""
    return "\n".join(_lines(problem_document(problem), "")) + "\n"


def _lines(section: Mapping[str, object], indent: str) -> Iterator[str]:
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:"
            yield from _lines(value, indent + "  ")
        else:
            yield f"{indent}{key}: {_flow(value)}"


def _flow(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return json.dumps(value, ensure_ascii=False)
