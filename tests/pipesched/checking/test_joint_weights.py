"""Diagrams of tasks as stages whose weight tasks hold memory together: never above the optimum of tiny problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random
from threading import Event
from typing import NamedTuple

import numpy as np
import pytest

from pipesched.checking.check import check_bound
from pipesched.checking.diagram import walk
from pipesched.checking.diagram.argument import decision_diagram
from pipesched.checking.diagram.walk import Steps, Walk
from pipesched.checking.finding import RefusedEvidenceError, Verdict
from pipesched.checking.streams.tasks_as_stages import as_plain
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import OfRelaxed, TasksAsStages
from pipesched.results.evidence_document import evidence_document, evidence_from
from solver.diagram.joint_weights import bounds_of_joint_weights
from solver.tasks.as_stages import stream_decomposition
from tests.support.rows_of_tasks import random_rows
from tests.support.tiny_exchange import Times, exchange, least_value, tiny_exchange


class Drawn(NamedTuple):
    """A tiny problem with its optimum, some rows of its tasks as stages, and a diagram of some of these."""

    problem: Problem
    best: int
    rows: TasksAsStages
    plain: Problem
    diagram: Diagram

    @property
    def stage_of(self) -> tuple[int, ...]:
        return tuple(row[0] for row in self.rows.stages)

    def proved(self, **changes: object) -> int:
        diagram = replace(self.diagram, **changes)  # type: ignore[arg-type]
        return decision_diagram(self.plain, diagram, self.stage_of)


def drawn(seeds: range) -> Iterator[Drawn]:
    for seed in seeds:
        random = Random(seed)
        problem = tiny_exchange(random)
        own = stream_decomposition(problem)
        if why_infeasible(problem) is not None or own is None:
            continue
        rows = TasksAsStages(own.rows if random.random() < 0.6 else random_rows(random, problem))
        plain = as_plain(problem, rows)
        every = tuple(stage for chain in plain.placement.chains for stage in chain)
        some = tuple(stage for stage in every if random.random() < random.choice((0.7, 1, 1))) or every
        makespan = problem.objective == Objective.MAKESPAN
        device = None if makespan else plain.placement.stage_device[random.choice(some)]
        yield Drawn(problem, least_value(problem), rows, plain, Diagram(some, device=device, joint=True))


def test_no_schedule_is_below_whatever_is_modelled_merged_or_bounded() -> None:
    attained = more = 0
    for number, one in enumerate(drawn(range(6))):
        random, exact = Random(number), one.proved()
        assert exact <= one.best
        merged = one.proved(width=1)
        assert merged <= exact
        for below in (exact, exact + 1, one.best + 1):
            width, rows = random.choice((None, 1, 2)), random.choice((None, 1, 4))
            found = one.proved(below=below, guide=one.diagram.stages, rows=rows, width=width)
            assert found <= min(below, one.best)
            if width is None:
                assert found >= min(below, exact)
        attained += exact == one.best
        more += exact > one.proved(joint=False)
        assert exact >= one.proved(joint=False)
    assert attained > 1
    assert more > 1


# Short passes, and a long weight task of the experts.
LONG = Times(1, 1, None, 1, 1, 1, 5)


def of_all(problem: Problem, **changes: object) -> Drawn:
    """A diagram of all tasks as stages."""
    own = stream_decomposition(problem)
    assert own is not None
    rows = TasksAsStages(own.rows)
    plain = as_plain(problem, rows)
    every = tuple(stage for chain in plain.placement.chains for stage in chain)
    diagram = replace(Diagram(every, joint=True), **changes)  # type: ignore[arg-type]
    return Drawn(problem, least_value(problem), rows, plain, diagram)


def test_the_next_forward_waits_for_both_weight_tasks() -> None:
    """F until 2, back from the other stage at 6, B until 8, both W until 14; then the same of the other micro-batch."""
    one = of_all(exchange("linear", 2, 2, LONG, {"activation": 1, "capacity": 1}))
    assert (one.proved(), one.best) == (28, 28)
    assert one.proved(joint=False) == 24


def test_without_the_task_that_has_the_activation_any_number_may_be_pending() -> None:
    one = of_all(exchange("linear", 2, 2, LONG, {"activation": 1, "capacity": 1}))
    assert one.proved(stages=(1, 3)) == one.proved(stages=(1, 3), joint=False)
    assert one.proved(stages=(0, 2)) <= 28


def test_bounds_of_the_solver_are_those_of_the_check_and_verified() -> None:
    seen = 0
    for one in drawn(range(40, 46)):
        own = stream_decomposition(one.problem)
        assert own is not None
        stages = [row[0] for row in own.rows]
        near = one.best - 5, one.best + 1
        for found in bounds_of_joint_weights(own.plain, stages, Event(), lambda near=near: near, 50_000):
            claim = own.claim(found)
            assert claim.value_ticks <= one.best
            assert check_bound(one.problem, claim).verdict is Verdict.VERIFIED
            assert evidence_from(evidence_document(claim.evidence)) == claim.evidence  # type: ignore[arg-type]
            assert check_bound(one.problem, replace(claim, value_ticks=one.best + 1)).verdict is Verdict.REFUSED
            seen += 1
    assert seen > 3


def _without_early(steps: Steps) -> Steps:
    """Weight tasks of a B that runs are taken to hold memory of their own."""
    return steps._replace(holder=np.arange(len(steps.holder)))


def _longest_alone(steps: Steps) -> Steps:
    """A micro-batch is taken to have its longest weight task pending at most."""
    return steps._replace(weight=np.array([steps.after[steps.device == d].max() for d in range(len(steps.room))]))


def _more_held(steps: Steps) -> Steps:
    """A pending weight task is taken to hold more than B leaves."""
    return steps._replace(open_=steps.open_ + 1)


ROOM = {"activation": 2, "capacity": 5}
BROKEN: dict[Callable[[Steps], Steps], tuple[int, int, Times, Mapping[str, int]]] = {
    _without_early: (1, 4, Times(0, 1, 4, 2, 1, 0, 4), {"activation": 1, "capacity": 2}),
    _longest_alone: (2, 3, Times(1, 1, None, 1, 1, 1, 1), ROOM),
    _more_held: (2, 3, Times(1, 2, 4, 2, 1, 9, 5), {**ROOM, "freed_by_backward": 1}),
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda rule: rule.__name__)
def test_a_claim_that_a_broken_rule_would_prove_is_refused(
    broken: Callable[[Steps], Steps], monkeypatch: pytest.MonkeyPatch
) -> None:
    devices, microbatches, times, memory = BROKEN[broken]
    one, genuine = of_all(exchange("linear", devices, microbatches, times, memory)), walk.walk_along

    def walk_along(*given: object) -> Walk:
        found = genuine(*given)  # type: ignore[arg-type]
        return found._replace(steps=broken(found.steps))

    with monkeypatch.context() as patch:
        patch.setattr(walk, "walk_along", walk_along)
        claimed = one.proved()
    assert claimed > one.best >= one.proved()
    evidence = OfRelaxed(one.rows, "decision diagram", one.diagram)
    forged = Certificate("tasks as stages", claimed, "", None, evidence)
    assert check_bound(one.problem, forged).verdict is Verdict.REFUSED
    assert check_bound(one.problem, replace(forged, value_ticks=one.proved())).verdict is Verdict.VERIFIED


def test_plain_passes_have_no_joint_weight_tasks() -> None:
    one = of_all(exchange("linear", 2, 2, LONG, {"activation": 1, "capacity": 1}))
    with pytest.raises(RefusedEvidenceError):
        decision_diagram(one.plain, one.diagram)
    claim = Certificate("decision diagram", 1, "", None, one.diagram)
    assert check_bound(one.plain, claim).verdict is Verdict.REFUSED
