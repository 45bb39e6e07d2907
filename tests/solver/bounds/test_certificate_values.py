"""What every analytic bound proves of a few hundred problems, held by a file: a bound that proves less is noticed too.

    python -m tests.solver.bounds.test_certificate_values

writes the file anew, after a change that is meant to change what is proved.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.bound_problems import changed, draw
from benchmarks.proofs.branch import Branch
from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.problem import Objective, Problem
from pipesched.results.evidence import AroundDevice
from solver.bounds.analytic.catalogue import BOUNDS, certificates
from solver.bounds.analytic.head_and_tail import head_and_tail
from solver.cyclic.mode_bound import mode_bound
from solver.cyclic.period_bounds import one_of_each_chain, period_certificates
from tests.support.makers import problem as linear

HELD = Path(__file__).with_name("certificate_values.json")
# Problems of each branch. Values that multipliers of a solver prove are left out: they may differ between machines.
COUNT, SOLVED = 12, "load and memory over modes"
KINDS = [branch for branch in BRANCHES if branch.kind.startswith("period: ") or branch.bound in BOUNDS.names()]


def values(problem: Problem) -> str:
    """Each kind of bound with its values in ticks, by device."""
    proved = [(one.kind, one.device, str(one.value_ticks)) for one in certificates(problem, problem.objective)]
    if len({len(walked) for walked in problem.microbatches_of}) == 1 and not problem.walks.queues:
        proved += [
            (f"period: {one.kind}", one.device, str(one.value))
            for one in period_certificates(problem)
            if one.kind != SOLVED
        ]
    kinds = sorted({kind for kind, _, _ in proved})
    return "; ".join(
        f"{kind} "
        + " ".join(value for own, _, value in sorted(proved, key=lambda one: (str(one[1]), one[2])) if own == kind)
        for kind in kinds
    )


def drawn(branch: Branch) -> list[Problem]:
    """Half as the branch draws them, half some numbers away, of both objectives."""
    random = Random(branch.name)
    found = []
    for number in range(COUNT):
        problem = draw(random, branch.likely)
        for _ in range(4 * (number % 2)):
            problem = changed(random, problem, branch.likely)
        found.append(without_scale(branch.posed(problem)))
    return found


@pytest.mark.parametrize("branch", KINDS, ids=lambda branch: branch.name)
def test_what_is_proved(branch: Branch) -> None:
    held = json.loads(HELD.read_text(encoding="utf-8"))[branch.name]
    assert [values(problem) for problem in drawn(branch)] == held


def test_a_device_without_room_for_a_micro_batch_is_bounded_too() -> None:
    """No schedule is within its memory, and no bound divides by how many micro-batches fit."""
    one = linear(2, 3, memory={"activation": 2, "capacity": 2})
    for room in ((0, 2), (1, 2), (2, 0)):
        assert certificates(one.with_room(room), Objective.MAKESPAN)[0].value_ticks >= 9  # the work of a device


def test_evidence_of_head_and_tail_says_to_which_end_its_sentence_goes() -> None:
    ends = []
    for problem in [problem for branch in KINDS[::4] for problem in drawn(branch)]:
        for one in head_and_tail(problem, problem.objective):
            assert isinstance(one.evidence, AroundDevice)
            assert one.evidence.to_last_forward is ("its last forward ends" in one.text)
            ends.append(one.evidence.to_last_forward)
    assert {True, False} == {*ends}


@pytest.mark.parametrize(("placement", "each"), (("bidirectional", 2), ("linear", 1)))
def test_what_is_proved_of_one_of_each_chain_counts_for_each_micro_batch(placement: str, each: int) -> None:
    times = {"forward": 10, "backward": 10, "weight": 10, "fused": 16, "overlapped": 24}
    one = linear(2, 4, placement=placement, times=times, memory={"capacity": 2})
    bound = mode_bound(one_of_each_chain(one))
    (found,) = (certificate for certificate in period_certificates(one) if certificate.kind == SOLVED)
    assert bound is not None
    assert found.value * each == bound.value > 0
    which = f"device{'s' if len(bound.devices) > 1 else ''} {', '.join(map(str, bound.devices))}, each times"
    assert which in found.text and found.device == bound.devices[0]


def test_both_objectives_are_held() -> None:
    assert {problem.objective for problem in drawn(KINDS[0])} == {Objective.MAKESPAN, Objective.SPAN}


if __name__ == "__main__":
    every = {branch.name: [values(problem) for problem in drawn(branch)] for branch in KINDS}
    HELD.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")
