"""The sentences of the analytic bounds, held by a file: which numbers they name, and what they say of owners.

    python -m tests.solver.bounds.test_sentences

writes the file anew, after a change that is meant to change what is said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from solver.bounds.analytic.catalogue import BOUNDS
from solver.cyclic.period_bounds import period_certificates
from tests.solver.bounds.test_certificate_values import SOLVED
from tests.solver.bounds.test_mode_bounds import OURS, equal
from tests.support.makers import problem as linear

HELD = Path(__file__).with_name("sentences.json")
_SHORT = (10, 10, 10, 16)
_BLOCKS = equal(placement.bidirectional(4), 16, 3, overlapped=24)
# Of these the sentences of the bounds that count modes.
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
_TIGHT = linear(
    3, 6, times={"forward": [4, 3, 6], "backward": 4, "weight": [3, 2, 9], "transfer": 5},
    memory={"activation": 2, "freed_by_backward": 1, "capacity": [5, 4, 3]},
)  # fmt: skip
# Of these the sentences of every bound.
PLAIN: dict[str, Problem] = {
    "makespan": _TIGHT,
    "span": replace(_TIGHT, objective=Objective.SPAN),
    "ample memory": _TIGHT.with_room((None, 40, None)),
    "two stages a device": linear(2, 4, placement="interleaved", chunks=2, objective="span", memory={"capacity": 4}),
    "two directions": linear(2, 4, placement="bidirectional", objective="span", memory={"capacity": 2}),
}


def sentences(problem: Problem, names: Iterable[str]) -> list[str]:
    """Of all certificates of some bounds."""
    return [one.text for name in names for one in BOUNDS[name].certify(problem, problem.objective)]


def every() -> dict[str, list[str]]:
    """By the name of each case."""
    both = {name: sentences(problem, OURS) for name, problem in CASES.items()}
    both |= {name: sentences(problem, (bound.name for bound in BOUNDS)) for name, problem in PLAIN.items()}
    # A solver's multipliers may differ between machines.
    periods = {name: period_certificates(problem) for name, problem in (CASES | PLAIN).items() if "span" not in name}
    return both | {f"period, {n}": [one.text for one in found if one.kind != SOLVED] for n, found in periods.items()}


def test_what_is_said() -> None:
    assert every() == json.loads(HELD.read_text(encoding="utf-8"))


if __name__ == "__main__":
    HELD.write_text(json.dumps(every(), indent=1) + "\n", encoding="utf-8")
