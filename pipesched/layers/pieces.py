"""Pieces of a sequence: their ends, and the time and memory of a layer for each.

Of a layer's time the share a of causal attention grows with the square of the tokens up to there, all else with their
number: a piece of length x after L takes (1 - a) x + a (2 L x + x^2) of the whole, and all pieces together all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from math import sqrt
from typing import Any, NamedTuple

from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.model import Model

# Ends of pieces of equal time are multiples of this share of the sequence.
_GRAIN = 256


class Lengths(StrEnum):
    """The rule for cutting a sequence into pieces.

    `EQUAL`: of equally many tokens. `EQUAL_TIME`: of about equal time, so of ever fewer tokens, as later ones attend to
    more.
    """

    EQUAL = "equal"
    EQUAL_TIME = "equal_time"


def ends_of(model: Model, count: int, lengths: Lengths) -> tuple[Fraction, ...]:
    """Return the start of the first of `count` pieces, 0, and the end of each, as shares of the sequence up to 1.

    The pieces are of equal lengths, or, by `lengths`, of about equal time of the whole model. Lengths are equal, too,
    where no layer has attention, or the pieces are too many for ends that differ once rounded.
    """
    equal = tuple(Fraction(n, count) for n in range(count + 1))
    work = sum((layer.forward + layer.full_backward for layer in model.sequence), Fraction(0))
    attention = sum((_attention(layer) for layer in model.sequence), Fraction(0))
    if lengths is Lengths.EQUAL or not attention or count > _GRAIN // 2:
        return equal
    share = float(attention / work)
    # The root of (1 - a) x + a x^2 = the share of the time.
    ends = [(sqrt((1 - share) ** 2 + 4 * share * float(at)) - (1 - share)) / (2 * share) for at in equal]
    found = [Fraction(round(end * _GRAIN), _GRAIN) for end in ends]
    return tuple(found) if all(a < b for a, b in pairwise(found)) else equal


class SequenceCut(NamedTuple):
    """The cut of every micro-batch's sequence: its number of pieces and the rule for their lengths."""

    number: int = 1
    lengths: Lengths = Lengths.EQUAL

    @property
    def whole(self) -> bool:
        """True if micro-batches are not cut."""
        return self.number == 1

    def ends(self, model: Model) -> tuple[Fraction, ...]:
        """Return the start of the first piece, 0, and the end of each, as shares of the sequence up to 1."""
        return ends_of(model, *self)

    def shares(self, model: Model) -> list[Fraction]:
        """Return the share of the sequence of each piece."""
        return [b - a for a, b in pairwise(self.ends(model))]

    def models(self, model: Model, tick: Fraction, step: Fraction) -> tuple[Model, ...]:
        """Return the model's costs for each piece: times are multiples of `tick`, amounts of memory of `step`."""
        return tuple(of_piece(model, *both, tick, step) for both in pairwise(self.ends(model)))

    def __str__(self) -> str:
        what = "length" if self.lengths is Lengths.EQUAL else "time"
        return "" if self.whole else f"{self.number} pieces of equal {what}"

    def document(self) -> dict[str, Any]:
        """Return the keys `sequence_chunks` and `lengths` of files and `--json`; none if micro-batches are whole."""
        return {} if self.whole else {"sequence_chunks": self.number, "lengths": self.lengths.value}

    @property
    def narrowed_by_settings(self) -> str:
        """The narrower choice that settings of a runtime leave; empty if they leave this one."""
        return "" if self.whole else "micro-batches of one piece"

    @property
    def refused_by_settings(self) -> str:
        """The reason why no settings express a plan with this cut; empty if some do."""
        return "" if self.whole else "micro-batches of several pieces (sequence_chunks 1 in the plan file)"


def cut_from(document: Mapping[str, Any]) -> SequenceCut:
    """Read a cut from the keys of `SequenceCut.document`; TypeError or ValueError for any other form."""
    return SequenceCut(int(document.get("sequence_chunks", 1)), Lengths(document.get("lengths", Lengths.EQUAL)))


