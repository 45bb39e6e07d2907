"""Candidates from published schedules: each is simulated and validated, or has the reason why it cannot be used.

A solve tries them in `solver/engine/construction/published.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from formulations.jobs.jobs_of_problem import jobs_of
from heuristics.catalogue import Heuristic
from pipesched.errors import Disagreement, DoesNotApply, left_out_note
from pipesched.problem.attainable_spans import Value
from pipesched.problem.chains.microbatch_chains import MicrobatchChains, unequal_microbatches
from pipesched.problem.passes import SAVING
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from pipesched.results.candidate import Candidate
from pipesched.schedule.chain_timelines import schedule_back, timeline_into
from pipesched.schedule.metrics import measure
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.tasks.dispatch import expanded


def candidate(problem: Problem, heuristic: Heuristic, chains: MicrobatchChains | None = None) -> Candidate:
    """Return the result of one published schedule: timeline, metrics, if it fits, or why it does not apply.

    A schedule that breaks any rule but the memory limit, or raises an error, is left out: `defect` is True, `reason`
    says why, and nothing is raised. If `chains` are given, `problem` is that with a chain for each factor, and the
    schedule is made for the unequal micro-batches that the chains stand for; its timeline is one of `problem`.
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


def _kept_although_refused(problem: Problem, schedule: Schedule) -> list[StageId]:
    """Return the stages that offload or recompute nothing in the schedule although the file requires it."""
    must = {stage for stage, one in enumerate(problem.stages) if not one.may_keep}
    if not must:
        return []
    return sorted(must - {p.stage for p in schedule.passes() if p.kind in SAVING})


def _fitting(problem: Problem, schedule: Schedule, name: str) -> Candidate:
    """Return the result of an order with copies or recomputations, simulated as it is if that fits the memory.

    Else with waits between streams added, the best that fits; if none fits, the result without them.
    """
    found = simulated_and_validated(problem, schedule, name)
    if found.fits:
        return found
    waiting = [simulated_and_validated(problem, one, name) for one in _with_waits(problem, schedule)]
    return min((one for one in waiting if one.fits), key=lambda one: _value(problem, one), default=found)


def _with_waits(problem: Problem, schedule: Schedule) -> Iterator[Schedule]:
    """Yield up to three orders of tasks, from an order of passes, with the waits between streams that memory needs.

    For unequal micro-batches they are made on the problem with a chain for each factor.
    """
    chains = unequal_microbatches(problem)
    if chains is None:
        yield from expanded(jobs_of(problem), schedule)
        return
    into = timeline_into(chains, simulate(problem, schedule)).schedule
    yield from (schedule_back(chains, one) for one in expanded(jobs_of(chains.problem), into))


def _value(problem: Problem, found: Candidate) -> Value:
    assert found.timeline is not None
    return value_of(problem, found.timeline)


def simulated_and_validated(problem: Problem, schedule: Schedule, name: str) -> Candidate:
    """Return the result of a schedule called `name`, simulated and validated; it fits if memory suffices.

    Where memory does not suffice the result has the timeline and, as `reason`, the violation. Without a timeline, but
    with the reason, if it breaks the required order of micro-batches. Raises `Disagreement` if it breaks any other
    rule, `Deadlock` if it cannot run to its end, and `BadInput` if a pass is missing or appears twice.
    """
    timeline = simulate(problem, schedule)
    violations = validate(timeline)
    if violations and violations[0].rule == "micro-batch order":
        return Candidate(name, None, None, False, violations[0].text)
    wrong = [violation for violation in violations if violation.rule != "memory"]
    if wrong:
        raise Disagreement(f"{name} gave a schedule that is not valid: {wrong[0].text}")
    too_much = violations[0].text if violations else ""
    return Candidate(name, timeline, measure(timeline), not violations, too_much)
