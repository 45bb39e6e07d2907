"""Answer files of `plan`: the plan problem, the plan found with its schedule, and the lower bound with its evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import write_json
from pipesched.files.plan_answers.evidence import (
    partition_document,
    partition_from,
    plan_evidence_document,
    plan_evidence_from,
)
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.schedule_file import ScheduleFile, schedule_document, schedule_from
from pipesched.layers.cluster import Capacities
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem, placement_from
from pipesched.results.free_memory import MostFree, free_from
from pipesched.results.plan import ChoiceResult, Plan, VariantResult
from pipesched.version import VERSION

PLAN_FORMAT = "pipesched-plan"
_VERSION = 1
Read = TypeVar("Read")


@dataclass(frozen=True)
class PlanAnswer:
    """Contents of a plan answer file. No plan is faster than `lower_bound`; bounds are in the plan file's unit of time.

    `choice`, `partition` and `schedule` are those of the plan. `choices` are the results of the placements.
    `capacities` are the memory of each device with which the bound was proved, None if they are the problem's. For a
    problem with variants `choices` belong to the variant of the plan, and the bound covers all `variants`. `free` is
    the free memory, None unless it is maximised first.
    """

    problem: PlanProblem
    lower_bound: Fraction
    choices: tuple[ChoiceResult, ...]
    choice: Choice
    partition: Partition
    schedule: ScheduleFile
    capacities: Capacities | None = None
    variants: tuple[VariantResult, ...] = ()
    free: MostFree | None = None


def plan_text(plan: Plan) -> str:
    """Return the text of the answer file for a plan search that found a plan (`Plan.best`).

    ValueError if no problem file can express the problem of its schedule.
    """
    best = plan.best
    assert best is not None
    file = ScheduleFile(best.timeline, value_ticks=best.period_ticks)
    asked = plan.asked or plan.problem
    answer = PlanAnswer(asked, plan.lower_bound, plan.choices, best.choice, best.partition, file)
    return answer_text(replace(answer, variants=plan.variants, free=plan.free))


def answer_text(answer: PlanAnswer) -> str:
    """Return the text of a plan answer file; ValueError if no problem file can express its problem.

    Besides the format it has `problem`, `lower_bound`, `choices`, and `plan` with the choice, the partition and the
    `schedule`; `free_memory`, `variants` and `proved_with_capacity` only where there are such. Numbers are exact text.
    """
    document = {
        "format": PLAN_FORMAT,
        "format_version": _VERSION,
        "tool": f"pipesched {VERSION}",
        "problem": plan_document(answer.problem),
        "lower_bound": str(answer.lower_bound),
        "choices": list(map(choice_document, answer.choices)),
        "plan": {
            **answer.choice.document(),
            **partition_document(answer.partition),
            "schedule": schedule_document(answer.schedule),
        },
    }
    if answer.free is not None:
        document["free_memory"] = answer.free.stated()
    if answer.variants:
        document["variants"] = list(map(variant_document, answer.variants))
    if answer.capacities is not None:
        document["proved_with_capacity"] = capacities_document(answer.capacities)
    return write_json(document)


def choice_document(one: ChoiceResult) -> dict[str, object]:
    """Return the result of one placement, with the evidence of its bound, as a document without its best plan.

    The keys are those of `Choice.document`, `lower_bound`, `reason` (may be empty) and `evidence`. The bound is exact
    text in the file's unit, None without any plan; the evidence is None where there is none.
    """
    return {
        **one.choice.document(),
        "lower_bound": None if one.lower_bound is None else str(one.lower_bound),
        "reason": one.reason,
        "evidence": plan_evidence_document(one.evidence),
    }


def is_plan_answer(document: object) -> bool:
    """Return True if a document states the format of plan answer files."""
    return isinstance(document, dict) and document.get("format") == PLAN_FORMAT


def plan_answer_from(document: Any, path: str) -> PlanAnswer:
    """Read a plan answer from its document; `path` names the file in messages. `BadInput` says what is wrong."""
    if not is_plan_answer(document) or document.get("format_version") != _VERSION:
        raise BadInput(f"{path}: not a plan's file of version {_VERSION}; `pipesched plan -o` writes one")
    problem = _part(path, "problem", lambda: plan_from_document(document["problem"], f"{path}: problem"))
    plan = document.get("plan")
    return PlanAnswer(
        problem,
        _part(path, "lower_bound", lambda: Fraction(str(document["lower_bound"]))),
        tuple(
            _part(path, f"choices[{n}]", partial(choice_from, one))
            for n, one in enumerate(_part(path, "choices", lambda: list(document["choices"])))
        ),
        _part(path, "plan.placement and plan.chunks", lambda: placement_from(plan)),
        _part(path, "plan.layers and plan.recompute", lambda: partition_from(plan)),
        _part(path, "plan.schedule", lambda: schedule_from(plan["schedule"], f"{path}: plan.schedule")),
        _part(path, "proved_with_capacity", lambda: capacities_from(document.get("proved_with_capacity"))),
        _part(path, "variants", lambda: tuple(map(variant_from, document.get("variants", ())))),
        None if problem.leaves is None else _part(path, "free_memory", lambda: free_from(document["free_memory"])),
    )


def _part(path: str, key: str, read: Callable[[], Read]) -> Read:
    """Return what `read` reads from one key of a plan answer file; `BadInput` naming `key` if it has another form."""
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise BadInput(f"{path}: {key}: not as a plan's file has it; allowed: what plan -o writes") from None


def choice_from(document: Any) -> ChoiceResult:
    """Read the result of one placement from its document, without its best plan, which none has.

    KeyError, TypeError, ValueError or ArithmeticError for any other form.
    """
    bound = document["lower_bound"]
    return ChoiceResult(
        placement_from(document),
        None if bound is None else Fraction(str(bound)),
        None,
        str(document["reason"]),
        plan_evidence_from(document["evidence"]),
    )


def variant_document(one: VariantResult) -> dict[str, object]:
    """Return the result of one variant, with the evidence of its bounds, as a document without its value.

    The keys are `name`, `lower_bound`, `reason` (may be empty) and `choices`, a list of `choice_document`. Bounds are
    exact text in the file's unit, None without any plan.
    """
    bound = None if one.lower_bound is None else str(one.lower_bound)
    return {
        "name": one.name,
        "lower_bound": bound,
        "reason": one.reason,
        "choices": list(map(choice_document, one.choices)),
    }


def variant_from(document: Any) -> VariantResult:
    """Read the result of one variant from its document; its value, which no document has, is None.

    KeyError, TypeError, ValueError or ArithmeticError for any other form.
    """
    bound = None if document["lower_bound"] is None else Fraction(str(document["lower_bound"]))
    name, reason = str(document["name"]), str(document["reason"])
    return VariantResult(name, None, bound, reason, tuple(map(choice_from, document["choices"])))


def capacities_document(capacities: Capacities | None) -> list[str | None] | None:
    """Return capacities, in the file's unit, as exact text, `80` or `159/2`; None for a device without limit.

    None if there are no capacities. `capacities_from` reads it.
    """
    return None if capacities is None else [None if one is None else str(one) for one in capacities]


def capacities_from(document: Any) -> Capacities | None:
    """Return the memory of each device from `capacities_document`, None for no limit; None where the document is None.

    TypeError, ValueError or ArithmeticError for any other form.
    """
    return None if document is None else tuple(None if one is None else Fraction(str(one)) for one in document)
