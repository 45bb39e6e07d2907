"""The check of a bound over all plans: every placement must be listed, and the bound of each is checked.

A bound over all partitions is verified where all cuts, device by device, leave no plan below it. Otherwise the search
over partitions is trusted, and reported so; the bounds of partitions left out of that search are checked by their
certificates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Finding, RefusedEvidenceError, Verdict
from pipesched.checking.memory.more_memory import with_more_memory
from pipesched.checking.partitions.by_device import no_better_plan
from pipesched.layers.cluster import Capacities
from pipesched.layers.even import even_counts
from pipesched.layers.layer import LayerType
from pipesched.layers.partition import mistakes
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.formatting import plain
from pipesched.results.evidence import UnknownForm
from pipesched.results.plan import ChoiceResult, VariantResult
from pipesched.results.plan_evidence import AllOrders, AllPartitions, MeanLoad, SolvedPartition, TooManyStages

# From the one that says most to the one that says least.
_WEAKEST = (Verdict.VERIFIED, Verdict.TRUSTED, Verdict.NOT_VERIFIED, Verdict.REFUSED)


class Stated(NamedTuple):
    """The stated result of one placement (`choice`) of a plan problem, or of its variant with the name `variant`.

    `plan` is the problem, of a variant the variant's; `variant` is empty without variants. `result` is None if it is
    missing.
    """

    plan: PlanProblem
    choice: Choice
    result: ChoiceResult | None
    variant: str = ""


def stated_of_each(
    plan: PlanProblem, choices: Sequence[ChoiceResult], variants: Sequence[VariantResult] = ()
) -> list[Stated]:
    """Return the stated result of each placement that the plan allows, in its order.

    For a plan problem with variants they are those of each placement of each variant, and `choices` is not read.
    """
    if not plan.variants:
        known = {one.choice: one for one in choices}
        return [Stated(plan, choice, known.get(choice)) for choice in plan.choices]
    choices_of = {one.name: one.choices for one in variants}
    return [
        row._replace(variant=name)
        for name, part in plan.variants.items()
        for row in stated_of_each(part, choices_of.get(name, ()))
    ]


def check_plan_bound(
    plan: PlanProblem,
    bound: Fraction,
    choices: Sequence[ChoiceResult],
    variants: Sequence[VariantResult] = (),
    capacities: Capacities | None = None,
) -> list[Finding]:
    """Check that no plan is below the bound, in the plan file's unit; returns a finding for each admissible placement.

    With `variants` there is a finding for each placement of each variant. `capacities` are those with which the bound
    was proved, None for the plan problem's own: less memory never allows a shorter plan. If the plan problem has more
    than these, or they do not fit it, all findings are REFUSED, as is that of a placement without a result.
    """
    if capacities is not None:
        try:
            plan = with_more_memory(plan, capacities)
        except RefusedEvidenceError as why:
            return [Finding(Verdict.REFUSED, f"{choice}: {why}") for choice in plan.choices]
    return [_choice(bound, *row) for row in stated_of_each(plan, choices, variants)]


def weakest(findings: Iterable[Finding]) -> Verdict:
    """Return the weakest verdict of all findings; VERIFIED if there are none."""
    return max((one.verdict for one in findings), key=_WEAKEST.index, default=Verdict.VERIFIED)


def _choice(bound: Fraction, plan: PlanProblem, choice: Choice, result: ChoiceResult | None, variant: str) -> Finding:
    where = f"{variant}: {choice}" if variant else f"{choice}"
    stated = f"{where}: no plan is below {plain(float(bound))} {plan.time_unit}".rstrip()
    if result is None:
        return Finding(Verdict.REFUSED, f"{where}: allowed by the plan file, and nothing is said of it")
    if result.lower_bound is not None and result.lower_bound < bound:
        bound_stated = plain(float(result.lower_bound))
        return Finding(Verdict.REFUSED, f"{stated}, and what is said of this placement is {bound_stated}")
    return _by_evidence(plan, bound, result, stated)


def _by_evidence(plan: PlanProblem, bound: Fraction, result: ChoiceResult, stated: str) -> Finding:
    evidence, choice = result.evidence, result.choice
    if isinstance(evidence, TooManyStages):
        return _none(plan, choice)
    if evidence is None or isinstance(evidence, UnknownForm):
        return Finding(Verdict.NOT_VERIFIED, f"{stated}: {evidence or 'without evidence'}")
    if mean_load(plan, choice) >= bound:
        return Finding(Verdict.VERIFIED, f"{stated} (mean load, computed again)")
    if isinstance(evidence, MeanLoad):
        return Finding(Verdict.REFUSED, f"{stated}: the mean load is less")
    return _over_partitions(plan, bound, choice, evidence, stated)


def _over_partitions(
    plan: PlanProblem, bound: Fraction, choice: Choice, evidence: AllPartitions | AllOrders, stated: str
) -> Finding:
    """Return the finding for a bound over all partitions: verified by the needs of each device, else from the search.

    `stated` is the claim as text, with which the finding begins.
    """
    if isinstance(evidence, AllOrders) and not plan.schedules:
        return Finding(Verdict.REFUSED, f"{stated}: the evidence is of published orders, and any order is allowed")
    if no_better_plan(plan, choice, bound):
        return Finding(Verdict.VERIFIED, f"{stated} (all partitions, looked at again device by device)")
    if isinstance(evidence, AllOrders):
        return _orders(plan, evidence, stated)
    return _searched(plan, bound, choice, evidence.solved, stated)


def _orders(plan: PlanProblem, evidence: AllOrders, stated: str) -> Finding:
    """Return the finding for a bound over the plan's fixed orders, which says nothing about other orders.

    `stated` is the claim as text, with which the finding begins.
    """
    missing = sorted(set(plan.schedules) - {paths.order for paths in evidence.orders})
    tried = sum(len(paths.tried) for paths in evidence.orders)
    text = f"{stated}: rests on CP-SAT's search over the longest paths of {tried} partitions"
    if missing:
        text += f"; that {', '.join(missing)} does not apply is not checked here"
    return Finding(Verdict.TRUSTED if evidence.orders else Verdict.NOT_VERIFIED, text)


def mean_load(plan: PlanProblem, choice: Choice) -> Fraction:
    """Return the mean work of the devices, by speed, of all micro-batches and all steps, rounded up to a tick.

    It is in the file's unit, and no plan is below it. For a period it is the work of one micro-batch, rounded down
    where several chains share one.
    """
    stages, each = len(choice.on(plan.cluster.devices).chains[0]), Fraction(0)
    for model in (piece.model for piece in plan.pieces_of(choice)):
        each += stages * (model.forward_overhead + model.backward_overhead)
        each += sum((layer.count * _work(layer) for layer in model.layers), Fraction(0))
    overhead = plan.model.forward_overhead + plan.model.backward_overhead
    for module in plan.modules:
        # Stages on devices of their own are no work of these devices.
        for stage in (one for one in module.of_one_pass if one.device < plan.cluster.devices):
            each += (stage.layers * _work(module.layer) + (0 if module.parts else overhead)) / module.serves
    # Every copy of a layer steps once.
    once = stages * (plan.model.parameters.step or 0) + sum(layer.count * layer.step for layer in plan.model.layers)
    steps, cluster = len(choice.on(plan.cluster.devices).chains) * once, plan.cluster
    # In the time of one layer on a device of its own speed, a device s times as slow does 1/s of one.
    together = sum((1 / slowness for slowness in cluster.slowness), Fraction(0)) or Fraction(cluster.devices)
    if plan.objective.repeats:
        whole = ceil if len(choice.on(cluster.devices).chains) == 1 else floor
        return whole(each / together / plan.tick) * plan.tick
    return ceil((plan.microbatches * each + steps) / together / plan.tick) * plan.tick


def _work(layer: LayerType) -> Fraction:
    """Return the work of one micro-batch on a layer, with the faster backward, in the file's unit."""
    return layer.forward + layer.least_backward


