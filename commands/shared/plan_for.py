"""`plan --for`: the best plan that a runtime can be told and runs, beside the best of all plans."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import dataclass, replace
from threading import Event

from commands.shared.output import percent
from commands.shared.runtime_restrictions import written_for
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.results.plan import Candidate, Plan
from pipesched.results.solution import Status
from runtime.exporters.restrictions import RESTRICTIONS
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_limits import restricted
from solver.limits import Limits
from solver.planning.plan import plan
from solver.planning.progress import PlanProgress, Report

# Of the time limit, the part for what the runtime can run; the rest is for all plans.
_OWN_SHARE = 0.7


@dataclass(frozen=True)
class Runtime:
    """The runtime that a plan is for, what was left out for it in words, and the best of all plans."""

    name: str
    words: tuple[str, ...]
    free: Plan


def add_for(parser: ArgumentParser) -> None:
    """The option."""
    parser.add_argument(
        "--for",
        dest="target",
        choices=sorted(form.name for form in PARTITION_FORMATS),
        help="only plans that this runtime can be told, in orders that it runs; what that costs is shown too",
    )


def planned(
    problem: PlanProblem, target: str | None, limits: Limits, report: Report, aside: Report, stop: Event
) -> tuple[Plan, Runtime | None]:
    """The plan, and with `target` what it is restricted to; `BadInput` where that runtime runs no plan of the file.

    `aside` is told of the search over all plans.
    """
    if target is None:
        return plan(problem, limits, report, stop), None
    left, words = restricted(problem, target, PARTITION_FORMATS[target].limits)
    found = _runnable(plan(left, replace(limits, seconds=_OWN_SHARE * limits.seconds), report, stop), target)
    rest = replace(limits, seconds=max(0.0, limits.seconds - found.wall_seconds))

    def tell(moment: PlanProgress) -> None:
        aside(replace(moment, seconds=moment.seconds + found.wall_seconds, phase=f"all plans: {moment.phase}"))

    # It begins at what the runtime can run, so it is never worse.
    return found, Runtime(target, words, plan(problem, rest, tell, stop, start=found.best))


def runtime_sentences(found: Plan, runtime: Runtime) -> list[str]:
    """What the plan is restricted to, and what that costs."""
    words = "; ".join(runtime.words) or "which of this file is all"
    said = [f"only plans that {runtime.name} can be told and runs: {words}"]
    free = runtime.free
    if free.best is None or free.value is None:
        return said
    unit = found.problem.time_unit
    best, bound = (f"{plain(float(value))} {unit}".rstrip() for value in (free.value, free.lower_bound))
    text = f"of all plans: {best} ({free.best.choice}, {free.best.schedule}), none is below {bound}"
    if found.value is not None and free.value:
        more = float(found.value / free.value - 1)
        text += f"; that of {runtime.name} takes {percent(more)} more" if more > 0 else f"; {runtime.name} runs it"
    return [*said, text]


def runtime_document(runtime: Runtime) -> dict[str, object]:
    """Keys of `plan --json`."""
    whole = runtime.free.document()
    keys = ("status", "value", "lower_bound", "gap", "placement", "chunks", "partition", "recompute", "schedule")
    return {"for": runtime.name, "restricted_to": list(runtime.words), "free": {key: whole[key] for key in keys}}


def _runnable(found: Plan, target: str) -> Plan:
    """The plans with orders that its exporter takes, each in the runtime's terms; others are left out."""
    if target not in RESTRICTIONS or found.best is None:
        return found
    choices = []
    for one in found.choices:
        timeline = None if one.best is None else written_for(one.best.timeline, target)
        kept = None if one.best is None or timeline is None else replace(one.best, timeline=timeline)
        choices.append(replace(one, best=kept))
    known: list[Candidate] = [one.best for one in choices if one.best is not None]
    best = min(known, key=lambda candidate: candidate.value, default=None)
    status = Status.UNKNOWN
    if best is not None:
        status = Status.OPTIMAL if best.value == found.lower_bound else Status.FEASIBLE
    return replace(found, choices=tuple(choices), best=best, status=status)
