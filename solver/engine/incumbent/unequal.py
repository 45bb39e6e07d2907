"""Conversion of reports and results of a search on `MicrobatchChains` back to the problem of unequal micro-batches."""

from __future__ import annotations

from dataclasses import replace

from pipesched.errors import Disagreement
from pipesched.problem.chains.microbatch_chains import MicrobatchChains
from pipesched.problem.rescale import finer
from pipesched.results.candidate import Candidate
from pipesched.results.solution import Progress, Solution
from pipesched.schedule.chain_timelines import timeline_back
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from solver.engine.incumbent.incumbent import Report


def report_of(chains: MicrobatchChains, report: Report) -> Report:
    """Return a report function for the search on chains.

    It calls `report` with timelines of the original problem.
    """

    def tell(moment: Progress) -> None:
        known = moment.timeline
        report(moment if known is None else replace(moment, timeline=timeline_back(chains, known)))

    return tell


def solution_of(chains: MicrobatchChains, found: Solution) -> Solution:
    """Convert a solution of `chains.problem` to one of `chains.of`, the problem with unequal micro-batches.

    Its schedule and those of its candidates are converted; bounds stay, and ticks are as fine as in `found`. Raises
    `Disagreement` if its schedule is not valid there; candidates are not validated.
    """
    parts = int(chains.problem.tick / found.problem.tick)
    timeline = None if found.timeline is None else _judged(chains, found.timeline)
    candidates = tuple(_candidate(chains, one) for one in found.candidates)
    return replace(
        found,
        problem=finer(chains.of, parts),
        timeline=timeline,
        metrics=None if timeline is None else measure(timeline),
        candidates=candidates,
    )


def _judged(chains: MicrobatchChains, timeline: Timeline) -> Timeline:
    own = timeline_back(chains, timeline)
    violations = validate(own)
    if violations:
        raise Disagreement(f"chains of unequal micro-batches gave a schedule that is not valid: {violations[0].text}")
    return own


def _candidate(chains: MicrobatchChains, one: Candidate) -> Candidate:
    return one if one.timeline is None else replace(one, timeline=timeline_back(chains, one.timeline))