def _none(plan: PlanProblem, choice: Choice) -> Finding:
    """Recheck the claim that the model cannot be cut into the placement's number of stages.

    VERIFIED if there are too few layers, or if `counts` or the even partition do not give that number; else REFUSED.
    """
    stages = len(choice.on(plan.cluster.devices).chains[0])
    counts = even_counts(plan.model, stages) if plan.even else plan.counts
    cut = stages <= plan.model.most_stages
    if not cut or (plan.even and counts is None) or (counts is not None and len(counts) != stages):
        return Finding(Verdict.VERIFIED, f"{choice}: no partition has {stages} stages as the file asks")
    return Finding(Verdict.REFUSED, f"{choice}: there are partitions with {stages} stages")


def _searched(
    plan: PlanProblem, bound: Fraction, choice: Choice, solved: Sequence[SolvedPartition], stated: str
) -> Finding:
    findings = [partition_finding(plan, bound, choice, one) for one in leaving_out(solved, bound)]
    worst = weakest(findings)
    text = f"{stated}: rests on a search over all partitions"
    if findings:
        verified = sum(one.verdict is Verdict.VERIFIED for one in findings)
        text += f"; of {len(findings)} that it left out, {verified} are verified"
    if worst in (Verdict.VERIFIED, Verdict.TRUSTED):
        return Finding(Verdict.TRUSTED, text)
    return Finding(worst, f"{text}; {next(one.text for one in findings if one.verdict is worst)}")


def leaving_out(solved: Sequence[SolvedPartition], bound: Fraction) -> list[SolvedPartition]:
    """Return the partitions that a search for plans below the bound may leave out.

    They are proved to have no plan below it, or not to fit the memory. The bound is in the plan file's unit.
    """
    return [one for one in solved if one.bound is None or one.bound >= bound]


def partition_finding(plan: PlanProblem, bound: Fraction, choice: Choice, one: SolvedPartition) -> Finding:
    """Return the finding on a partition that a search left out: that no plan with it is below the bound.

    The bound is in the plan file's unit.

    It is verified by the partition's certificate, or if it is no valid partition or does not fit the memory. It is
    refused if the certificate proves less, or the recomputation is not possible. Without a certificate that proves so
    much it is not verified, or trusted if only published orders are allowed.
    """
    where = f"{' '.join(map(str, one.partition.counts))}"
    if mistakes(plan.model, one.partition):
        return Finding(Verdict.VERIFIED, f"{where} is no partition")
    try:
        problem = plan.problem(choice, one.partition)
    except (ValueError, KeyError):
        return Finding(Verdict.REFUSED, f"{where}: recomputes what it has not")
    reason = why_infeasible(problem)
    if reason is not None:
        return Finding(Verdict.VERIFIED, f"{where} fits no memory: {reason}")
    if one.certificate is None or (one.bound is None and one.certificate.value_ticks * problem.tick < bound):
        # Of published orders the value is simulated, with --again.
        verdict = Verdict.TRUSTED if plan.schedules else Verdict.NOT_VERIFIED
        return Finding(verdict, f"{where}: without a certificate of so much")
    if one.certificate.value_ticks * problem.tick < bound:
        return Finding(Verdict.REFUSED, f"{where}: its certificate speaks of less")
    return check_bound(problem, one.certificate)
