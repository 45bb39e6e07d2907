"""Evidence: what a check of a certificate needs in addition to the problem. All numbers are exact."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from types import NoneType
from typing import Any, get_args, get_type_hints

from pipesched.errors import BadInput
from pipesched.results.relaxation_rows import RowName, parse_row

# Beyond these a file holds no evidence that this tool wrote.
_MOST_ENTRIES, _MOST_DIGITS = 100_000, 60


@dataclass(frozen=True)
class OnDevice:
    """An argument about one device that needs nothing else."""

    device: int


@dataclass(frozen=True)
class OnStage:
    """An argument about the micro-batches on one stage."""

    stage: int


@dataclass(frozen=True)
class OnStream:
    """An argument about all tasks on one stream of a device."""

    device: int
    stream: str


@dataclass(frozen=True)
class AroundDevice:
    """The way to a device, its busy interval, and the way back; `owner` is the device whose span that is.

    `owner` is None for the makespan. `to_last_forward` says where the busy interval is taken to end: at the gradient of
    the micro-batch whose forward is the device's last, or at the device's last gradient.
    """

    device: int
    owner: int | None
    to_last_forward: bool


@dataclass(frozen=True)
class AroundStream:
    """The way to a stream of a device, its tasks, and the way back; `owner` is as in `AroundDevice`."""

    device: int
    stream: str
    owner: int | None


@dataclass(frozen=True)
class StreamTasks:
    """Those tasks of a stream that begin no sooner than `head` and leave no less than `tail`; `owner` is as above.

    Both are in ticks of `tick` units of the problem's time.
    """

    device: int
    stream: str
    owner: int | None
    tick: Fraction
    head: int
    tail: int


@dataclass(frozen=True)
class StreamMemory:
    """Until `head` memory lets only so many forwards begin; what runs later on a stream leaves no less than `tail`.

    All as in `StreamTasks`.
    """

    device: int
    stream: str
    owner: int | None
    tick: Fraction
    head: int
    tail: int


@dataclass(frozen=True)
class DeviceMultipliers:
    """Lagrangian multipliers of one device's time and memory, under which its micro-batches do not fit.

    They do not fit between the start and the end of device `owner` (or time 0 and the end, if None) if only `until`
    ticks lie between. A tick is `tick` units of the problem's time, and memory is counted in whole `memory_unit`s of
    the problem's memory. `running[i]` is the multiplier of running a pass at `instants[i]`, `holding[i]` that of
    holding a unit of memory.
    """

    device: int
    owner: int | None
    tick: Fraction
    until: int
    memory_unit: Fraction
    instants: tuple[int, ...]
    running: tuple[int, ...]
    holding: tuple[int, ...]


@dataclass(frozen=True)
class RowMultipliers:
    """Multipliers of rows of the linear relaxation, under which they add up to the bound.

    `multipliers[i]` of `denominator` is that of `rows[i]`, which is stated in ticks of `tick` units of the problem's
    time, and in `memory_unit`s of its memory.
    """

    tick: Fraction
    memory_unit: Fraction
    denominator: int
    rows: tuple[RowName, ...]
    multipliers: tuple[int, ...]


@dataclass(frozen=True)
class ModeMultipliers:
    """Multipliers of a period's rows: of each device's load and memory over time, and of blocks with each forward.

    Those of blocks, by stage, are in ticks of `tick` units of the problem's time.
    """

    tick: Fraction
    loads: tuple[Fraction, ...]
    memory: tuple[Fraction, ...]
    blocks: tuple[Fraction, ...]


@dataclass(frozen=True)
class ResourceWeights:
    """Weights of what a device has where activations may be offloaded or recomputed, at least one of them positive.

    Of its compute, then of its memory where that has a limit, then of the streams of copies in the order of their
    names.
    """

    device: int
    weights: tuple[int, ...]


@dataclass(frozen=True)
class Crossings:
    """The first stages of a chain, on which all orders of forwards and gradients are tried.

    Of those that have come equally far at most `width` are told apart.
    """

    stages: tuple[int, ...]
    width: int


@dataclass(frozen=True)
class Refutation:
    """CP-SAT searched the exact model of these devices to its end; all of them if None."""

    devices: tuple[int, ...] | None


@dataclass(frozen=True)
class WithMoreMemory:
    """Evidence of another argument (`kind`), about the problem with so much memory on each device, None: any amount.

    In the unit of the problem's memory, with all that is static.
    """

    capacities: tuple[Fraction | None, ...]
    kind: str
    evidence: Evidence


Evidence = (
    OnDevice
    | OnStage
    | OnStream
    | AroundDevice
    | AroundStream
    | StreamTasks
    | StreamMemory
    | DeviceMultipliers
    | RowMultipliers
    | ModeMultipliers
    | ResourceWeights
    | Crossings
    | Refutation
    | WithMoreMemory
)

_MORE_MEMORY = "more memory"
_FORMS: dict[str, type[Any]] = {
    "device": OnDevice,
    "stage": OnStage,
    "stream": OnStream,
    "around device": AroundDevice,
    "around stream": AroundStream,
    "tasks of a stream": StreamTasks,
    "memory of a stream": StreamMemory,
    "multipliers": DeviceMultipliers,
    "multipliers of rows": RowMultipliers,
    "multipliers of modes": ModeMultipliers,
    "weights of resources": ResourceWeights,
    "crossings": Crossings,
    "refutation": Refutation,
}


def evidence_document(evidence: Evidence) -> dict[str, object]:
    """The object under `evidence` of a certificate in a schedule file."""
    if isinstance(evidence, WithMoreMemory):
        capacities = [None if one is None else str(one) for one in evidence.capacities]
        held = evidence_document(evidence.evidence)
        return {"form": _MORE_MEMORY, "capacities": capacities, "kind": evidence.kind, "evidence": held}
    (form,) = (name for name, kind in _FORMS.items() if type(evidence) is kind)
    values = {each.name: getattr(evidence, each.name) for each in fields(evidence)}
    return {"form": form} | {name: _written(value) for name, value in values.items()}


def _written(value: object) -> object:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        return [one if isinstance(one, int) else str(one) for one in value]
    return value


def evidence_from(document: object) -> Evidence:
    """Read `evidence_document` back; `BadInput` names the first key that is wrong."""
    form = document.get("form") if isinstance(document, dict) else None
    if isinstance(document, dict) and form == _MORE_MEMORY:
        return _with_more_memory(document)
    if not isinstance(document, dict) or form not in _FORMS:
        raise BadInput(f"form: found {str(form)[:40]}; allowed: {', '.join((*_FORMS, _MORE_MEMORY))}")
    kind = _FORMS[form]
    found = {}
    for name, annotation in get_type_hints(kind).items():
        choices = get_args(annotation) if NoneType in get_args(annotation) else (annotation,)
        value = _read(document.get(name), choices)
        if value is None and NoneType not in choices:
            raise BadInput(f"{name}: found {str(document.get(name))[:40]}; allowed: what the tool writes there")
        found[name] = value
    evidence: Evidence = kind(**found)
    return evidence


def _with_more_memory(document: dict[str, Any]) -> WithMoreMemory:
    given, held = document.get("capacities"), document.get("evidence")
    listed = given if isinstance(given, list) else []
    capacities = [None if one is None else _fraction(str(one)) for one in listed]
    if not capacities or any((one is None) is not (own is None) for one, own in zip(listed, capacities, strict=True)):
        raise BadInput(f"capacities: found {str(given)[:40]}; allowed: a number or null for each device")
    if isinstance(held, dict) and held.get("form") == _MORE_MEMORY:
        raise BadInput("evidence: found evidence with more memory within evidence with more memory; allowed: another")
    return WithMoreMemory(tuple(capacities), str(document.get("kind")), evidence_from(held))


def _read(value: object, choices: tuple[Any, ...]) -> object:
    """The value as one of these types; None where it is none of them."""
    if isinstance(value, bool):
        return value if bool in choices else None
    if isinstance(value, int):
        return value if int in choices and abs(value) < 10**_MOST_DIGITS else None
    if isinstance(value, str):
        number = _fraction(value) if Fraction in choices else None
        return value if str in choices else number or None
    return _read_list(value, {get_args(choice)[0] for choice in choices if get_args(choice)})


def _read_list(value: object, held: set[Any]) -> tuple[object, ...] | None:
    """The list with entries of one of these types; None where it is none."""
    if not held or not isinstance(value, list) or len(value) > _MOST_ENTRIES:
        return None
    if RowName in held:
        return tuple(parse_row(str(one)) for one in value)
    if Fraction in held:
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
