"""Evidence as the object in a schedule file, and read from it.

An object that this version does not write is kept unread: the file is accepted, and its bound is not verified.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from fractions import Fraction
from types import NoneType
from typing import Any, get_args, get_type_hints

import simplejson

from pipesched.errors import BadInput
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import Evidence, MemoryOfPartners, TasksAsStages, UnknownForm, WithMoreMemory

# Beyond these a file holds no evidence that this tool wrote.
_MOST_ENTRIES, _MOST_DIGITS = 100_000, 60

_MORE_MEMORY, _PARTNERS, _TASKS = "more memory", MemoryOfPartners.form, TasksAsStages.form
_FORMS: dict[str, type[Any]] = {one.form: one for one in get_args(Evidence) if hasattr(one, "form")}


def evidence_document(evidence: Evidence) -> dict[str, object]:
    """Return the object under `evidence` of a certificate in a schedule file."""
    if isinstance(evidence, WithMoreMemory):
        capacities = [None if one is None else str(one) for one in evidence.capacities]
        inner = evidence_document(evidence.evidence)
        return {"form": _MORE_MEMORY, "capacities": capacities, "kind": evidence.kind, "evidence": inner}
    if isinstance(evidence, MemoryOfPartners):
        inner = evidence_document(evidence.evidence)
        return {"form": _PARTNERS, "devices": [*evidence.devices], "kind": evidence.kind, "evidence": inner}
    if isinstance(evidence, TasksAsStages):
        rows, inner = [list(row) for row in evidence.stages], evidence_document(evidence.evidence)
        return {"form": _TASKS, "stages": rows, "kind": evidence.kind, "evidence": inner}
    if isinstance(evidence, UnknownForm):
        document: dict[str, object] = simplejson.loads(evidence.text, use_decimal=True)
        return document
    values = {each.name: getattr(evidence, each.name) for each in fields(evidence)}
    return {"form": evidence.form} | {name: _written(value) for name, value in values.items()}


def _written(value: object) -> object:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        return [one if isinstance(one, int) else str(one) for one in value]
    return value


def evidence_from(document: object) -> Evidence:
    """Read evidence from an object of `evidence_document`; `UnknownForm` for anything else."""
    try:
        return _known(document)
    except BadInput as error:
        return unknown_form(document, str(error))


def _known(document: object) -> Evidence:
    """Read evidence of a known form; `BadInput` names the first key that is wrong."""
    form = document.get("form") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(form, str):
        raise BadInput(f"form: found {str(form)[:40]}; allowed: the name of a form of evidence, such as device")
    if form == _MORE_MEMORY:
        return _with_more_memory(document)
    if form == _PARTNERS:
        return _of_partners(document)
    if form == _TASKS:
        return _tasks_as_stages(document)
    if form not in _FORMS:
        return unknown_form(document)
    kind = _FORMS[form]
    if kind is Diagram and "device" not in document:
        raise BadInput("device: found nothing, as in files of older versions; allowed: a device, or null")
    found, annotations = {}, get_type_hints(kind)
    for name in document.keys() - annotations.keys() - {"form"}:
        if document[name] not in (None, False, []):
            raise BadInput(f"{name}: found an option of another version; allowed: {', '.join(annotations)}")
    for name, default in ((each.name, each.default) for each in fields(kind)):
        annotation = annotations[name]
        choices = get_args(annotation) if NoneType in get_args(annotation) else (annotation,)
        # What is or is not so is not said in files of versions that did not know it.
        given = document.get(name, default if annotation is bool and default is not MISSING else None)
        value = _read(given, choices)
        if value is None and NoneType not in choices:
            raise BadInput(f"{name}: found {str(given)[:40]}; allowed: what the tool writes there")
        found[name] = value
    evidence: Evidence = kind(**found)
    return evidence


def unknown_form(document: object, mistake: str | None = None) -> UnknownForm:
    """Return evidence that another version wrote, or that was changed, as `UnknownForm`."""
    form = document.get("form") if isinstance(document, dict) else None
    return UnknownForm(str(form), simplejson.dumps(document, use_decimal=True), mistake)


def _with_more_memory(document: dict[str, Any]) -> WithMoreMemory:
    given, inner = document.get("capacities"), document.get("evidence")
    listed = given if isinstance(given, list) else []
    capacities = [None if one is None else _fraction(str(one)) for one in listed]
    if not capacities or any((one is None) is not (own is None) for one, own in zip(listed, capacities, strict=True)):
        raise BadInput(f"capacities: found {str(given)[:40]}; allowed: a number or null for each device")
    if isinstance(inner, dict) and inner.get("form") == _MORE_MEMORY:
        raise BadInput("evidence: found evidence with more memory within evidence with more memory; allowed: another")
    return WithMoreMemory(tuple(capacities), str(document.get("kind")), evidence_from(inner))


def _of_partners(document: dict[str, Any]) -> MemoryOfPartners:
    given, inner = document.get("devices"), document.get("evidence")
    devices = [_read(one, (int,)) for one in given] if isinstance(given, list) and len(given) <= _MOST_ENTRIES else []
    known = [one for one in devices if isinstance(one, int)]
    if not known or len(known) < len(devices):
        raise BadInput(f"devices: found {str(given)[:40]}; allowed: a list of devices")
    if isinstance(inner, dict) and inner.get("form") in (_MORE_MEMORY, _PARTNERS):
        raise BadInput(f"evidence: found {inner['form']} within {_PARTNERS}; allowed: evidence of another argument")
    return MemoryOfPartners(tuple(known), str(document.get("kind")), evidence_from(inner))


def _tasks_as_stages(document: dict[str, Any]) -> TasksAsStages:
    given, inner = document.get("stages"), document.get("evidence")
    listed = given if isinstance(given, list) and len(given) <= _MOST_ENTRIES else []
    rows = [_read_row(row) for row in listed]
    known = [row for row in rows if row is not None]
    if not known or len(known) < len(rows):
        raise BadInput(f"stages: found {str(given)[:40]}; allowed: a stage and numbers of tasks or null for each")
    if isinstance(inner, dict) and inner.get("form") in (_MORE_MEMORY, _PARTNERS, _TASKS):
        raise BadInput(f"evidence: found {inner['form']} within {_TASKS}; allowed: evidence of another argument")
    return TasksAsStages(tuple(known), str(document.get("kind")), evidence_from(inner))


def _read_row(row: object) -> tuple[int, int | None, int | None, int | None] | None:
    """Read a row of tasks; None for anything else."""
    if not isinstance(row, list) or len(row) != 4 or row[0] is None:
        return None
    if any(one is not None and (_read(one, (int,)) is None or one < 0) for one in row):
        return None
    return row[0], row[1], row[2], row[3]


def _read(value: object, choices: tuple[Any, ...]) -> object:
    """Read a value as one of these types; None if it is none of them."""
    if isinstance(value, bool):
        return value if bool in choices else None
    if isinstance(value, int):
        return value if int in choices and abs(value) < 10**_MOST_DIGITS else None
    if isinstance(value, str):
        number = _fraction(value) if Fraction in choices else None
        return value if str in choices else number or None
    return _read_list(value, {get_args(choice)[0] for choice in choices if get_args(choice)})


def _read_list(value: object, types: set[Any]) -> tuple[object, ...] | None:
    """Read a list whose entries are of these types; None for anything else."""
    if not types or not isinstance(value, list) or len(value) > _MOST_ENTRIES:
        return None
    if Fraction in types:
        numbers = [_fraction(str(one)) for one in value]
        return None if None in numbers else tuple(numbers)
    whole = all(isinstance(one, int) and not isinstance(one, bool) and abs(one) < 10**_MOST_DIGITS for one in value)
    return tuple(value) if whole else None


def _fraction(text: str) -> Fraction | None:
    digits = text.replace("/", "", 1)
    if not digits.isascii() or not digits.isdigit() or len(digits) > 2 * _MOST_DIGITS:
        return None
    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None
    return number
