"""Devices found by name in the table or read from the user's own hardware file, and the text of such a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, create_model

from pipesched.errors import BadInput, did_you_mean
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.fields import field_types
from pipesched.files.fields.data_bandwidth import DataBandwidth
from pipesched.files.fields.field import field, finite_number, whole_number
from pipesched.files.fields.section import Section
from pipesched.files.file_names import stem_of
from pipesched.files.model_configs.hardware_table import DEVICES, LAUNCHES, SHARES, Device
from pipesched.files.schema_errors import parse_model
from pipesched.files.text_file import read_text
from pipesched.layers.derived.data_links import ByNodes


class NamedDevice(NamedTuple):
    """A device with the name by which it was found, or which its hardware file gives."""

    name: str
    device: Device


def find_device(text: str) -> NamedDevice:
    """Return the device of this name, of the only name that begins so, or of a hardware file at this path.

    `BadInput` if there is none, several names begin so, or the file is wrong.
    """
    found = [name for name in DEVICES if name == text] or [name for name in DEVICES if name.startswith(text.lower())]
    if len(found) == 1:
        return NamedDevice(found[0], DEVICES[found[0]])
    if Path(text).suffix in (".yaml", ".yml", ".json") or Path(text).is_file():
        return _read(Path(text))
    if found:
        raise BadInput(
            f"--hardware: found {text!r}, which may be {' or '.join(found)}; allowed: one of them, or a "
            "hardware file (.yaml)"
        )
    known = ", ".join(DEVICES)
    near = did_you_mean(text, DEVICES)
    raise BadInput(f"--hardware: found {text!r}; allowed: one of {known}, or a hardware file (.yaml){near}")


def device_text(name: str, device: Device, comments: Mapping[str, str]) -> str:
    """Return the text of a hardware file with all numbers of a device, those that are None left out.

    `comments` are added to the lines of their keys, the names of fields of `Device`.
    """
    lines = [f"name: {json.dumps(name)}"]
    for one in fields(Device):
        value = getattr(device, one.name)
        if value is not None:
            text = f"{one.name}: {value if isinstance(value, ByNodes) else json.dumps(value)}"
            lines.append(f"{text:<27} # {comments[one.name]}" if one.name in comments else text)
    return "\n".join(lines) + "\n"


# Keys of the section `hardware` of a plan file that no device has by itself.
_OF_PLANS = ("dispatch", "hidden_share", "data_hidden_share", "gather_hidden_share", "reserved")


class Rated(NamedTuple):
    """A device with some of its numbers replaced; `of_plans` has the replacements that only a plan file has keys for.

    They are values by key of the section `hardware`.
    """

    device: Device
    of_plans: dict[str, object]


def with_rates(device: Device, rates: Mapping[str, object]) -> Rated:
    """Return the device with numbers replaced by `rates`.

    These are values by key of a hardware file or of a plan file's `hardware`, in the units of the keys. `BadInput` has
    a line for each mistake; keys that only plan files have are not checked.
    """
    form, mistakes, _ = parse_model(_File, {key: value for key, value in rates.items() if key not in _OF_PLANS}, ())
    if mistakes:
        raise BadInput(*(f"--rate: {mistake}" for mistake in mistakes))
    return Rated(replace(device, **_given(form)), {key: rates[key] for key in _OF_PLANS if key in rates})


def _read(path: Path) -> NamedDevice:
    document = read_yaml(read_text(path), str(path))
    like = document.get("like") if isinstance(document, dict) else None
    required = () if like is not None else _REQUIRED
    try:
        form, mistakes, _ = parse_model(_File, document, required)
    except BadInput as error:
        raise BadInput(*(f"{path}: {mistake}" for mistake in error.mistakes)) from None
    if like is not None and like not in DEVICES:
        mistakes.append(f"like: found {like!r}; allowed: one of {', '.join(DEVICES)}{did_you_mean(str(like), DEVICES)}")
    if mistakes:
        raise BadInput(*(f"{path}: {mistake}" for mistake in mistakes))
    given = {"source": path.name, **_given(form)}
    device = Device(**given) if like is None else replace(DEVICES[str(like)], **given)
    return NamedDevice(getattr(form, "name", None) or stem_of(path), device)


def _given(form: Section) -> dict[str, Any]:
    given = {one.name: getattr(form, one.name) for one in fields(Device)}
    return {
        name: float(value) if isinstance(value, Fraction) else value
        for name, value in given.items()
        if value is not None
    }


def _number(least_excluded: float, most: float) -> Any:
    def accept(value: object) -> float | None:
        number = finite_number(value)
        return float(number) if number is not None and least_excluded < number <= most else None

    allowed = f"a number above {least_excluded:g}" + (f" and up to {most:g}" if most < 1e9 else "")
    return Annotated[float, field(allowed, accept, {"type": "number"})]


def _type(name: str) -> Any:
    if name == "source":
        return field_types.Text
    if name in ("multiprocessors", "node"):
        return Annotated[int, field("a whole number of at least 1", whole_number(1), {"type": "integer"})]
    if name == "data_bandwidth":
        return DataBandwidth
    if name in LAUNCHES:
        return _number(-1e-12, 1e9)
    return _number(0, 1 if name in SHARES else 1e9)


_File = create_model(
    "_File",
    __base__=Section,
    name=(field_types.Text | None, Field(None)),
    like=(field_types.Text | None, Field(None)),
    **{one.name: (_type(one.name) | None, Field(None)) for one in fields(Device)},  # type: ignore[call-overload]
)
_REQUIRED = tuple(one.name for one in fields(Device) if one.default is MISSING and one.name != "source")
