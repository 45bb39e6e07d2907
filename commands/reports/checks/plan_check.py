"""Report of `check` on a plan answer file: its schedule, and the bound over all plans by placement."""

from __future__ import annotations

from argparse import Namespace
from fractions import Fraction
from threading import Event

from commands.options.search import interrupt_sets, limits_of
from commands.reports.checks.schedule_check import repeats_as_stated
from commands.shared.catalogue import Exit
from commands.shared.output import write_json
from pipesched.checking.finding import Finding, Verdict
from pipesched.checking.free_memory import check_most_free
from pipesched.checking.memory.more_memory import with_more_memory
from pipesched.checking.plan_check import Stated, check_plan_bound, stated_of_each, weakest
from pipesched.files.plan_answer import PlanAnswer
from pipesched.files.problems.document import problem_document
from pipesched.layers.free_memory import reserving
from pipesched.layers.partition import mistakes
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.results.free_memory import free_memory
from pipesched.schedule.metrics import measure
from pipesched.validation.validator import validate
from solver.planning.recheck_search import recheck_search


def check_plan(answer: PlanAnswer, args: Namespace) -> Exit:
    """Check a plan answer and print the report; with `--again` after repeating the searches that support its bounds.

    Exit code 1 if the plan is invalid or the check refuses its bound, else 0, also where a bound is not verified.
    """
    wrong = broken_plan(answer)
    findings = plan_findings(answer)
    if args.again:
        stop = Event()
        with interrupt_sets(stop):
            findings = _again(answer, findings, args, stop)
    verdict = weakest(findings)
    value = None if wrong else plan_value(answer)
    optimal = value == answer.lower_bound and verdict is Verdict.VERIFIED and _value_verified(answer)
    optimal = optimal and (answer.free is None or answer.free.proved)
    if args.json:
        write_json(
            {
                "schedule": args.schedule,
                "valid": not wrong,
                "wrong": wrong,
                "lower_bound": float(answer.lower_bound),
                "bound": verdict.value,
                "placements": [{"bound": one.verdict.value, "text": one.text} for one in findings],
                "optimal": optimal,
            }
        )
    else:
        _say(answer, args.schedule, wrong, findings, value, optimal)
    return Exit.NO if wrong or verdict is Verdict.REFUSED else Exit.DONE


def _say(
    answer: PlanAnswer, path: str, wrong: list[str], findings: list[Finding], value: Fraction | None, optimal: bool
) -> None:
    unit = answer.problem.time_unit
    for text in wrong:
        print(text)
    if value is not None:
        objective = answer.problem.objective.with_article
        stated = f"{plain(float(value))} {unit}".rstrip()
        print(
            f"{path}: the plan is valid, with {objective} of {stated}"
            if _value_verified(answer)
            else f"{path}: the plan is valid; its period, {stated} as stated, is not verified"
        )
    for one in findings:
        print(f"{one.verdict}: {one.text}")
    if optimal:
        print("so it is optimal")


def plan_findings(answer: PlanAnswer) -> list[Finding]:
    """Return the findings on the bound over all plans, one for each placement.

    Where the answer states free memory, a finding for each placement on its bound precedes those on the time.
    """
    own = answer.choices, answer.variants, answer.capacities
    if answer.free is None:
        return check_plan_bound(answer.problem, answer.lower_bound, *own)
    in_time = check_plan_bound(reserving(answer.problem, answer.free.value), answer.lower_bound, *own)
    return [*check_most_free(answer.problem, answer.free.bound), *in_time]


def plan_value(answer: PlanAnswer) -> Fraction:
    """Return the value of the plan's schedule, in the plan file's unit; a period as stated, 0 where none is."""
    file = answer.schedule
    problem = file.timeline.problem
    ticks = file.value_ticks if problem.objective.repeats else measure(file.timeline).value_ticks(problem.objective)
    return (ticks or 0) * problem.tick


def _value_verified(answer: PlanAnswer) -> bool:
    """Return True if the plan's value is that of its schedule: for a period, if the order repeats in it."""
    return not answer.problem.objective.repeats or repeats_as_stated(answer.schedule)


