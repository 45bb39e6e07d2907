"""The same model cut into another number of stages: costs of stages divided or summed, in a document's own keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import as_decimal
from pipesched.files.features.modules import SHARED
from pipesched.files.quantities import in_plain_numbers
from pipesched.files.quantity_forms import PROBLEM
from pipesched.files.schema_errors import shown
from pipesched.problem.placement import PLACEMENTS
from pipesched.problem.quantities import StageId

# What grows with the layers of a stage. A transfer does not: a micro-batch's tensor is what it is.
_TIMES = ("forward", "backward", "weight", "fused", "overlapped")
_MEMORY = ("activation", "freed_by_backward", "kept_for_later")
_PARAMETERS = {"gather": ("time", "memory"), "reduce": ("time",), "step": ("time",)}
_PASSES = ("forward", "backward", "weight")
_DIGITS = 30  # of a share that has no finite decimal form

# Values of all old stages to those of all new ones; a value is a number, or one for each piece of a micro-batch.
_Recut = Callable[[list[Any]], list[Any]]


def with_same_model(document: Mapping[str, Any], changed: dict[str, Any]) -> None:
    """Give the stages of `changed` the layers of the stages of `document`, in place.

    Each chain has all layers. A list with one entry for each stage is in the order of the first chain. If there are
    more stages than before, each entry is divided evenly; if there are fewer, neighbours are summed. The memory that a
    pass needs while it runs (`workspace`) is that of one layer at a time: it is not divided, and of neighbours the
    larger one counts. `BadInput` for passes made of tasks, a placement that is a list of devices, numbers of stages of
    which neither divides the other, and values that cannot be divided or summed so.
    """
    before, after = _shape(document), _shape(changed)
    if before == after:
        return
    if changed.get("tasks") or not isinstance(changed.get("times"), dict):
        raise BadInput("same_model: found passes made of tasks; allowed: times")
    if before is None or after is None:
        raise BadInput("same_model: found a placement that is a list of devices; allowed: one by name")
    (devices, stages, _), (_, new, chains) = before, after
    if new % stages and stages % new:
        raise BadInput(f"same_model: found {new} stages where the file has {stages}; allowed: a multiple or a divisor")
    _recut_places(changed, stages, new, devices == after[0])

    def recut_by(value_of: Callable[[list[Any]], Any], parts_of: Callable[[Any, int], Any]) -> _Recut:
        def recut(values: list[Any]) -> list[Any]:
            first = values[:stages]
            if new >= stages:
                parts = new // stages
                return [parts_of(value, parts) for value in first for _ in range(parts)] * chains
            parts = stages // new
            return [value_of(first[at : at + parts]) for at in range(0, stages, parts)] * chains

        return recut

    recut, recut_workspace = recut_by(_sum, _part), recut_by(max, lambda value, _: value)
    plain = in_plain_numbers(changed, PROBLEM)
    assert isinstance(plain, dict)
    # Shares and amounts with units are those of the old stages.
    changed |= {key: _in_decimals(plain[key]) for key in ("times", "memory", "parameters") if key in plain}
    pieces = _has_pieces(changed)
    _each(changed["times"], _TIMES, stages, recut, pieces)
    if not pieces and isinstance(saves := changed["times"].get("overlapped"), Mapping):
        changed["times"]["overlapped"] = dict(saves)
        _each(changed["times"]["overlapped"], ("saves",), stages, recut)
    memory = changed.setdefault("memory", {})
    if isinstance(memory, dict):
        memory.setdefault("activation", 1)  # the default is a stage's, and stages are others now
        _each(memory, _MEMORY, stages, recut, pieces)
        _recut_options(memory, stages, recut, pieces)
        _each_section(memory, {"until_end": _PASSES}, stages, recut)
        _each_section(memory, {"workspace": _PASSES}, stages, recut_workspace)
        _recut_static(memory, devices, before, recut)
    if isinstance(changed.get("parameters"), dict):
        _each_section(changed["parameters"], _PARAMETERS, stages, recut)


def _recut_places(changed: dict[str, Any], stages: int, new: int, same_devices: bool) -> None:
    """Convert keys that name stages, from `stages` in a chain to `new`, in place; `BadInput` where no stage begins
    there any more, or where a module's parts are those of another number of devices."""
    frozen = changed.get("frozen")
    if isinstance(frozen, int) and not isinstance(frozen, bool):
        if frozen * new % stages:
            raise BadInput(
                f"same_model: found {new} stages, of which frozen: {frozen} of {stages} are no whole number; allowed: "
                "a number of stages of which they are"
            )
        changed["frozen"] = frozen * new // stages
    modules = changed.get("modules")
    if not isinstance(modules, Mapping):
        return
    changed["modules"] = {name: _recut_module(name, own, stages, new, same_devices) for name, own in modules.items()}


