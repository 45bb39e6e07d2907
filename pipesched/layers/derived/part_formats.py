"""Formats of products by layer and by part of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from pipesched.layers.derived.parameters import Matrix, layer_matrices, mtp_matrices
from pipesched.layers.derived.precision import ENDS, MTP, Format
from pipesched.layers.derived.shape import LayerKind, Shape, Training


def runs_of(shape: Shape, training: Training) -> list[tuple[LayerKind, int]]:
    """Return the transformer layers in order as runs of equal layers, each run as its kind and number of layers.

    Where products of the first or last layers stay in 16 bits (`training.formats`), these layers are runs of their own,
    whose kind is within `ENDS`.
    """
    formats, found, at = training.formats, list[tuple[LayerKind, int]](), 0
    kept = formats.some_narrow(training.precision.format)
    first, last = (formats.first, shape.layers - formats.last) if kept else (0, shape.layers)
    for kind, number in shape.runs:
        cuts = sorted({at, at + number, *(cut for cut in (first, last) if at < cut < at + number)})
        for start, end in pairwise(cuts):
            inside = first <= start < last
            found.append((kind if inside else kind._replace(within=ENDS), end - start))
        at += number
    return found


def formats_of_parts(shape: Shape, training: Training) -> Mapping[str, frozenset[Format]]:
    """Return the formats in which products of each part of a model are, by its key in `precision`.

    Parts that the model does not have are not in it.
    """
    found = {"head": {training.format_of("head")}}
    for own, within in _products(shape, training):
        found.setdefault(own.part, set()).add(training.format_of(own.part, within))
    return {part: frozenset(formats) for part, formats in found.items()}


def _products(shape: Shape, training: Training) -> Iterator[tuple[Matrix, str]]:
    """Yield the products of each kind of layer, each with the field `within` of that kind."""
    layers = ((one, kind.within) for kind, _ in runs_of(shape, training) for one in layer_matrices(shape, kind))
    predicted = ((one, MTP) for one in mtp_matrices(shape)) if shape.mtp_layers else ()
    yield from ((one, within) for one, within in (*layers, *predicted) if one.number)
