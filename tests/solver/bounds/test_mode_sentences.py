"""The sentences of the bounds that count modes, held by a file: which numbers they name, and what they say of owners.

    python -m tests.solver.bounds.test_mode_sentences

writes the file anew, after a change that is meant to change what is said.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from solver.bounds.analytic.catalogue import BOUNDS
from tests.solver.bounds.test_mode_bounds import OURS, equal

HELD = Path(__file__).with_name("mode_sentences.json")
_SHORT = (10, 10, 10, 16)
_BLOCKS = equal(placement.bidirectional(4), 16, 3, overlapped=24)
CASES: dict[str, Problem] = {
    "neighbours of both numbers, units": replace(_BLOCKS, memory_unit="GiB", time_unit="ms"),
    "backwards that are never split": _BLOCKS.with_stages(weight=(None,) * 8, backward=(20,) * 8),
    "last gradient and last forward": equal(placement.linear(4), 12, 3, _SHORT),
    "all outside and all split": equal(placement.linear(2), 1, 2, _SHORT, overlapped=15),
    "one micro-batch that is in no block": equal(placement.linear(2), 1, 1, (37, 52, 5, 55), 15),
    "one micro-batch": equal(placement.linear(2), 1, 2, (32, 25, 9, 25), 10),
    "one micro-batch that is never split": equal(placement.linear(2), 1, 2, (37, 28, 26, 52), 17).with_stages(
        weight=(None, None), backward=(52, 52)
    ),
    "span of another device": replace(equal(placement.linear(3), 4, 2, _SHORT, 24), objective=Objective.SPAN),
}


def sentences(problem: Problem) -> list[str]:
    """Of all certificates of both bounds."""
    return [one.text for name in OURS for one in BOUNDS[name].certify(problem, problem.objective)]


@pytest.mark.parametrize("name", CASES)
def test_what_is_said(name: str) -> None:
    assert sentences(CASES[name]) == json.loads(HELD.read_text(encoding="utf-8"))[name]


if __name__ == "__main__":
    every = {name: sentences(problem) for name, problem in CASES.items()}
    HELD.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")
