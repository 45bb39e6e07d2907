"""The solve as a whole: known optima are proved, claims hold against brute force, limits and interruption are kept."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from threading import Event

import pytest

from formulations.exact.exact_model import ExactModel, improving
from pipesched.errors import Disagreement
from pipesched.files.problem_file import problem_from, with_objective
from pipesched.problem.problem import Objective
from pipesched.results.solution import Progress, Status
from pipesched.validation.validator import validate
from solver.backends.cp_sat import EXHAUSTIVE
from solver.bounds.analytic.catalogue import certificates
from solver.engine import analytic_bounds
from solver.engine import improving_model as shared_model
from solver.engine.construction import sequential
from solver.engine.engine import ENGINE
from solver.engine.search import Search
from solver.engine.subsolvers import exact_model
from solver.limits import Limits
from solver.solve import solve, without_search
from tests.support.counted import counted
from tests.support.exhaustive.optimum import optimum
from tests.support.makers import gpt_1_5b, problem, schedule
from tests.support.tiny_problem import tiny_problem

# One worker and CP-SAT's own clock: the same answer on every machine.
SURE = counted(60)


@pytest.mark.parametrize(("activations", "span"), [(4, 456.585), (5, 417.289), (6, 415.631), (8, 415.631)])
def test_known_optima_of_the_1_5b_profile_are_proved(activations: int, span: float) -> None:
    one = gpt_1_5b(4, 8, activations)
    solution = solve(one, SURE)
    assert solution.status is Status.OPTIMAL
    assert solution.value_ticks is not None
    assert one.in_units(solution.value_ticks) == pytest.approx(span, abs=1e-9)


@pytest.mark.parametrize("literals", [10**6, -1], ids=["order literals", "intervals"])
def test_claims_hold_against_brute_force(literals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(*arguments: object, **_: object) -> ExactModel:
        return improving(*arguments, most_literals=literals)  # type: ignore[arg-type]

    monkeypatch.setattr(shared_model, "improving", limited)
    proved = 0
    for seed in (*range(11), *range(12, 15)):  # of 11 with order literals the span takes 46 s of processor time
        one = tiny_problem(Random(seed))
        for objective in ((Objective.MAKESPAN, Objective.SPAN)[(seed + (literals > 0)) % 2],):
            best = optimum(one, objective)
            solution = solve(with_objective(one, objective), counted(2))
            if best is None:
                assert solution.status is Status.INFEASIBLE, seed
                continue
            least = one.in_units(best.value)  # ticks may be finer in what is solved
            assert solution.lower_bound <= least, seed
            assert solution.value is not None
            assert solution.value >= least, seed
            assert solution.status is not Status.OPTIMAL or solution.value == least, seed
            assert solution.timeline is not None
            assert not validate(solution.timeline), seed
            proved += solution.status is Status.OPTIMAL
    assert proved > 8


def test_a_device_whose_static_memory_alone_is_too_much() -> None:
    """Bounds that count what fits into memory are not asked: there is less than none."""
    document = {
        "devices": 3,
        "microbatches": 4,
        "placement": "v-shape",
        "times": {"forward": [3, 2, 3, 2, 2, 4], "backward": 3, "weight": 2, "fused": Fraction(9, 2)},
        "memory": {
            "capacity": 1,
            "static": [4, 5, 4],
            "activation": [1, 1, 1, 1, 1, Fraction(1, 2)],
            "freed_by_backward": Fraction(1, 4),
        },
    }
    found = solve(problem_from(document), Limits(seconds=5, workers=1))
    assert found.status is Status.INFEASIBLE and "static memory" in found.reason


def test_the_same_seed_and_one_worker_give_the_same_answer() -> None:
    one = gpt_1_5b(3, 6, 3)
    first, second = (solve(one, counted(1, seed=7)) for _ in range(2))
    assert first.timeline == second.timeline
    assert first.lower_bound_ticks == second.lower_bound_ticks


def test_progress_only_improves_and_ends_at_the_answer() -> None:
    heard: list[Progress] = []
    solution = solve(gpt_1_5b(4, 8, 5), SURE, heard.append)
    assert set(solution.history) <= set(heard)
    steps = [(moment.value, moment.lower_bound) for moment in solution.history]
    assert steps == list(dict.fromkeys((moment.value, moment.lower_bound) for moment in heard))
    bounds = [moment.lower_bound for moment in heard]
    values = [moment.value for moment in heard if moment.value is not None]
    assert bounds == sorted(bounds)
    assert values == sorted(values, reverse=True)
    assert (float(values[-1]), float(bounds[-1])) == (solution.value, solution.lower_bound)


def test_stopping_keeps_the_best_schedule_found() -> None:
    stop = Event()

    def report(moment: Progress) -> None:
        if moment.value is not None:
            stop.set()

    solution = solve(gpt_1_5b(8, 24, 6), SURE, report, stop)
    assert solution.interrupted
    assert solution.status is Status.FEASIBLE
    assert solution.timeline is not None
    assert not validate(solution.timeline)


def test_a_gap_that_is_good_enough_ends_the_search() -> None:
    solution = solve(gpt_1_5b(8, 24, 6), Limits(seconds=600, workers=1, gap=0.6))
    assert solution.status is Status.FEASIBLE
    assert solution.gap is not None
    assert solution.gap <= 0.6


def test_a_fused_backward_is_chosen_where_it_pays() -> None:
    """BW in one go takes 2 instead of 4: on one device nothing else can win."""
    one = problem(1, 3, times={"forward": 1, "backward": 2, "weight": 2, "fused": 2})
    solution = solve(one, SURE)
    assert solution.status is Status.OPTIMAL
    assert solution.value_ticks == 9


def test_blocks_are_used_where_they_pay() -> None:
    """A forward and a full backward together take 3 instead of 4."""
    one = problem(1, 3, times={"forward": 1, "backward": 3, "overlapped": 3})
    solution = solve(one, SURE)
    assert solution.status is Status.OPTIMAL
    assert solution.value_ticks == 1 + 3 + 3 + 3


def test_without_search_still_bounds_and_compares() -> None:
    solution = without_search(gpt_1_5b(4, 8, 4))
    assert solution.status is Status.OPTIMAL
    assert {"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb"} <= {c.name for c in solution.candidates}


@pytest.mark.meets_defects
def test_a_wrong_claim_is_dropped_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound above a schedule is left out with its kind, and what remains proves the optimum all the same."""
    one = gpt_1_5b(2, 2, 2)
    true = certificates(one, one.objective)
    wrong = [true[0].__class__("wrong", 10**9 - n, "a claim that is not true") for n in range(2)]
    monkeypatch.setattr(analytic_bounds, "certificates", lambda *_: [*wrong, *true])
    solution = solve(one, SURE)
    assert solution.status is Status.OPTIMAL
    assert solution.certificate is not None
    assert solution.certificate.kind != "wrong"
    assert len(solution.notes) == 1
    for part in ("wrong", "a claim that is not true", "report this with the problem file"):
        assert part in solution.notes[0]


@pytest.mark.meets_defects
def test_a_step_that_fails_is_told_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-SAT's claims count no more; a schedule that breaks a rule is dropped."""
    one = gpt_1_5b(2, 2, 2)

    def fails(*_: object) -> None:
        raise Disagreement("CP-SAT rejects the model", EXHAUSTIVE)

    monkeypatch.setattr(exact_model, "improve", fails)
    monkeypatch.setattr(sequential, "sequential", lambda problem: schedule("F0.0 F0.0"))
    solution = solve(one, SURE)
    assert solution.timeline is not None
    assert solution.certificate is not None
    if solution.status is not Status.OPTIMAL:
        assert any("CP-SAT rejects the model" in note for note in solution.notes)
    incumbent = Search(one, SURE, lambda _: None, Event(), ENGINE).incumbent
    incumbent.distrust(Disagreement("CP-SAT rejects the model", EXHAUSTIVE))
    before = incumbent.lower_bound
    incumbent.claim(before + 1)
    assert incumbent.lower_bound == before
