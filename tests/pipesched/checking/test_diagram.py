"""The check of decision diagrams: never above the optimum, exact where nothing is merged; what is none is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from random import Random

import pytest

from benchmarks.proofs.bound_problems import draw
from benchmarks.proofs.branch import Likely
from pipesched.checking.check import check_bound
from pipesched.checking.diagram.argument import decision_diagram
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError, Verdict
from pipesched.checking.relaxed.least_memory import with_least_memory
from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import UnknownForm
from pipesched.results.evidence_document import evidence_document, evidence_from
from tests.support.diagrams import UNEVEN, bidirectional, of_tasks, v_shape
from tests.support.exhaustive.optimum import least_value
from tests.support.task_brute_force import TooManyOrdersError

LIKELY = {
    "any": Likely(bidirectional=0.3),
    "a line": Likely(linear=0.9, most=4, tight=0.8),
    "blocks": Likely(blocks=1.0, bidirectional=0.3),
    "both ways": Likely(bidirectional=1.0, blocks=0.5, tight=0.9),
    "zeros": Likely(zeros=0.3, bidirectional=0.4, blocks=0.4),
    "little memory": Likely(tight=1.0, unlimited=0, bidirectional=0.5),
}


def proved(problem: Problem, diagram: Diagram) -> int | None:
    """None where nothing fits, or no micro-batch walks a chain."""
    try:
        return decision_diagram(problem, diagram)
    except RefusedEvidenceError as why:
        assert "nothing is admitted" in str(why) or "no micro-batch" in str(why)
        return None


def drawn_with(random: Random, problem: Problem) -> Diagram:
    """Some or all stages: of any chains, with the device whose span it is, or of one, to its first stage."""
    where, makespan = problem.placement, problem.objective == Objective.MAKESPAN
    to_the_first = not makespan and random.random() < 0.3
    every = [stage for chain in ([random.choice(where.chains)] if to_the_first else where.chains) for stage in chain]
    stages = tuple(stage for stage in every if random.random() < random.choice((0.7, 1))) or tuple(every)
    device = None if makespan or to_the_first else where.stage_device[random.choice(stages)]
    return Diagram(stages, device=device)


def guided(random: Random, problem: Problem, diagram: Diagram) -> Diagram:
    """By some or all of its stages, and all of the device that counts."""
    where, likely = problem.placement.stage_device, random.choice((0.6, 1))
    some = [stage for stage in diagram.stages if random.random() < likely or where[stage] == diagram.device]
    return replace(diagram, guide=tuple(some) or diagram.stages, rows=random.choice((None, None, 1, 4, 64)))


def tiny(random: Random, likely: Likely) -> Iterator[tuple[Problem, int, Diagram, int]]:
    """A problem, its optimum, a diagram of it, and what that proves."""
    while True:
        problem = replace(draw(random, likely), objective=random.choice((Objective.MAKESPAN, Objective.SPAN)))
        try:
            best = least_value(problem, problem.objective, 3_000)
        except TooManyOrdersError:
            continue
        problem = with_least_memory(without_scale(problem))
        diagram = drawn_with(random, problem)
        exact = proved(problem, diagram)
        if best is not None and exact is not None:
            yield problem, int(best), diagram, exact


@pytest.mark.parametrize("name", LIKELY)
def test_no_schedule_is_below_and_only_what_ends_later_is_left_out(name: str) -> None:
    """Merged labels prove no more than all; below a value, with any guide, that or as much as all labels prove."""
    random, attained = Random(name), 0
    for problem, best, diagram, exact in islice(tiny(random, LIKELY[name]), 8):
        width = random.choice((1, 2, 8))
        merged = proved(problem, replace(diagram, width=width))
        assert merged is not None
        assert merged <= exact <= best
        attained += exact == best
        for near in (max(0, exact - 1), exact + random.choice((0, 1, 9, 40)), best + 1):
            below = guided(random, problem, replace(diagram, below=near))
            found, of_merged = proved(problem, below), proved(problem, replace(below, width=width))
            assert found is not None
            assert of_merged is not None
            assert min(near, exact) <= found <= min(near, best)
            assert of_merged <= min(near, best)
    assert attained > 0


@pytest.mark.parametrize(("objective", "device"), [("makespan", None), ("span", 0), ("span", 1)])
def test_all_stages_guide_to_what_all_labels_prove(objective: str, device: int | None) -> None:
    """Of one chain: of several a guide knows when the last micro-batch of another is done, which a label does not."""
    problem = v_shape(2, 4, 2.5, times=UNEVEN, objective=objective)
    diagram = Diagram((0, 1, 2, 3), device=device)
    exact = decision_diagram(problem, diagram)
    for below in (exact - 1, exact, exact + 1, exact + 100):
        guided = replace(diagram, guide=diagram.stages, below=below)
        for rows in (None, 1, 8):
            assert decision_diagram(problem, replace(guided, rows=rows)) == min(below, exact)


def test_a_period_is_bounded_by_no_diagram() -> None:
    with pytest.raises(RefusedEvidenceError):
        decision_diagram(v_shape(2, 4, 3, objective="period"), Diagram((0, 1, 2, 3)))


def test_rounds_that_repeat_are_skipped_to_the_same_value() -> None:
    problem = v_shape(2, 130, 2.5, times=UNEVEN)
    skipped = Diagram((0, 3), 4, device=0)
    followed = replace(skipped, guide=(0, 3), below=2**40)
    assert decision_diagram(problem, skipped) == decision_diagram(problem, followed)


@pytest.mark.parametrize(("rows", "most"), [(None, 83), (1, 81), (64, 84)])
def test_more_rows_of_a_device_prove_more_where_labels_are_merged(rows: int | None, most: int) -> None:
    problem = with_least_memory(bidirectional(2, 6, 2, "span"))
    stages = tuple(stage for chain in problem.placement.chains for stage in chain)
    merged = Diagram(stages, 1, device=0)
    assert decision_diagram(problem, merged) == 79
    assert decision_diagram(problem, replace(merged, below=most, guide=stages, rows=rows)) == most
    assert decision_diagram(problem, replace(merged, below=most + 1, guide=stages, rows=rows)) <= most


@pytest.mark.parametrize(
    "diagram",
    [
        Diagram(()),
        Diagram((1, 0), device=0),
        Diagram((0, 0), device=0),
        Diagram((0, 9), device=0),
        Diagram((0, 1), 0, device=0),
        Diagram((0, 1), 1025, device=0),
        Diagram((0, 1), 8, -1, (0,), device=0),
        Diagram((0, 1), 8, 2**51, (0,), device=0),
        Diagram((0, 1), 8, None, (0,), device=0),
        Diagram((0, 1), 8, 500, device=0),
        Diagram((0, 1), 8, 500, (2,), device=0),
        Diagram((0, 1), 8, 500, (1,), device=0),
        Diagram((0, 1, 3), 8, 500, (0, 1), device=0),
        Diagram((0, 1), 8, 500, (1, 0), device=0),
        Diagram((0, 1), 8, 500, (0,), 0, device=0),
        Diagram((0, 1), 8, 500, (0,), 1025, device=0),
        Diagram((0, 1), 8, rows=8, device=0),
        Diagram((1, 2), device=0),
        Diagram((0, 1), device=7),
    ],
)
def test_evidence_of_no_diagram_is_refused(diagram: Diagram) -> None:
    genuine = Certificate("decision diagram", 1, "", 0, Diagram((0, 1), 8, 500, (0,), 4, device=0))
    assert check_bound(v_shape(2, 8, 3), genuine).verdict is Verdict.VERIFIED
    assert check_bound(v_shape(2, 8, 3), replace(genuine, evidence=diagram)).verdict is Verdict.REFUSED


def test_what_counts_is_what_the_objective_says() -> None:
    genuine = Certificate("decision diagram", 1, "", 0, Diagram((0, 1, 2, 3), 8))
    of_device = replace(genuine, evidence=Diagram((0, 1, 2, 3), 8, device=1))
    makespan, span = bidirectional(2, 4, 2), bidirectional(2, 4, 2, "span")
    stages = tuple(stage for chain in span.placement.chains for stage in chain)
    genuine = replace(genuine, evidence=Diagram(stages, 8))
    of_device = replace(genuine, evidence=Diagram(stages, 8, device=1))
    assert check_bound(makespan, genuine).verdict is Verdict.VERIFIED
    assert check_bound(makespan, of_device).verdict is Verdict.REFUSED
    assert check_bound(span, of_device).verdict is Verdict.VERIFIED
    assert check_bound(span, genuine).verdict is Verdict.REFUSED  # of several chains
    assert check_bound(span, replace(genuine, evidence=Diagram(stages[1:2], 8))).verdict is Verdict.VERIFIED


def test_not_verified_where_the_replay_does_not_know_the_option() -> None:
    claim = Certificate("decision diagram", 1, "", 0, Diagram((0, 1), 8, device=0))
    for name, value in (("rounds", True), ("whole", [0]), ("whole_steps", 2), ("blocks", True)):  # of other versions
        other = evidence_from(evidence_document(Diagram((0, 1), 8, device=0)) | {name: value})
        assert check_bound(v_shape(2, 4, 3), replace(claim, evidence=other)).verdict is Verdict.NOT_VERIFIED
    large = v_shape(2, 8, 3, times={"forward": 10**7, "backward": 10**7 + 1})
    below = Diagram((0, 1, 2, 3), 8, 500, (0, 1, 2, 3), device=0)
    assert check_bound(large, replace(claim, evidence=below)).verdict is Verdict.NOT_VERIFIED


def test_several_tasks_of_a_pass_are_known_to_the_stages_of_one_chain_alone() -> None:
    tasks = with_least_memory(of_tasks(v_shape(2, 4, 3)))
    assert decision_diagram(tasks, Diagram((1, 2), 8)) > 0
    for other in (Diagram((0, 1), device=0), Diagram((0,), 8, 20, (0,))):
        with pytest.raises(NotCoveredError):
            decision_diagram(tasks, other)


EVERY_OPTION = Diagram((0, 2, 3), 16, 1_000, (0, 2), 8, 1, Fraction(1, 4))


@pytest.mark.parametrize("one", [Diagram((0,)), EVERY_OPTION])
def test_read_back_as_written(one: Diagram) -> None:
    assert evidence_from(evidence_document(one)) == one
    # As versions wrote it that knew more options.
    assert evidence_from(evidence_document(one) | {"whole": [], "whole_steps": None, "rounds": False}) == one


@pytest.mark.parametrize(("name", "value"), [("stages", 3), ("stages", ["a"]), ("width", None), ("guide", ["a"])])
def test_another_type_cannot_be_read(name: str, value: object) -> None:
    written = evidence_document(Diagram((0,), 4))
    if value is None:  # the one key of these that may be null
        assert evidence_from(written | {name: value}) == Diagram((0,))
    else:
        read = evidence_from(written | {name: value})
        assert isinstance(read, UnknownForm)
        assert name in str(read)
