"""Draws the document of a set of switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

from benchmarks.matrix.numbers import spelled
from benchmarks.matrix.problem_switches import BY_NAME, base, plain_times
from benchmarks.matrix.switch import Draft, with_needed

_MADE_BEFORE_TIMES = ("placement", "chains", "pipelines", "sequence_chunks")


class Case(NamedTuple):
    """A tiny problem with these switches on: the document that a file holds, and the plain one that it means."""

    names: tuple[str, ...]
    seed: int
    document: dict[str, Any]
    plain: dict[str, Any]

    @property
    def switches(self) -> frozenset[str]:
        """All that are on, with those that the named ones stand on."""
        return frozenset(one.name for one in with_needed(BY_NAME, self.names))


def problem_case(names: Sequence[str], seed: int) -> Case:
    """The case of these switches that a seed draws."""
    random = Random(f"{seed} {' '.join(sorted(names))}")
    draft = Draft(random, {})
    base(draft)
    chosen, drawn = with_needed(BY_NAME, names), False
    for switch in chosen:
        shape = any(key.split(".")[0] in _MADE_BEFORE_TIMES for key in switch.keys)
        if not shape and not drawn:
            plain_times(draft)
            drawn = True
        switch.write(draft)
    if not drawn:
        plain_times(draft)
    numbers = next((one.name for one in chosen if one.group == "numbers"), "")
    document, plain = spelled(draft.document, numbers, random)
    return Case(tuple(names), seed, document, plain)


def text_of(document: Mapping[str, Any]) -> str:
    """The document as JSON, decimals with all their digits."""
    import simplejson

    return simplejson.dumps(document, indent=1, use_decimal=True, default=_rational)


def _rational(value: object) -> object:
    assert isinstance(value, Fraction)
    exact = 10**9 % value.denominator == 0
    return Decimal(value.numerator) / value.denominator if exact else f"{value.numerator}/{value.denominator}"
