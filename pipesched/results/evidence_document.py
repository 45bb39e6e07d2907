"""Evidence as the object in a schedule file, and read from it.

An object that this version does not write is kept unread: the file is accepted, and its bound is not verified.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from fractions import Fraction
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

import simplejson

from pipesched.errors import BadInput
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import Evidence, OfRelaxed, RelaxedBy, UnknownForm

# Beyond these a file holds no evidence that this tool wrote.
_MOST_ENTRIES, _MOST_DIGITS = 100_000, 60

_FORMS: dict[str, type[Any]] = {one.form: one for one in get_args(Evidence) if hasattr(one, "form")}
_RELAXATIONS: dict[str, type[Any]] = {one.form: one for one in get_args(RelaxedBy)}


def evidence_document(evidence: Evidence) -> dict[str, object]:
    """Return the object under `evidence` of a certificate in a schedule file.

    It has `form` and the fields of that class by name, fractions as exact text; evidence about a relaxed problem has
    those of the relaxation, and the argument under `kind` and `evidence`. An unknown form is returned as it was read.
    """
    if isinstance(evidence, UnknownForm):
        document: dict[str, object] = simplejson.loads(evidence.text, use_decimal=True)
        return document
    if isinstance(evidence, OfRelaxed):
        argument = {"kind": evidence.kind, "evidence": evidence_document(evidence.evidence)}
        return _document(evidence.relaxation) | argument
    return _document(evidence)


def _document(one: Any) -> dict[str, object]:
    """Return the form and the fields of evidence or of a relaxation."""
    return {"form": one.form} | {each.name: _written(getattr(one, each.name)) for each in fields(one)}


def _written(value: object) -> object:
    if isinstance(value, tuple):
        return [_written(one) for one in value]
    return str(value) if isinstance(value, Fraction) else value


def evidence_from(document: object) -> Evidence:
    """Read evidence from an object of `evidence_document`; `UnknownForm` for anything else."""
    try:
        return _known(document)
    except BadInput as error:
        return unknown_form(document, str(error))


def _known(document: object) -> Evidence:
    """Read evidence; `BadInput` names the first wrong key of a known form, other forms become `UnknownForm`."""
    form = document.get("form") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(form, str):
        raise BadInput(f"form: found {str(form)[:40]}; allowed: the name of a form of evidence, such as device")
    if form in _RELAXATIONS:
        return _of_relaxed(document, form)
    if form not in _FORMS:
        return unknown_form(document)
    if _FORMS[form] is Diagram and "device" not in document:
        raise BadInput("device: found nothing, as in files of older versions; allowed: a device, or null")
    evidence: Evidence = _with_fields(_FORMS[form], document)
    return evidence


def _of_relaxed(document: dict[str, Any], form: str) -> OfRelaxed:
    """Read evidence about a relaxed problem: the fields of the relaxation, and the evidence of the argument.

    `form` is the name of the relaxation's form; `UnknownForm` of the evidence within stays as such. `BadInput` for
    relaxations in another order than they are applied in, or with wrong numbers.
    """
    own = {name: value for name, value in document.items() if name not in ("kind", "evidence")}
    relaxation, inner = _with_fields(_RELAXATIONS[form], own), document.get("evidence")
    for each in fields(relaxation):
        numbers = getattr(relaxation, each.name)
        if not numbers or any(one < 0 for one in _flat(numbers)):
            raise BadInput(_wrong(each.name, document[each.name]))
    within = inner.get("form") if isinstance(inner, dict) else None
    order = [*_RELAXATIONS]
    if within in order[: order.index(form) + 1]:
        raise BadInput(f"evidence: found {within} within {form}; allowed: evidence of another argument")
    return OfRelaxed(relaxation, str(document.get("kind")), evidence_from(inner))


def _flat(numbers: object) -> Iterator[Any]:
    """Yield the numbers of nested tuples, without None."""
    if isinstance(numbers, tuple):
        for one in numbers:
            yield from _flat(one)
    elif numbers is not None:
        yield numbers


def _with_fields(kind: type[Any], document: dict[str, Any]) -> Any:
    """Read an object of the class `kind` from its fields in `document`.

    `BadInput` names the first one that is wrong.
    """
    found, annotations = {}, get_type_hints(kind)
    annotations.pop("form")
    for name in document.keys() - annotations.keys() - {"form"}:
        if document[name] not in (None, False, []):
            raise BadInput(f"{name}: found an option of another version; allowed: {', '.join(annotations)}")
    for name, default in ((each.name, each.default) for each in fields(kind)):
        # What is or is not so is not said in files of versions that did not know it.
        given = document.get(name, default if annotations[name] is bool and default is not MISSING else None)
        try:
            found[name] = _read(given, annotations[name])
        except ValueError:
            raise BadInput(_wrong(name, given)) from None
        if isinstance(found[name], Fraction) and not found[name]:
            raise BadInput(_wrong(name, given))
    return kind(**found)


def _wrong(name: str, given: object) -> str:
    return f"{name}: found {str(given)[:40]}; allowed: what the tool writes there"


def unknown_form(document: object, mistake: str | None = None) -> UnknownForm:
    """Return evidence that this version cannot read, since another version wrote it or it was changed.

    `mistake` says what is wrong with it; None for evidence of another version.
    """
    form = document.get("form") if isinstance(document, dict) else None
    return UnknownForm(str(form), simplejson.dumps(document, use_decimal=True), mistake)


def _read(value: object, annotation: Any) -> object:
    """Read a value of the type `annotation`, lists as tuples; ValueError if it is of another type."""
    choices = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    if type(value) in (bool, str, NoneType) and type(value) in choices:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and int in choices and abs(value) < 10**_MOST_DIGITS:
        return value
    if isinstance(value, int | str) and not isinstance(value, bool) and Fraction in choices:
        return _fraction(str(value))
    if isinstance(value, list) and len(value) <= _MOST_ENTRIES:
        for kinds in map(get_args, choices):
            own = kinds[:1] * len(value) if kinds[1:] == (...,) else kinds
            if kinds and len(own) == len(value):
                return tuple(_read(one, kind) for one, kind in zip(value, own, strict=True))
    raise ValueError(value)


def _fraction(text: str) -> Fraction:
    """Read a fraction as the tool writes it; ValueError for any other text."""
    digits = text.replace("/", "", 1)
    if not digits.isascii() or not digits.isdigit() or len(digits) > 2 * _MOST_DIGITS:
        raise ValueError(text)
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError(text) from None
