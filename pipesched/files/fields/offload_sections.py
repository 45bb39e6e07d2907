"""The keys `offload`, `recompute` and `decide` of the section `memory`, and the values that they accept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any, NamedTuple

from pydantic import Field, create_model

from pipesched.files.fields.field import (
    FINITE,
    NUMBER,
    POSITIVE,
    as_list,
    at_least,
    field,
    one_or_list,
    or_list,
    whole_number,
)
from pipesched.files.fields.field_types import NAME, Name, Numbers, task_name
from pipesched.files.fields.section import Section
from pipesched.problem.quantities import DeviceId

HOST = "host"
FREE, NEVER, ALWAYS = DECISIONS = ("free", "never", "always")

# Devices that share something, in groups.
Groups = tuple[tuple[DeviceId, ...], ...]


class CopyStream(NamedTuple):
    """The stream that runs copies: devices of one of `groups` share it, every other device has one of its own."""

    stream: str
    groups: Groups = ()


class HostLimit(NamedTuple):
    """The capacity of host memory: one number for each host, or a list by device, in the file's unit.

    Devices of one of `groups` share a host, every other device has one of its own.
    """

    capacity: Fraction | list[Fraction]
    groups: Groups = ()


def _groups(value: object) -> Groups | None:
    """Return a list of devices, or a list of such lists, as groups.

    None if one is empty, or a device appears twice or is none.
    """
    rows = as_list(value)
    if rows and all(as_list(row) is None for row in rows):
        rows = [rows]
    found = [[whole_number(0)(device) for device in as_list(row) or ()] for row in rows or ()]
    devices = [device for row in found for device in row]
    if not found or None in devices or not all(found) or len(set(devices)) < len(devices):
        return None
    return tuple(tuple(sorted(device for device in row if device is not None)) for row in found)


def _shared(value: object, key: str, accept: Callable[[object], Any]) -> tuple[Any, Groups] | None:
    """Return (value, groups) of a mapping with exactly the keys `key` and `devices`, its value converted by `accept`.

    None for anything else.
    """
    if not isinstance(value, Mapping) or set(value) != {key, "devices"}:
        return None
    one, groups = accept(value[key]), _groups(value["devices"])
    return None if one is None or groups is None else (one, groups)


def _copy_stream(value: object) -> CopyStream | None:
    if isinstance(value, Mapping):
        shared = _shared(value, "stream", task_name)
        return None if shared is None else CopyStream(*shared)
    name = task_name(value)
    return None if name is None else CopyStream(name)


def _copy_streams(value: object) -> tuple[CopyStream, CopyStream] | None:
    entries = as_list(value)
    found = [_copy_stream(one) for one in ([value] if entries is None else entries)]
    known = [one for one in found if one is not None]
    return (known[0], known[-1]) if len(found) in (1, 2) and len(known) == len(found) else None


def _host_limit(value: object) -> HostLimit | None:
    if isinstance(value, Mapping):
        shared = _shared(value, "capacity", at_least(0))
        return None if shared is None else HostLimit(*shared)
    capacity = one_or_list(at_least(0), POSITIVE)(value)
    return None if capacity is None else HostLimit(capacity)


def _target(value: object) -> int | list[int | str] | None:
    """Return a device, or a list of devices and `host`, as it is; None for anything else."""
    entries = as_list(value)
    if entries is None:
        return whole_number(0)(value)
    found = [HOST if isinstance(one, str) and one == HOST else whole_number(0)(one) for one in entries]
    known = [one for one in found if one is not None]
    return known if found and len(known) == len(found) else None


def _decision(value: object) -> str | list[str] | None:
    entries = as_list(value)
    words = [value] if entries is None else entries
    if not words or not all(isinstance(word, str) and word in DECISIONS for word in words):
        return None
    return [str(word) for word in words] if entries is not None else str(value)


_DEVICES: dict[str, Any] = {
    "anyOf": [
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
        {"type": "array", "items": {"type": "array", "items": {"type": "integer", "minimum": 0}}, "minItems": 1},
    ]
}


def _with_devices(key: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a mapping with the required keys `key` and `devices`."""
    properties = {key: schema, "devices": _DEVICES}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_STREAM = {"anyOf": [NAME, _with_devices("stream", NAME)]}
CopyStreams = Annotated[
    tuple[CopyStream, CopyStream],
    field("one stream, or a list of two, for out and in; each a name, or stream and the devices that share it",
          _copy_streams,
          {"anyOf": [*_STREAM["anyOf"], {"type": "array", "items": _STREAM, "minItems": 1, "maxItems": 2}]})
]  # fmt: skip
HostCapacity = Annotated[
    HostLimit,
    field(f"a number of at least 0, a list, one per device, or capacity and devices, those that share it ({FINITE})",
          _host_limit, {"anyOf": [*or_list(NUMBER)["anyOf"], _with_devices("capacity", NUMBER)]})
]  # fmt: skip
_DEVICE = {"type": "integer", "minimum": 0}
Target = Annotated[
    int | list[int | str],
    field(f"a device, or a list, one per device: a device, or {HOST}", _target,
          {"anyOf": [_DEVICE, {"type": "array", "items": {"anyOf": [_DEVICE, {"const": HOST}]}, "minItems": 1}]})
]  # fmt: skip
DecisionField = Annotated[
    str | list[str],
    field(f"{', '.join(DECISIONS)}, or a list of them, one per stage", _decision, or_list({"enum": list(DECISIONS)})),
]


class OffloadKeys(Section):
    """The key `memory.offload`: copies of activations to host memory, or to that of other devices, and back."""

    required = ("out", "in")

    out: Numbers | None = Field(None, description="time of the copy out")
    on: CopyStreams | None = Field(None, description="the streams of the copies; default [d2h, h2d]")
    amount: Numbers | None = Field(None, description="the part of the activation that moves; default all of it")
    to: Target | None = Field(None, description="the device whose memory holds what moves; default the host")
    host_capacity: HostCapacity | None = Field(None, description="host memory; default unlimited")


# `in` is a word of Python's own, so no class body can hold it.
OffloadSection = create_model(
    "OffloadSection",
    __base__=OffloadKeys,
    __doc__=OffloadKeys.__doc__,
    **{"in": (Numbers | None, Field(None, description="time of the copy back"))},  # type: ignore[call-overload]
)


class RecomputeMode(Section):
    """A mode of recomputation: what a forward did not keep is computed again before the backward; needs no gradient."""

    required = ("name", "time")

    name: Name | None = Field(None, description="what it is called; each name once")
    time: Numbers | None = Field(None, description="its duration, on the first stream")
    keeps: Numbers | None = Field(None, description="of `activation`, what stays from the forward to it; default 0")


class DecideSection(Section):
    """The key `memory.decide`: offload and recomputation are free (the solver decides), never or always.

    One word for all stages, or a list with one for each.
    """

    offload: DecisionField | None = Field(None, description="default free")
    recompute: DecisionField | None = Field(None, description="default free")
