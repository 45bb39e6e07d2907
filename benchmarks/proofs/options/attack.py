"""Draws a file and a set of options by number, and compares the answer with the optimum under what the options mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.proofs.options import of_plans, of_problems
from benchmarks.proofs.options.drawn import Asked, drawn
from pipesched.errors import BadInput

KINDS: Mapping[str, Mapping[str, Callable[[Asked], Sequence[str]]]] = {
    "plan": of_plans.OPTIONS,
    "problem": of_problems.OPTIONS,
}


def compare(number: int) -> tuple[Sequence[str], Sequence[str]]:
    """Return the option set and features of this number, and what was seen; AssertionError where a claim is wrong."""
    random = Random(f"{number} which")
    kind = random.choice(sorted(KINDS))
    option = random.choice(sorted(KINDS[kind]))
    with TemporaryDirectory() as place:
        asked = drawn(kind, number, Path(place))
        try:
            seen = KINDS[kind][option](asked)
        except BadInput:
            return ("all", option), ("refused",)
        except AssertionError as wrong:
            raise AssertionError(f"{option} of {' + '.join(asked.features) or 'nothing'}: {wrong}") from None
    return ("all", option), ("problems", *(("compared",) if "compared" in seen else ()))