def _recut_module(name: str, own: object, stages: int, new: int, same_devices: bool) -> object:
    if not isinstance(own, Mapping):
        return own
    if new != stages and (own.get("feeds", 0) != 0 or own.get("follows", stages - 1) != stages - 1):
        raise BadInput(
            f"same_model: found module {name} at a stage within the model; allowed: at the first or the last stage"
        )
    if not same_devices and own.get("placement") == SHARED:
        raise BadInput(f"same_model: found module {name} with parts on all devices; allowed: the devices of the file")
    return {**own, "follows": new - 1} if "follows" in own else own


def uneven_stages(document: Mapping[str, Any]) -> list[StageId]:
    """Return the stages of a document whose passes take over 1.5 times those of the median stage, such as with a head.

    They are indices in the first chain, ascending; only its stages are compared, by forward, backward and weight
    together. Empty where the document's placement has no name, or times are missing or not one number a stage.
    """
    shape, times = _shape(document), document.get("times")
    if shape is None or not isinstance(times, Mapping):
        return []
    try:
        plain = cast("Mapping[str, Any]", in_plain_numbers(dict(document), PROBLEM))["times"]
        kinds = [plain[key] for key in _PASSES if plain.get(key) is not None]
        if not kinds or (_has_pieces(document) and any(isinstance(values, list) for values in kinds)):
            return []
        columns = [_numbers(values, shape[1])[: shape[1]] for values in kinds]
    except BadInput:
        return []
    totals = list(map(sum, zip(*columns, strict=True)))
    usual = sorted(totals)[(len(totals) - 1) // 2]
    return [stage for stage, total in enumerate(totals) if total > usual * Fraction(3, 2)]


def _has_pieces(document: Mapping[str, Any]) -> bool:
    """Return True if micro-batches are cut into pieces: a list of times may have one for each piece."""
    return document.get("sequence_chunks") not in (None, 1)


def _shape(document: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """Return (devices, stages of a chain, chains) of a problem file's document; None for a placement without a name,
    and for devices or chunks that are no whole numbers up to 10,000."""
    placement, devices, chunks = document.get("placement", "linear"), document.get("devices"), document.get("chunks", 1)
    if not isinstance(placement, str) or placement not in PLACEMENTS:
        return None
    if not isinstance(devices, int) or not isinstance(chunks, int) or not 0 < devices <= 10**4 or chunks > 10**4:
        return None
    where = PLACEMENTS[placement](devices, chunks)
    return devices, len(where.chains[0]), len(where.chains)


def _each(section: dict[str, Any], keys: tuple[str, ...], stages: int, recut: _Recut, pieces: bool = False) -> None:
    """Convert the values of `keys` of a section by `recut`, in place; keys without a value are passed over.

    `stages` is the old number in a chain; with `pieces` a value may be one for each piece. `BadInput` for a value that
    is not so.
    """
    for key in keys:
        value = section.get(key)
        if value is not None and (pieces or not isinstance(value, Mapping)):
            section[key] = _written(recut(_values(value, stages) if pieces else _numbers(value, stages)))


def _each_section(section: dict[str, Any], keys: Mapping[str, tuple[str, ...]], stages: int, recut: _Recut) -> None:
    """Convert the values of keys by `recut`, in place; `keys` has them by the name of their section in `section`."""
    for name, own in keys.items():
        if isinstance(section.get(name), dict):
            _each(section[name], own, stages, recut)


def _recut_options(memory: dict[str, Any], stages: int, recut: _Recut, pieces: bool) -> None:
    """Convert times and amounts of copies and recomputations in a `memory` section to new stages, in place.

    `recut` converts them; all of them grow with the layers of a stage.
    """
    if isinstance(memory.get("offload"), dict):
        _each(memory["offload"], ("out", "in", "amount"), stages, recut, pieces)
    modes = memory.get("recompute")
    for mode in modes if isinstance(modes, list) else ():
        if isinstance(mode, dict):
            _each(mode, ("time", "keeps"), stages, recut)


def _recut_static(memory: dict[str, Any], devices: int, before: tuple[int, int, int], recut: _Recut) -> None:
    """Convert the static memory of a `memory` section to a list by new stage with `recut`, in place.

    It is that of a device or of each old stage. One number is that of each device; of a device with several stages each
    gets an equal part. A list has one entry for each old stage; `BadInput` for a list by device. `before` is the old
    `_shape`.
    """
    static = memory.get("static")
    if static is None:
        return
    _, stages, chains = before
    if isinstance(static, list) and len(static) == devices != stages * chains:
        raise BadInput("same_model: found memory.static by device; allowed: one number, or one a stage")
    amounts = _numbers(static, stages)
    if not isinstance(static, list):
        amounts = [number * devices / (stages * chains) for number in amounts]
    # As a list with one entry a stage, also where all are alike: one number would be a device's.
    memory["static"] = [_decimal(number) for number in recut(amounts)]


def _values(value: object, stages: int) -> list[Any]:
    """Return the value of each stage where micro-batches have pieces: a list of numbers is one for each piece.

    A list of anything else has an entry for each of the `stages` stages; `BadInput` if it has fewer.
    """
    of_stages = isinstance(value, list) and not all(isinstance(one, int | Decimal | Fraction) for one in value)
    found = value if of_stages and isinstance(value, list) else [value] * stages
    if len(found) < stages:
        raise BadInput(f"same_model: found {shown(value)}; allowed: a value, or one a stage")
    return found


def _part(value: Any, parts: int) -> Any:
    """Return an equal part, one of `parts`, of a value, or of each number in it; `BadInput` for anything else."""
    if isinstance(value, Mapping):
        return {key: _part(one, parts) for key, one in value.items()}
    return [_part(one, parts) for one in value] if isinstance(value, list) else _fraction(value) / parts


def _sum(values: list[Any]) -> Any:
    """Return the sum of values of one form, or of each number in them; `BadInput` for values of different forms."""
    first = values[0]
    if isinstance(first, Mapping) and all(isinstance(one, Mapping) and one.keys() == first.keys() for one in values):
        return {key: _sum([one[key] for one in values]) for key in first}
    if isinstance(first, list) and all(isinstance(one, list) and len(one) == len(first) for one in values):
        return [_sum([*of_piece]) for of_piece in zip(*values, strict=True)]
    return sum(map(_fraction, values), Fraction(0))


def _fraction(value: object) -> Fraction:
    if isinstance(value, int | Decimal | Fraction) and not isinstance(value, bool):
        return Fraction(value)
    raise BadInput(f"same_model: found {shown(value)}; allowed: a number, and of stages to be added up the same form")


def _numbers(value: object, stages: int) -> list[Fraction]:
    entries = value if isinstance(value, list) else [value] * stages
    numbers = [Fraction(one) for one in entries if isinstance(one, int | Decimal | Fraction)]
    if len(numbers) < max(stages, len(entries)):
        raise BadInput(f"same_model: found {shown(value)}; allowed: a number, or one a stage")
    return numbers


def _written(values: list[Any]) -> object:
    found = [_in_decimals(value) for value in values]
    return found[0] if all(one == found[0] for one in found) else found


def _in_decimals(value: Any) -> Any:
    """Return a value with each fraction in it as a decimal, rounded where it has no finite one."""
    if isinstance(value, Mapping):
        return {key: _in_decimals(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_in_decimals(one) for one in value]
    return _decimal(value) if isinstance(value, Fraction) else value


def _decimal(number: Fraction) -> int | Decimal:
    """Return a number as an exact decimal if possible, else rounded to 30 digits after the point."""
    try:
        return as_decimal(number)
    except ValueError:
        return as_decimal(Fraction(round(number * 10**_DIGITS), 10**_DIGITS))
