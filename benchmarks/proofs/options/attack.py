"""Draws a file and a set of options by number, and compares the answer with the optimum under what the options mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.proofs.options import of_layouts, of_plans, of_problems, of_states
from benchmarks.proofs.options.drawn import Asked, NotComparedError, drawn
from benchmarks.proofs.options.refusals import refuse_unexpected
from pipesched.errors import BadInput
from pipesched.files.plan_file import read_plan
from pipesched.files.problem_file import read_problem

KINDS: Mapping[str, Mapping[str, Callable[[Asked], Sequence[str]]]] = {
    "model": of_layouts.OPTIONS,
    "plan": of_plans.OPTIONS,
    "problem": {**of_problems.OPTIONS, **of_states.OPTIONS},
}
_DRAWN = [(kind, option) for kind, options in KINDS.items() for option in options]
_READERS: Mapping[str, Callable[[str], object]] = {"plan": read_plan, "problem": read_problem}


def compare(number: int) -> tuple[Sequence[str], Sequence[str]]:
    """Return the option set and features of this number, and what was seen; AssertionError where a claim is wrong."""
    kind, option = Random(f"{number} which").choice(_DRAWN)
    with TemporaryDirectory() as place:
        asked = drawn(kind, number, Path(place))
        try:
            seen = _answered(kind, option, asked)
        except NotComparedError:
            seen = ("problems",)
        except AssertionError as wrong:
            raise AssertionError(f"{option} of {' + '.join(asked.features) or 'nothing'}: {wrong}") from None
    return ("all", option), seen


def _answered(kind: str, option: str, asked: Asked) -> Sequence[str]:
    """Return what was seen of an option; a file that its reader refuses counts by itself."""
    try:
        seen = KINDS[kind][option](asked)
    except BadInput as refused:
        try:
            _READERS[kind](asked.path)
        except BadInput:
            return ("refused file",)
        refuse_unexpected(option, asked.features, refused.mistakes[-1])
        return ("refused",)
    return ("problems", *(one for one in ("compared", "by hand") if one in seen))
