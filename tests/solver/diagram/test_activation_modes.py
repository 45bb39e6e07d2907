"""Bounds by diagrams of held activations: values that are known, and each step of the argument is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from random import Random
from threading import Event

import pytest

from benchmarks.cases.drawn_tasks import drawn_tasks
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.features.device_resources import DeviceResources
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.solution import Progress
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.saving.certificates import certificates
from solver.diagram import activation_mode_bounds
from solver.diagram.activation_mode_bounds import bounds_of_activation_modes
from solver.diagram.activation_modes.relaxation import ModelledDevice, ModeRelaxation
from solver.diagram.activation_modes.states import Move, State, States
from solver.engine.construction.sequential import Sequential
from solver.engine.engine import ENGINE
from solver.solve import solve
from tests.support.counted import counted
from tests.support.exact_optimum import exact_optimum
from tests.support.mode_problems import copying_back, putting_off
from tests.support.small_memory import small_memory
from tests.support.tiny_memory import tiny_memory

AMPLE, PROBLEMS = 10**8, 80


def _claims(problem: Problem, proved: float, known: float) -> list[Certificate]:
    return [*bounds_of_activation_modes(problem, Event(), lambda: (proved, known), AMPLE)]


@cache
def _small(count: int) -> list[tuple[Problem, float, float]]:
    """So many problems with the bound in words and the optimum."""
    return [*_draw(count)]


def _draw(count: int) -> Iterator[tuple[Problem, float, float]]:
    for number in range(count):
        problem = (small_memory, tiny_memory, putting_off, copying_back)[number % 4](Random(number))
        if (
            not problem.walks.scale
            and why_infeasible(problem) is None
            and (known := exact_optimum(problem)) is not None
        ):
            yield problem, float(certificates(problem, problem.objective)[0].value_ticks), float(known)


def _too_high(count: int) -> bool:
    """True if a problem has a claim above the optimum."""
    return any(
        claim.value_ticks > optimum
        for problem, proved, optimum in _small(count)
        for claim in _claims(problem, max(0.0, proved - 4), optimum + 4)
    )


def test_values_that_another_model_proves() -> None:
    """Of CP-SAT's exact model of one device, with the other stages as delays."""
    recompute = drawn_tasks(13)[9]
    assert [claim.value_ticks for claim in _claims(recompute, 357, 404)][-1] == 404
    found = bounds_of_activation_modes(drawn_tasks(13)[11], Event(), lambda: (631, 716), 3 * 10**5)
    assert [claim.value_ticks for claim in found if len(claim.evidence.stages) == 1][-1] == 676


def test_copies_back_wait_for_memory_that_passes_hold() -> None:
    """Room for one activation: 9 micro-batches, each of which takes it for F, the copies, B and W, 63 ticks."""
    assert [claim.value_ticks for claim in _claims(drawn_tasks(1)[13], 366, 567)][-1] == 9 * 63


def test_two_devices_prove_more_than_one() -> None:
    problem = drawn_tasks(62)[8]
    by_one, with_two = (
        bounds_of_activation_modes(problem, Event(), lambda: (200, 315), work) for work in (10**4, 6 * 10**5)
    )
    best = [*by_one][-1]
    assert len(best.evidence.stages) == 1
    better = next(claim for claim in with_two if claim.value_ticks > best.value_ticks)
    assert len(better.evidence.stages) == 2
    assert check_bound(problem, better).verdict is Verdict.VERIFIED


def test_a_solve_proves_what_no_bound_in_words_does() -> None:
    """By the engine's turns of diagrams, alone."""
    diagrams = tuple(one for one in ENGINE.subsolvers if one.name == "diagrams below a value")
    engine = replace(ENGINE, construction=(Sequential(),), subsolvers=diagrams)
    reached = Event()

    def end_at_404(moment: Progress) -> None:
        if moment.lower_bound >= 404:
            reached.set()

    found = solve(drawn_tasks(13)[9], counted(1), end_at_404, reached, engine=engine)
    assert found.lower_bound == 404


def test_nothing_where_it_knows_nothing() -> None:
    problem = drawn_tasks(13)[9]
    assert not _claims(problem.keeping_activations(), 0, 10**4)
    assert not _claims(replace(problem, resources=DeviceResources(transfer_stream="link")), 0, 10**4)
    assert not [*bounds_of_activation_modes(problem, Event(), lambda: (357, 404), 10)], "too little work"
    stopped = Event()
    stopped.set()
    assert not [*bounds_of_activation_modes(problem, stopped, lambda: (357, 404), AMPLE)]


@pytest.mark.parametrize("part", ["room", "longest", "turns", "tail", "copies"])
def test_each_step_of_the_argument_is_needed(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is a tick or a unit too strict claims more than the optimum somewhere."""
    real = activation_mode_bounds.mode_relaxation

    def stricter(problem: Problem, paths: Paths, stages: Sequence[int], owner: int | None) -> ModeRelaxation:
        own = real(problem, paths, stages, owner)
        round_trip = tuple(one._replace(round_trip=one.round_trip + (part == "turns")) for one in own.stages)
        modes = [
            mode._replace(steps=tuple(s._replace(takes=max(0, s.takes)) for s in mode.steps)) for mode in own.modes
        ]
        devices = tuple(_stricter(one, part) for one in own.devices)
        return own._replace(stages=round_trip, modes=tuple(modes) if part == "copies" else own.modes, devices=devices)

    monkeypatch.setattr(activation_mode_bounds, "mode_relaxation", stricter)
    assert _too_high(PROBLEMS)


def _stricter(one: ModelledDevice, part: str) -> ModelledDevice:
    if part == "room":
        return one._replace(room=None if one.room is None else one.room - 1)
    return {"longest": one._replace(longest=0), "tail": one._replace(tail=one.tail + 1)}.get(part, one)


@pytest.mark.parametrize("part", ["beside", "put off", "its own"])
def test_copies_back_run_beside_what_memory_has_room_for(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never while a pass runs, never while a weight pass is put off, or only when that of a gradient had run before."""
    real = States.moves

    def stricter(own: States, state: State, queues: Sequence[Sequence[int]]) -> Iterator[Move]:
        for move in real(own, state, queues):
            last, slack = state.runs[move.device], move.slack
            later = 0 if last is None else own._holding.stages[last].later
            if (move.after_last_pass or move.during_last_pass) and slack is not None:
                slack = 0 if part == "put off" else slack - later * (move.during_last_pass and part == "its own")
            if not (move.during_last_pass and part == "beside"):
                yield move._replace(slack=slack)

    problem = copying_back(Random({"beside": 37, "put off": 538, "its own": 712}[part]))
    optimum = exact_optimum(problem)
    assert optimum is not None
    claims = _claims(problem, 0, float(optimum) + 4)
    assert claims[-1].value_ticks <= optimum
    monkeypatch.setattr(States, "moves", stricter)
    assert _claims(problem, 0, float(optimum) + 4)[-1].value_ticks > optimum
