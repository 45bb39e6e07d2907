"""Writing of the profile of a model, cut into single layers, as a plan file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from itertools import groupby
from statistics import median
from typing import NamedTuple

from pipesched.files.layers_text import layers_text
from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.quantities import StageId
from runtime.profiling.problem_text import header
from runtime.profiling.profile import KINDS, Profile, StageProfile

# Bytes of Adam's two moments for one of parameters and gradients together, in the parameters' format.
_ADAM = 1
_MIB = 1024 * 1024


class _Size(NamedTuple):
    """The key by which layers count as equal, in bytes: parameters, what each pass takes (by `KINDS`), output."""

    parameters: int
    memory: tuple[int, ...]
    output: int


def layer_types(profile: Profile) -> tuple[LayerType, ...]:
    """Return a layer type for each run of consecutive layers of one size, in ms and MiB, to write a plan file from.

    Times are medians over all layers of that size. The last layer's output is a loss, so being last is part of the key.
    Memory is parameters, gradients and Adam's moments.
    """
    last = len(profile.stages) - 1
    sizes = [_size(stage) for stage in profile.stages]
    keys = [(size, at == last) for at, size in enumerate(sizes)]
    times = {
        key: {kind: _median(profile, [at for at, other in enumerate(keys) if other == key], kind) for kind in KINDS}
        for key in keys
    }
    names = _names(profile.request.model, keys)
    return tuple(_layer(names[key], len(list(group)), key[0], times[key]) for key, group in groupby(keys))


def _size(stage: StageProfile) -> _Size:
    return _Size(stage.parameters, tuple(stage.memory[kind] for kind in KINDS), stage.output)


def _median(profile: Profile, stages: Sequence[StageId], kind: PassKind) -> Fraction:
    """Return the median, over stages, of each stage's median time of a kind of pass, in ms to the microsecond."""
    seconds = median(profile.stages[stage].times[kind].median for stage in stages)
    return Fraction(round(seconds * 1_000_000), 1000)


def _names(model: str, keys: Sequence[tuple[_Size, bool]]) -> dict[tuple[_Size, bool], str]:
    """Return a name for each size of layers: `layer` for the most frequent, then `layer-2`, `layer-3`, ...

    `keys` has for each layer, in order, its size and if it is the last. A first layer unlike all others is `embedding`
    and the last `head` if `model` is the built-in `gpt`, else `first` and `last`.
    """
    ends = ("embedding", "head") if model == "gpt" else ("first", "last")
    named: dict[tuple[_Size, bool], str] = {}
    inner = sorted(dict.fromkeys(keys), key=lambda key: -keys.count(key))
    for key in inner:
        if keys.count(key) == 1 and key == keys[0] and len(keys) > 1:
            named[key] = ends[0]
        elif key[1] and len(keys) > 1:
            named[key] = ends[1]
        else:
            number = sum(name.startswith("layer") for name in named.values())
            named[key] = f"layer-{number + 1}" if number else "layer"
    return named


def _layer(name: str, count: int, size: _Size, times: dict[PassKind, Fraction]) -> LayerType:
    taken = dict(zip(KINDS, size.memory, strict=True))
    activation = _mib(taken[F])
    modes: tuple[RecomputeMode, ...] = ()
    if size.output and taken[F] > size.output:
        # Recomputed from its input, which is the output of the layer before: of its own it keeps the output alone.
        modes = (RecomputeMode("full", times[F], Fraction(size.output, taken[F])),)
    return LayerType(
        name,
        times[F],
        times[B],
        count,
        weight=times[W],
        fused=times[BW],
        memory=_mib(size.parameters * (1 + _ADAM)),
        activation=activation,
        freed_by_backward=min(activation, _mib(-taken[B])),
        recompute=modes,
    )


def _mib(amount: int) -> Fraction:
    return Fraction(amount, _MIB)


def plan_text(
    profile: Profile, name: str, devices: int, microbatches: int, capacity: str | None, objective: str
) -> str:
    """Return the text of a plan file in ms and MiB.

    `capacity` is the whole memory of a device, a number of MiB as text; None for no limit. The plan has this `name`, so
    many pipeline `devices` and `microbatches`, and the objective of this name.
    """
    lines = "\n".join([*header(profile), *_body(profile, name, devices, microbatches, capacity, objective)])
    return f"{lines}\n{layers_text(layer_types(profile))}"


def _body(
    profile: Profile, name: str, devices: int, microbatches: int, capacity: str | None, objective: str
) -> Iterator[str]:
    yield "# memory of a layer: parameters, gradients and Adam's two moments; recomputation runs its forward again"
    yield f"name: {name}"
    yield f"devices: {devices}"
    yield f"microbatches: {microbatches}"
    yield "time_unit: ms"
    slowest = max((samples.median for samples in profile.transfers), default=0.0)
    yield f"transfer: {(Decimal(slowest) * 1000).quantize(Decimal('0.001'), ROUND_HALF_EVEN)}"
    room = "" if capacity is None else f"capacity: {capacity}, "
    yield f"memory: {{{room}unit: MiB}}"
    yield f"objective: {objective}"