def broken_plan(answer: PlanAnswer) -> list[str]:
    """Return the faults of a plan: of its placement, its partition, the problem that these two make, or its schedule.

    For a plan problem with several variants, they are the faults under the variant for which the plan has the fewest.
    """
    allowed = list(answer.problem.variants.values()) or [answer.problem]
    return min((_broken(answer, one) for one in allowed), key=len)


def _broken(answer: PlanAnswer, plan: PlanProblem) -> list[str]:
    """Return the faults of a plan as one of `plan`, which is the answer's problem or one of its variants."""
    timeline = answer.schedule.timeline
    if answer.choice not in plan.choices:
        return [f"placement: {answer.choice} is not allowed by the plan file"]
    found = [f"partition: {text}" for text in mistakes(plan.model, answer.partition)]
    if not found and plan.counts is not None and plan.counts != answer.partition.counts:
        found.append("partition: not the one that the plan file gives")
    if not found:
        try:
            own = problem_document(plan.problem(answer.choice, answer.partition))
        except (ValueError, KeyError) as error:
            return [f"recompute: {error}"]
        if without_name(own) != without_name(problem_document(timeline.problem)):
            found.append("problem: the schedule is not one of the stages that this partition makes")
    found += [f"{violation.rule}: {violation.text}" for violation in validate(timeline)]
    if not found and answer.free is not None:
        found += _false_memory(answer, plan)
    value = plan_value(answer)
    if not found and answer.lower_bound > value:
        found.append(
            f"claim: a lower bound of {plain(float(answer.lower_bound))} above the plan's {plain(float(value))}"
        )
    return found


def _false_memory(answer: PlanAnswer, plan: PlanProblem) -> list[str]:
    """Return the faults of the free memory that an answer states: the schedule leaves less, or more than the bound."""
    assert answer.free is not None
    left = free_memory(plan, answer.choice, answer.partition, answer.schedule.timeline)
    stated, bound, true = (plain(float(one)) for one in (answer.free.value, answer.free.bound, left))
    if left < answer.free.value:
        return [f"claim: free memory of {stated}; the schedule leaves {true}"]
    return [] if left <= answer.free.bound else [f"claim: no plan leaves more than {bound}; this one leaves {true}"]


def without_name(document: object) -> dict[str, object]:
    """Return a problem's document without its name, on which schedules do not depend."""
    assert isinstance(document, dict)
    return {key: value for key, value in document.items() if key != "name"}


def _again(answer: PlanAnswer, findings: list[Finding], args: Namespace, stop: Event) -> list[Finding]:
    """Repeat every search whose result was trusted or not verified; return the findings with its result."""
    problem, of_memory = answer.problem, list[Finding]()
    if answer.free is not None:
        number = len(problem.choices)
        problem, of_memory, findings = reserving(problem, answer.free.value), findings[:number], findings[number:]
    if answer.capacities is not None:
        if all(one.verdict is Verdict.REFUSED for one in findings):
            return findings
        problem = with_more_memory(problem, answer.capacities)
    rows = stated_of_each(problem, answer.choices, answer.variants)
    again = [
        _one_again(row, answer.lower_bound, finding, args, stop) for row, finding in zip(rows, findings, strict=True)
    ]
    return [*of_memory, *again]


def _one_again(row: Stated, bound: Fraction, finding: Finding, args: Namespace, stop: Event) -> Finding:
    evidence = None if row.result is None else row.result.evidence
    if finding.verdict not in (Verdict.TRUSTED, Verdict.NOT_VERIFIED) or evidence is None:
        return finding
    same = recheck_search(row.plan, row.choice, bound, evidence, limits_of(args), stop)
    if same is None:
        return Finding(finding.verdict, f"{finding.text}; repeated with other parameters it came to no end")
    if same:
        return Finding(Verdict.TRUSTED, f"{finding.text}; with other parameters it proved the same")
    return Finding(Verdict.REFUSED, f"{finding.text}; with other parameters CP-SAT does not refute what is below")
