"""The check that no plan leaves more free memory: with a little more of it reserved no partition fits."""

from __future__ import annotations

from fractions import Fraction

from pipesched.checking.finding import Finding, Verdict
from pipesched.checking.partitions.by_device import none_fits
from pipesched.layers.free_memory import reserving_more
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain


def check_most_free(plan: PlanProblem, bound: Fraction) -> list[Finding]:
    """Return a finding for each placement on the claim that none of its plans leaves more memory free than `bound`, in
    the file's unit.

    The claim is verified if no partition fits the memory with a little more than `bound` reserved. Where the check does
    not look at all cuts, it rests on CP-SAT's search over partitions, and is trusted.
    """
    more, found = reserving_more(plan, bound), list[Finding]()
    for choice in plan.choices:
        text = f"{choice}: no plan leaves more than {plain(float(bound))} {plan.cluster.memory_unit} of memory free"
        if len(choice.on(plan.cluster.devices).chains[0]) > plan.model.most_stages:
            found.append(Finding(Verdict.VERIFIED, f"{text} (it has more stages than layers)"))
            continue
        none = none_fits(more, choice)
        if none:
            found.append(Finding(Verdict.VERIFIED, f"{text} (all partitions, looked at device by device)"))
        elif none is None:
            found.append(Finding(Verdict.TRUSTED, f"{text}: rests on CP-SAT's search over all partitions"))
        else:
            found.append(Finding(Verdict.NOT_VERIFIED, f"{text}: some partition may fit with more of it reserved"))
    return found
