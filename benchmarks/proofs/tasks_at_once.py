"""Tasks that occupy several streams at once: bounds, relaxation, check and constructions against every order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from random import Random

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.relaxations import FURTHER_RESOURCES
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.validation.validator import validate
from solver.bounds.analytic.catalogue import certificates
from solver.construction.timing import best_times
from solver.tasks.dispatch import listed
from solver.tasks.job_graph import with_modes
from solver.tasks.rank_search import Serial
from tests.support.norm_problems import tiny_norms
from tests.support.piece_problems import compared, features, least_of
from tests.support.task_brute_force import TooManyOrdersError
from tests.support.tasks_at_once import tiny_at_once

# List schedules of a problem.
_LISTED = 5


def compare(number: int) -> tuple[Sequence[str], Sequence[str]]:
    """Return what the problem of this number has, and what was seen; `AssertionError` where a claim is wrong."""
    one = tiny_at_once(Random(number))
    try:
        return features(one), ("problems", *against_every_order(one))
    except TooManyOrdersError:
        return features(one), ("too many orders",)


def norms(number: int) -> tuple[Sequence[str], Sequence[str]]:
    """Return the same of a problem whose steps wait for the norm of all gradients, which is solved too."""
    one = tiny_norms(Random(number))
    try:
        return features(one), ("problems", *against_every_order(one), *compared(one))
    except TooManyOrdersError:
        return features(one), ("too many orders",)


def against_every_order(one: Problem) -> Iterator[str]:
    """Yield what was seen of a problem of which every order is tried."""
    least = least_of(one)
    if least is None:
        yield "nothing fits"
        return
    for certificate in certificates(one, one.objective):
        finding = check_bound(one, certificate)
        assert certificate.value_ticks <= least, f"{certificate.kind}: {certificate.value_ticks} above {least}"
        assert finding.verdict is not Verdict.REFUSED, f"{certificate.kind}: {finding.text}"
        if certificate.value_ticks == least:
            yield "a bound attained"
    poorer = least_of(FURTHER_RESOURCES.relax(one))
    assert poorer is not None, "nothing fits where tasks occupy one stream each"
    assert poorer <= least, f"{poorer} where tasks occupy one stream each, above {least}"
    if poorer < least:
        yield "more where streams are occupied at once"
    for schedule in constructed(one):
        timeline = best_times(one, schedule)
        broken = [violation for violation in validate(timeline) if violation.rule != "memory"]
        assert not broken, f"{schedule.name}: {broken[0].text}"
        assert validate(timeline) or value_of(one, timeline) >= least, f"{schedule.name} is below {least}"
        yield "schedules"


def constructed(one: Problem) -> Iterator[Schedule]:
    """Yield list schedules, and one by serial generation with the heads of tasks as ranks.

    Serial generation alone places no gatherings of parameters.
    """
    yield from islice(listed(one), _LISTED)
    if any(stage.gather for stage in one.stages):
        return
    jobs = jobs_of(one)
    for fused in (False, True):
        with suppress(ValueError):
            serial = Serial(jobs, with_modes(jobs, fused))
            found = serial.run(serial.heads)
            schedule = None if found is None else schedule_of_starts(jobs, serial.starts(found[1]), "serial")
            if schedule is not None:
                yield schedule
