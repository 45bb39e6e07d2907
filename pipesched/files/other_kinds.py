"""Kinds of files, recognised by their keys; one of another kind than a command reads is refused, with its command."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from pipesched.errors import BadInput


class FileKind(Enum):
    """A kind of file: `PROBLEM`, `PLAN`, `SCHEDULE`, `PLAN_ANSWER`, `STEPS` (measured), or `CONFIG` of a model.

    `VISUALISER` is the configuration of the older visualiser, which is read as a problem. The value of a kind is its
    description for messages, with the commands that read it.
    """

    PROBLEM = "a problem file, with times per stage (`pipesched solve` reads it)"
    PLAN = "a plan file, with layers (`pipesched plan` reads it)"
    SCHEDULE = "a schedule file (check, validate, export and plot read schedules)"
    PLAN_ANSWER = (
        "what `pipesched plan` found (`pipesched check` reads it; problem.yaml and schedule.json lie beside it)"
    )
    STEPS = "measured steps (`pipesched calibrate` reads them)"
    CONFIG = "a model's configuration (`pipesched layouts` and `pipesched new --from` read it)"
    VISUALISER = "the older visualiser's file (every command that takes problem files reads it)"


_WANTED = {FileKind.PROBLEM: "a problem file", FileKind.PLAN: "a plan file", FileKind.SCHEDULE: "a schedule file",
           FileKind.CONFIG: "a model's configuration"}  # fmt: skip
_FORMATS = {"pipesched-schedule": FileKind.SCHEDULE, "pipesched-plan": FileKind.PLAN_ANSWER}


def refuse_other_kinds(document: object, path: object, wanted: FileKind) -> FileKind | None:
    """Return the kind of a document: `wanted`, the older visualiser's, or None if its keys leave it open.

    Later checks judge the last two. Raises `BadInput` for every other kind. `wanted` is a problem, plan or schedule
    file, or a model's configuration; `path` names the file in the message.
    """
    found = kind_of(document)
    if found not in (None, wanted, FileKind.VISUALISER):
        raise BadInput(f"{path}: found {found.value}; allowed: {_WANTED[wanted]}")
    return found


def kind_of(document: object) -> FileKind | None:
    """Return the kind of file by the keys of a document, the most specific ones first; None if no key tells."""
    return _kind(document) if isinstance(document, dict) else None


def _kind(document: Mapping[str, Any]) -> FileKind | None:
    written = document.get("format")
    if written is not None:
        return _FORMATS.get(written) if isinstance(written, str) else None
    if {"model_type", "hidden_size"} & document.keys():
        return FileKind.CONFIG
    if isinstance(document.get("steps"), list):
        return FileKind.STEPS
    of_plans = isinstance(document.get("layers"), list) or isinstance(document.get("model"), dict)
    of_problems = isinstance(document.get("times"), dict) or isinstance(document.get("tasks"), dict)
    if of_plans and not of_problems:
        return FileKind.PLAN
    if {"num_stages", "num_batches"} & document.keys():
        return FileKind.VISUALISER
    return FileKind.PROBLEM if of_problems and not of_plans else None
