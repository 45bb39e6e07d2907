"""Layers of a plan file with memory fitted to measured peaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from pipesched.files.layers_text import layers_text, number_text
from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.memory_peaks import PeaksFile, Unknown
from pipesched.layers.roles import Role, role_of
from pipesched.measurement.memory_fit import MemoryFit

_STEP = Decimal("0.000001")


def fitted_layers(file: PeaksFile, fit: MemoryFit) -> tuple[LayerType, ...]:
    """Return the layers of a peaks file in order, each with its fitted memory, rounded up to six decimals.

    The memory of the embedding is the extra of the first device, that of the head the extra of the last one; an
    embedding or head that is not listed is added, first or last and without time, if that is above 0. Where peaks had
    recomputed layers of a type, its first mode, made if there is none, gets the share of the activation that they keep;
    a mode without a time is assumed to run the forward again.
    """
    roles = [role_of(layer.name) for layer in file.layers]
    made = [_fitted(layer, fit) for layer in file.layers]
    zero, weight = Fraction(0), None if made[0].weight is None else Fraction(0)
    first, last = (_up(fit.values.get(Unknown(what), 0.0)) for what in ("first", "last"))
    if Role.EMBEDDING not in roles and first:
        made.insert(0, LayerType("embedding", zero, zero, weight=weight, memory=first))
    if Role.HEAD not in roles and last:
        made.append(LayerType("head", zero, zero, weight=weight, memory=last, with_previous=True))
    return tuple(made)


def _fitted(layer: LayerType, fit: MemoryFit) -> LayerType:
    role = role_of(layer.name)
    if role in (Role.EMBEDDING, Role.HEAD):
        return replace(layer, memory=_up(fit.values.get(Unknown("first" if role is Role.EMBEDDING else "last"), 0.0)))
    memory, activation = (_up(fit.values[Unknown(what, layer.name)]) for what in ("memory", "activation"))
    found = replace(layer, memory=memory, activation=activation)
    kept = fit.values.get(Unknown("recomputed", layer.name))
    if kept is None or not activation:
        return found
    keeps = min(Fraction(1), _up(kept) / activation)
    first, *others = layer.recompute or (RecomputeMode("full", layer.forward, keeps),)
    return replace(found, recompute=(first._replace(time=first.time or layer.forward, keeps=keeps), *others))


def _up(amount: float) -> Fraction:
    """Return an amount rounded up to six decimals, at least 0.

    A plan that fits the numbers must fit the device.
    """
    return Fraction(Decimal(max(amount, 0.0)).quantize(_STEP, ROUND_CEILING))


def fitted_text(file: PeaksFile, fit: MemoryFit) -> str:
    """Return the part of a plan file with layers, and with the capacity, less the constant, if the peaks file has one.

    Comments state how well the layers fit the peaks, and what is missing in the file.
    """
    return "\n".join([*_head(file, fit)]) + "\n" + layers_text(fitted_layers(file, fit), file.timed)


def _head(file: PeaksFile, fit: MemoryFit) -> Iterator[str]:
    yield f"# Memory fitted by `pipesched fit-memory` to {len(fit.residuals)} peaks ({file.unit})"
    yield f"# measured less fitted: root mean square {fit.root_mean_square:.4g}, at most {fit.largest:.4g}"
    constant = _up(fit.values[Unknown("constant")])
    if not file.timed:
        yield "# forward and backward of each layer are missing; add them"
    if file.capacity is None:
        yield f"# take the constant of a device, {number_text(constant)} {file.unit}, off its capacity"
        return
    rooms = [number_text(max(Fraction(0), room - constant), up=False) for room in file.capacity]
    capacity = rooms[0] if len(rooms) == 1 else f"[{', '.join(rooms)}]"
    yield f"# less the constant of a device, {number_text(constant)}:"
    yield f"memory: {{capacity: {capacity}, unit: {file.unit}}}"
