"""Candidates from published schedules: each simulated, validated and checked against the memory, or why there is none.

A solve tries them in `solver/engine/construction/published.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from formulations.jobs.jobs_of_problem import jobs_of
from heuristics.catalogue import Heuristic
from pipesched.errors import Disagreement, DoesNotApply, left_out_note
from pipesched.problem.chains.microbatch_chains import MicrobatchChains, unequal_microbatches
from pipesched.problem.passes import SAVING
from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate
from pipesched.schedule.chain_timelines import schedule_back, timeline_into
from pipesched.schedule.metrics import measure
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.tasks.dispatch import expanded


def candidate(problem: Problem, heuristic: Heuristic, chains: MicrobatchChains | None = None) -> Candidate:
    """Return the candidate of one published schedule.

    A schedule that breaks any rule but the memory limit, or raises an error, is a defect of this tool and is left out.
    If `chains` are given, the problem is theirs, and the schedule is that of the unequal micro-batches that the chains
    stand for.
    """
    try:
        if chains is not None:
            own = _candidate(chains.of, heuristic)
            return own if own.timeline is None else replace(own, timeline=timeline_into(chains, own.timeline))
        return _candidate(problem, heuristic)
    except DoesNotApply as reason:
        return Candidate(heuristic.name, None, None, False, str(reason))
    except Exception as error:
        return Candidate(heuristic.name, None, None, False, left_out_note(heuristic.name, error), defect=True)


def _candidate(problem: Problem, heuristic: Heuristic) -> Candidate:
    schedule = heuristic.order(problem)
    kept = _kept_although_refused(problem, schedule)
    if kept:
        stages = ", ".join(map(str, kept))
        text = f"keeps the activations of stage {stages}; memory.decide has them offloaded or recomputed"
        return Candidate(heuristic.name, None, None, False, text)
    if problem.network.has_activation_modes and any(p.kind in SAVING for p in schedule.passes()):
        return _fitting(problem, schedule, heuristic.name)
    return simulated_and_validated(problem, schedule, heuristic.name)


def _kept_although_refused(problem: Problem, schedule: Schedule) -> list[int]:
    """Return the stages whose activations the schedule keeps although the file does not allow it."""
    must = {stage for stage, one in enumerate(problem.stages) if not one.may_keep}
    if not must:
        return []
    return sorted(must - {p.stage for p in schedule.passes() if p.kind in SAVING})


def _fitting(problem: Problem, schedule: Schedule, name: str) -> Candidate:
    """Return an order with copies or recomputations unchanged, or with added waits if it then fits in memory."""
    found = simulated_and_validated(problem, schedule, name)
    if found.fits:
        return found
    waiting = [simulated_and_validated(problem, one, name) for one in _with_waits(problem, schedule)]
    return min((one for one in waiting if one.fits), key=lambda one: _value(problem, one), default=found)


def _with_waits(problem: Problem, schedule: Schedule) -> Iterator[Schedule]:
    """Yield an order of passes with the waits that memory needs; for unequal micro-batches, by their chains."""
    chains = unequal_microbatches(problem)
    if chains is None:
        yield from expanded(jobs_of(problem), schedule)
        return
    into = timeline_into(chains, simulate(problem, schedule)).schedule
    yield from (schedule_back(chains, one) for one in expanded(jobs_of(chains.problem), into))


def _value(problem: Problem, found: Candidate) -> Fraction | int:
    assert found.timeline is not None
    return value_of(problem, found.timeline)


def simulated_and_validated(problem: Problem, schedule: Schedule, name: str) -> Candidate:
    """Simulate and validate a schedule; `Disagreement` if it breaks any rule but the memory limit."""
    timeline = simulate(problem, schedule)
    violations = validate(timeline)
    if violations and violations[0].rule == "micro-batch order":
        return Candidate(name, None, None, False, violations[0].text)
    wrong = [violation for violation in violations if violation.rule != "memory"]
    if wrong:
        raise Disagreement(f"{name} gave a schedule that is not valid: {wrong[0].text}")
    too_much = violations[0].text if violations else ""
    return Candidate(name, timeline, measure(timeline), not violations, too_much)
