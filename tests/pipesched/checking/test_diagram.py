"""The check of decision diagrams: never above the optimum, exact where nothing is merged; what is none is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.bound_problems import draw
from benchmarks.proofs.exhaustive.optimum import NotTiny, least_value
from pipesched.checking.check import check_bound
from pipesched.checking.diagram.argument import decision_diagram
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError, Verdict
from pipesched.checking.memory.least_held import least_held
from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import UnknownForm
from pipesched.results.evidence_document import evidence_document, evidence_from
from tests.support.diagrams import v_shape

DRAWN = [branch for branch in BRANCHES if "crossings" in branch.kind]


def proved(problem: Problem, diagram: Diagram) -> int | None:
    """None where the check does not cover it, or nothing fits."""
    try:
        return decision_diagram(problem, diagram)
    except (NotCoveredError, RefusedEvidenceError):
        return None


def drawn_with(random: Random, problem: Problem, option: str) -> Diagram:
    """Some or all stages of a chain."""
    chain = random.choice(problem.placement.chains)
    count = random.randint(1, len(chain)) if option == "some stages" else len(chain)
    stages = tuple(sorted(random.sample(chain, count), key=chain.index))
    return Diagram(stages, blocks=any(stage.overlapped is not None for stage in problem.stages))


@pytest.mark.parametrize("option", ["all stages", "some stages"])
def test_no_schedule_is_below_and_only_what_ends_later_is_left_out(option: str) -> None:
    """Merged labels prove no more than all; below a value, with any guide, that or what all labels prove."""
    random, seen, attained = Random(option), 0, 0
    while seen < 16:
        problem = draw(random, random.choice(DRAWN).likely)
        problem = replace(problem, objective=random.choice((Objective.MAKESPAN, Objective.SPAN)))
        try:
            best = least_value(problem, problem.objective, 3_000)
        except NotTiny:
            continue
        problem = least_held(without_scale(problem))
        diagram = drawn_with(random, problem, option)
        exact = proved(problem, diagram)
        if best is None or exact is None:
            continue
        width = random.choice((1, 2, 8))
        merged = proved(problem, replace(diagram, width=width))
        assert merged is not None and merged <= exact <= best
        seen, attained = seen + 1, attained + (exact == best)
        guide = tuple(stage for stage in diagram.stages if random.random() < 0.6) or diagram.stages
        for near in (max(0, exact - 1), exact, exact + random.choice((1, 9, 40))):
            below = replace(diagram, below=near, guide=guide)
            assert proved(problem, below) in (None, min(near, exact))
            assert (proved(problem, replace(below, width=width)) or 0) <= min(near, exact)
    assert attained > 0


@pytest.mark.parametrize(
    "diagram",
    [
        Diagram(()),
        Diagram((1, 0)),
        Diagram((0, 9)),
        Diagram((0, 1), 0),
        Diagram((0, 1), 8, -1),
        Diagram((0, 1), 8, None, (0,)),
        Diagram((0, 1), 8, 500, (2,)),
    ],
)
def test_evidence_of_no_diagram_is_refused(diagram: Diagram) -> None:
    genuine = Certificate("decision diagram", 1, "", 0, Diagram((0, 1), 8, 500, (0,)))
    assert check_bound(v_shape(2, 8, 3), genuine).verdict is Verdict.VERIFIED
    assert check_bound(v_shape(2, 8, 3), replace(genuine, evidence=diagram)).verdict is Verdict.REFUSED


def test_not_verified_where_the_replay_does_not_know_the_option() -> None:
    blocks = v_shape(2, 4, 3, times={"forward": 2, "backward": 4, "overlapped": 5})
    claim = Certificate("decision diagram", 1, "", 0, Diagram((0, 1), 8))
    assert check_bound(blocks, claim).verdict is Verdict.NOT_VERIFIED
    assert check_bound(blocks, replace(claim, evidence=Diagram((0, 1), 8, blocks=True))).verdict is Verdict.VERIFIED
    for name, value in (("rounds", True), ("whole", [0]), ("whole_steps", 2)):  # what other versions wrote
        other = evidence_from(evidence_document(Diagram((0, 1), 8)) | {name: value})
        assert check_bound(v_shape(2, 4, 3), replace(claim, evidence=other)).verdict is Verdict.NOT_VERIFIED
    large = v_shape(2, 8, 3, times={"forward": 10**7, "backward": 10**7 + 1})
    below = Diagram((0, 1, 2, 3), 8, 500, (0, 1, 2, 3))
    assert check_bound(large, replace(claim, evidence=below)).verdict is Verdict.NOT_VERIFIED


EVERY_OPTION = Diagram((0, 2, 3), 16, 1_000, (0, 2), blocks=True, tick=Fraction(1, 4))


@pytest.mark.parametrize("one", [Diagram((0,)), EVERY_OPTION])
def test_read_back_as_written(one: Diagram) -> None:
    assert evidence_from(evidence_document(one)) == one
    # As versions wrote it that knew more options.
    assert evidence_from(evidence_document(one) | {"whole": [], "whole_steps": None, "rounds": False}) == one


@pytest.mark.parametrize(("name", "value"), [("stages", 3), ("blocks", 1), ("width", None), ("guide", ["a"])])
def test_another_type_cannot_be_read(name: str, value: object) -> None:
    written = evidence_document(Diagram((0,), 4))
    if value is None:  # the one key of these that may be null
        assert evidence_from(written | {name: value}) == Diagram((0,))
    else:
        read = evidence_from(written | {name: value})
        assert isinstance(read, UnknownForm)
        assert name in str(read)
