"""Lines on published schedules that do not apply to a problem, or do not fit its memory; equal reasons share a line."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Sequence

from heuristics.catalogue import HEURISTICS
from pipesched.errors import DoesNotApply
from pipesched.problem.formatting import counted
from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate


def lines(candidates: Sequence[Candidate]) -> list[str]:
    """Return lines that say why published schedules do not apply to a problem; empty if all were tried and apply.

    First is a line on the schedules for which no time was left, then a heading, and a line for each reason with the
    names of the schedules.
    """
    late = sorted(candidate.name for candidate in candidates if not candidate.tried)
    untried = [f"not tried, as the time limit was reached: {', '.join(late)}"] if late else []
    none = [candidate for candidate in candidates if candidate.metrics is None and candidate.tried]
    return [*untried, *_by_reason("other schedule", "apply", none)]


def lines_of_memory(candidates: Sequence[Candidate]) -> list[str]:
    """Return a heading and a line for each reason why schedules exceed the memory: where and when they do so first.

    Empty if every schedule that applies fits.
    """
    too_large = [candidate for candidate in candidates if candidate.metrics is not None and not candidate.fits]
    return _by_reason("schedule", "fit the memory", too_large)


def _by_reason(noun: str, what: str, candidates: Sequence[Candidate]) -> list[str]:
    names: dict[str, list[str]] = {}
    for candidate in candidates:
        names.setdefault(candidate.reason, []).append(candidate.name)
    if not names:
        return []
    heading = f"{counted(len(candidates), noun)} {'does' if len(candidates) == 1 else 'do'} not {what}:"
    return [heading, *(f"- {', '.join(sorted(own))}: {reason}" for reason, own in sorted(names.items()))]


def add_why_not(parser: ArgumentParser) -> None:
    """Add `--why-not` (False if not given): also list schedules that do not apply or do not fit, with the reasons."""
    parser.add_argument(
        "--why-not", action="store_true", help="also list the schedules that do not apply or do not fit, and why"
    )


def count(candidates: Sequence[Candidate]) -> list[str]:
    """Return a line on the schedules not tried, and one with the number of those that do not apply.

    Either is left out if there are none.
    """
    shown = [line for line in lines(candidates) if not line.startswith("- ")]
    return [f"{line.removesuffix(':')} (--why-not says why)" if line.endswith(":") else line for line in shown]


def applicable(problem: Problem) -> list[str]:
    """Return the names of published schedules that apply to a problem, sorted; memory does not count."""
    return [heuristic.name for heuristic in HEURISTICS if _applies(problem, heuristic.name)]


def _applies(problem: Problem, name: str) -> bool:
    try:
        HEURISTICS[name].order(problem)
    except DoesNotApply:
        return False
    return True


def or_none(names: Iterable[str]) -> str:
    """Return the names joined by commas, or `none`."""
    return ", ".join(names) or "none"