WHOLE = SequenceCut()
# The keys of `SequenceCut.document`, in order.
CUT_KEYS = ("sequence_chunks", "lengths")


def of_piece(model: Model, start: Fraction, end: Fraction, tick: Fraction, step: Fraction) -> Model:
    """Return the model's costs for the piece from `start` to `end`, shares of the sequence from 0 to 1.

    All are in the file's units: times are multiples of `tick`, amounts of memory of `step`. Times of passes and
    activations, summed over all pieces, are those of the whole sequence. A layer's `activation` is then without its
    `kept_for_later`, which a piece takes in addition. What does not belong to a micro-batch, such as static memory, is
    not divided.
    """
    between = _Between(start, end, tick, step)
    return replace(model, layers=tuple(map(between.layer, model.layers)))


def exact_numbers(layer: LayerType, ends: tuple[Fraction, ...]) -> list[Fraction]:
    """Return the unrounded times of a layer up to each of these ends, which a tick should divide."""
    share = layer.attention
    totals = [layer.forward, layer.backward, layer.weight or Fraction(0), layer.full_backward]
    parts = [share * layer.forward, _backward_attention(layer), Fraction(0), _backward_attention(layer)]
    found = [_up_to(total, part, end) for total, part in zip(totals, parts, strict=True) for end in ends]
    return found + [mode.time * ((1 - share) * end + share * end * end) for mode in layer.recompute for end in ends]


class _Between:
    """Costs of the piece between two ends, as differences of rounded cumulative costs."""

    def __init__(self, start: Fraction, end: Fraction, tick: Fraction, step: Fraction) -> None:
        self._start, self._end, self._tick, self._step = start, end, tick, step

    def layer(self, layer: LayerType) -> LayerType:
        """Return the layer with the costs and memory of this piece."""
        forward, backward = layer.attention * layer.forward, _backward_attention(layer)
        later = self._amount(layer.kept_for_later)
        activation = self._amount(layer.activation) - later
        return replace(
            layer,
            forward=self._time(layer.forward, forward),
            backward=self._time(layer.backward, backward),
            weight=None if layer.weight is None else self._time(layer.weight, Fraction(0)),
            fused=None if layer.fused is None else self._time(layer.fused, backward),
            activation=activation,
            freed_by_backward=min(activation, self._amount(layer.freed_by_backward)),
            kept_for_later=later,
            recompute=tuple(self._mode(layer, mode, activation, later) for mode in layer.recompute),
        )

    def _mode(self, layer: LayerType, mode: RecomputeMode, activation: Fraction, later: Fraction) -> RecomputeMode:
        kept = min(activation, max(Fraction(0), self._amount(layer.activation * mode.keeps) - later))
        time = self._time(mode.time, mode.time * layer.attention)
        return RecomputeMode(mode.name, time, kept / activation if activation else Fraction(1))

    def _time(self, total: Fraction, attention: Fraction) -> Fraction:
        before, after = (round(_up_to(total, attention, at) / self._tick) for at in (self._start, self._end))
        return (after - before) * self._tick

    def _amount(self, amount: Fraction) -> Fraction:
        before, after = (round(amount * at / self._step) for at in (self._start, self._end))
        return (after - before) * self._step


def _up_to(total: Fraction, attention: Fraction, end: Fraction) -> Fraction:
    """Return the part of a time up to `end`; `attention` is the part of `total` that grows with the square.

    `end` is a share of the sequence, from 0 to 1; the result is in the unit of `total`.
    """
    return (total - attention) * end + attention * end * end


def _backward_attention(layer: LayerType) -> Fraction:
    """Return the attention's part of a full backward; all of it is in B, since attention has no weights.

    In the file's unit of time.
    """
    return layer.attention_backward * (layer.backward + (layer.weight or 0))


def _attention(layer: LayerType) -> Fraction:
    return layer.attention * layer.forward + _backward_attention(layer)
