"""Bottleneck analysis by analytic bounds: of the problem, and of copies without memory limits or transfer times.

No search is run.
"""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.problem import Problem
from pipesched.results.analysis.bottleneck import CLOSE, Bottleneck
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.load import computes
from solver.bounds.saving.certificates import certificates


def bottleneck(problem: Problem, proved: Certificate | None = None) -> Bottleneck:
    """Return the bottleneck of a problem: its bounds, compared with those without memory limits or transfer times.

    No search is run. `proved` is the certificate of a solve, in ticks of this problem, used if it is stronger than the
    analytic ones; the objective is makespan or span.
    """
    found = certificates(problem, problem.objective)
    strongest = found[0]
    if proved is None or proved.value_ticks <= strongest.value_ticks:
        proved = strongest
    close: dict[int, Certificate] = {}
    for certificate in found:
        device = certificate.device
        if device not in (None, strongest.device) and certificate.value_ticks >= (1 - CLOSE) * strongest.value_ticks:
            assert device is not None
            close.setdefault(device, certificate)
    equal = without_scale(problem)
    works = [computes(equal, device) for device in range(problem.devices)]
    free = problem.with_room((None,) * problem.devices)
    at_once = (0,) * problem.placement.stages
    near, free_and_near = (replace(p.with_stages(transfer=at_once), links=()) for p in (problem, free))
    values = [certificates(p, p.objective)[0].value_ticks for p in (free, near, free_and_near)]
    return Bottleneck(problem, proved, strongest, tuple(close.values()), works.index(max(works)), max(works), *values)
