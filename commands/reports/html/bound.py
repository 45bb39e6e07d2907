"""Why no result is better, as parts of a report: the certificate, whether it was checked, and the bottleneck."""

from __future__ import annotations

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Objective, Problem
from pipesched.results.analysis.bottleneck import story
from pipesched.results.certificate import Certificate
from plots.html.parts import Paragraph, Part, Points
from solver.analysis.bottleneck import bottleneck

# What a reader is told of the check, and of how to repeat it.
_SAID = {
    Verdict.VERIFIED: (
        "Checked without the solver, from the evidence in schedule.json",
        " `pipesched check schedule.json` does it again.",
    ),
    Verdict.TRUSTED: (
        "Not checked without the solver",
        " `pipesched check schedule.json --again` repeats that search with other parameters.",
    ),
    Verdict.NOT_VERIFIED: ("Not checked without the solver", ""),
    Verdict.REFUSED: ("THE CHECK REFUSES IT", " `pipesched check schedule.json` does it again."),
}


def argument(problem: Problem, certificate: Certificate | None) -> list[Part]:
    """The argument in words, and what a check of it says that knows no solver."""
    if certificate is None:
        return []
    finding = check_bound(problem, certificate)
    opening, repeat = _SAID[finding.verdict]
    return [
        Paragraph(f"{certificate.text} ({certificate.name})"),
        Paragraph(f"{opening}: {finding.text.rstrip('.')}.{repeat}"),
    ]


def limiting(problem: Problem, certificate: Certificate | None) -> list[Part]:
    """What keeps the problem from being faster, read off the analytic bounds; nothing where these do not tell it."""
    if problem.objective is Objective.PERIOD:
        return []
    return [Points(story(bottleneck(problem, certificate)))]
