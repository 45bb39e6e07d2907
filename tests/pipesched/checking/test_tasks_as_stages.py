"""Tasks as stages of their own: what is proved of these holds of the problem, and other rows are not taken for them."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Finding, NotCoveredError, RefusedEvidenceError, Verdict
from pipesched.checking.streams.tasks_as_stages import Row, as_plain
from pipesched.problem import placement
from pipesched.problem.blocks import Blocks
from pipesched.problem.features.device_resources import DeviceResources, Pool
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import Stage, TaskSpec
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import (
    AroundDevice,
    Evidence,
    MoreMemory,
    OfRelaxed,
    OnDevice,
    Refutation,
    TasksAsStages,
    UnknownForm,
)
from pipesched.results.evidence_document import evidence_document, evidence_from
from tests.support.in_turn import in_turn
from tests.support.task_brute_force import optimum


def built(tasks: dict[PassKind, tuple[TaskSpec, ...]], microbatches: int = 2, **more: Any) -> Problem:
    """One stage of these tasks on one device."""
    stage = Stage(0, 0, 0 if W in tasks else None, 0, tasks=tuple(tasks.items()), **more)
    return Problem(placement.linear(1), microbatches, (stage,))


def on(*streams: str, ticks: int = 1) -> tuple[TaskSpec, ...]:
    return tuple(TaskSpec(stream, ticks) for stream in streams)


MAIN, COMM = on("compute", "comm")
SPLIT = built({F: (MAIN, COMM, MAIN), B: (MAIN, COMM, MAIN),
               W: (MAIN._replace(after=0), MAIN, COMM._replace(after=0)),
               BW: (MAIN, MAIN, COMM, COMM, MAIN, MAIN)})  # fmt: skip
WHOLE = built({F: (MAIN, COMM, MAIN), BW: (MAIN, COMM, MAIN)})
GOOD: tuple[Row, ...] = ((0, 0, 2, 1), (0, 1, 1, None), (0, 2, 0, 0))


def plain(one: Problem, *rows: Any) -> Problem:
    return as_plain(one, TasksAsStages(rows))


def test_rows_are_stages_on_devices_that_are_streams() -> None:
    found = plain(replace(SPLIT.with_stages(activation=(3,), freed=(-1,)), pools=(Pool(7, 1),)), *GOOD)
    assert found.placement.stage_device == (0, 1, 0) and found.pools == (Pool(7, 1), Pool())
    assert [(s.forward, s.backward, s.weight, s.fused) for s in found.stages] == [
        (1, 1, 1, 2),
        (1, 1, 0, 1),
        (1, 1, 1, 2),
    ]
    assert [(s.activation, s.freed) for s in found.stages] == [(3, 0), (0, 0), (0, 0)]
    assert not found.stages[0].tasks and not found.links
    assert plain(WHOLE, (0, 1, 1, None)).stages[0].weight is None


@in_turn(
    "rows",
    [
        (),
        ((1, 0, 2, None),),
        ((0, 0, 2, None), (1, 0, 0, None)),
        ((0, 2, 2, None), (0, 0, 0, None)),
        ((0, 0, 2, None), (0, 0, 0, None)),
        ((0, 0, 0, None), (0, 2, 2, None)),
        ((0, 0, 2, None), (0, 2, 2, None)),
        ((0, None, None, None),),
        # While a lone task runs for a micro-batch, what another one lacks may have to come.
        ((0, 0, 2, None), (0, 1, None, None), (0, 2, 0, None)),
        ((0, 0, 2, None), (0, None, 1, None), (0, 2, 0, None)),
        ((0, 0, 2, 1), (0, 2, 0, 1)),
        ((0, 0, 2, 0),),
        ((0, 0, None, 1),),
        ((0, None, 0, 1),),
        ((0, 0, 1, None),),
        ((0, 0, 0, 2),),
        ((0, 3, 0, None),),
        ((0, 0, -1, None),),
        ((0, 0, 0, 3),),
    ],
)
def test_rows_that_are_none_are_refused(rows: tuple[Row, ...]) -> None:
    held = OfRelaxed(TasksAsStages(rows), "load", OnDevice(0))
    with pytest.raises(RefusedEvidenceError):
        as_plain(SPLIT, TasksAsStages(rows))
    assert check_bound(SPLIT, Certificate("load", 1, "", None, held)).verdict is Verdict.REFUSED


def test_backwards_that_never_split_have_no_weight_tasks() -> None:
    with pytest.raises(RefusedEvidenceError, match="no such task of W"):
        plain(WHOLE, (0, 0, 2, 0))


@pytest.mark.parametrize(
    "one",
    [
        built({F: (MAIN,), B: (MAIN,), W: (MAIN,), BW: (MAIN,)}),
        built({F: (MAIN,), B: (MAIN, COMM), W: (MAIN,), BW: (MAIN, MAIN, COMM)}),
        built({F: (MAIN._replace(needs_input=False), MAIN), BW: (MAIN,)}),
        built({F: (MAIN,), BW: (MAIN,)}, blocks=Blocks(1)),
        replace(WHOLE, objective=Objective.PERIOD),
        replace(WHOLE, resources=DeviceResources(transfer_stream="comm")),
    ],
)
def test_what_may_not_become_rows_is_not_covered(one: Problem) -> None:
    with pytest.raises(NotCoveredError):
        plain(one, (0, 0, 0, None))


def test_memory_is_held_to_the_backward_only_if_a_weight_task_waits_for_it() -> None:
    """All weight tasks may be done, and what they give back is there, before the last task of the backward."""
    tasks = {F: (MAIN,), B: (MAIN, MAIN), W: (MAIN._replace(after=0),), BW: (MAIN, MAIN, MAIN)}
    one = built(tasks, activation=3, freed=1)
    assert [plain(one, (0, 0, b, None)).stages[0].activation for b in (0, 1)] == [3, 1]


SHORT, SHORT_COMM = (one._replace(ticks=0) for one in (MAIN, COMM))


def false_claim(one: Problem, value: int, rows: tuple[Row, ...], kind: str, evidence: Evidence) -> Finding:
    """What the check says of a value one above the optimum."""
    assert optimum(one, Objective.MAKESPAN) == value - 1
    return check_bound(
        one, Certificate("tasks as stages", value, "", None, OfRelaxed(TasksAsStages(rows), kind, evidence))
    )


def test_a_weight_task_in_two_rows_would_be_counted_twice() -> None:
    """All that takes time is the one weight task: two rows with it would take two ticks."""
    one = built({F: (SHORT, SHORT), B: (SHORT, SHORT), W: (MAIN,), BW: (SHORT, SHORT, MAIN)}, 1)
    found = false_claim(one, 2, ((0, 0, 1, 0), (0, 1, 0, 0)), "load", OnDevice(0))
    assert found.verdict is Verdict.REFUSED and "in two rows" in found.text


def test_a_weight_task_may_run_before_the_backward_of_its_row() -> None:
    """It runs while the other stream runs for B, and not behind the last task of B, where its row would have it."""
    weight = MAIN._replace(after=0)
    one = built({F: (SHORT, SHORT_COMM), B: (SHORT, COMM, SHORT), W: (weight,), BW: (SHORT, MAIN, COMM, SHORT)}, 1)
    found = false_claim(one, 2, ((0, 0, 2, 0), (0, 1, 1, None)), "round trip", OnDevice(0))
    assert found.verdict is Verdict.REFUSED and "before the backward" in found.text


def test_weight_tasks_may_give_memory_back_before_the_backward_of_a_row_ends() -> None:
    """There is memory for one micro-batch. Its W has ended before the last task of its B, which then runs while the
    other stream runs for the next one.
    """
    tasks = {F: (MAIN, COMM), B: (SHORT_COMM, MAIN), W: (SHORT._replace(after=0),), BW: (SHORT_COMM, SHORT, MAIN)}
    one = replace(built(tasks), pools=(Pool(1),))
    found = false_claim(one, 6, ((0, 0, 1, None), (0, 1, 0, None)), "round trip", OnDevice(0))
    assert found.verdict is Verdict.REFUSED and "the evidence proves" in found.text


def test_a_backward_in_one_go_takes_no_memory_that_one_of_two_passes_would() -> None:
    """There is memory for two micro-batches, and none for what B takes besides. In one go what the other stream runs
    comes between B and W of the row: as one pass there they would delay it.
    """
    tasks = {F: (SHORT_COMM, MAIN), B: (SHORT, COMM), W: (MAIN,), BW: (SHORT, COMM, MAIN)}
    one = replace(built(tasks, freed=-2), pools=(Pool(2),))
    rows: tuple[Row, ...] = ((0, 0, 1, None), (0, 1, 0, 0))
    found = false_claim(one, 5, rows, "head and tail", AroundDevice(0, None, to_last_forward=False))
    assert found.verdict is Verdict.REFUSED and "the evidence proves" in found.text


def test_it_is_read_back_and_goes_with_more_memory() -> None:
    held = OfRelaxed(TasksAsStages(GOOD), "load", OnDevice(0))
    assert evidence_from(json.loads(json.dumps(evidence_document(held)))) == held
    claim = Certificate("tasks as stages", 12, "", None, OfRelaxed(MoreMemory((None,)), "tasks as stages", held))
    assert check_bound(SPLIT, claim).verdict is Verdict.VERIFIED
    assert check_bound(SPLIT, replace(claim, value_ticks=13)).verdict is Verdict.REFUSED
    searched = replace(held, kind="exhaustive search by CP-SAT", evidence=Refutation((1,)))
    assert check_bound(SPLIT, replace(claim, evidence=searched)).verdict is Verdict.TRUSTED
    beyond = replace(searched, evidence=Refutation((2,)))
    assert check_bound(SPLIT, replace(claim, evidence=beyond)).verdict is Verdict.REFUSED
    for within in (held, OfRelaxed(MoreMemory((Fraction(1),)), "load", OnDevice(0))):
        nested = replace(held, evidence=within)
        assert isinstance(evidence_from(evidence_document(nested)), UnknownForm)
        assert check_bound(SPLIT, replace(claim, evidence=nested)).verdict is Verdict.REFUSED


@pytest.mark.parametrize(
    "stages",
    [None, 3, [], [3], [[0, 1, 2]], [[0, 1, 2, 3, 4]], [[None, 0, 0, None]], [[0, "0", 0, None]],
     [[0, True, 0, None]], [[0, -1, 0, None]], [[0, 0.5, 0, None]], [[0, 0, 0, None], None]],
)  # fmt: skip
def test_damaged_rows_are_no_evidence(stages: object) -> None:
    document = evidence_document(OfRelaxed(TasksAsStages(GOOD), "load", OnDevice(0))) | {"stages": stages}
    found = evidence_from(document)
    assert isinstance(found, UnknownForm) and "stages" in str(found.mistake)
    assert evidence_document(found) == document
