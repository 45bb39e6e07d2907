"""The file of a plan that was found: problem, plan with its schedule, bound over all plans, and what that rests on."""

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
from pipesched.results.plan import ChoiceResult, Plan, VariantResult
from pipesched.version import VERSION

PLAN_FORMAT = "pipesched-plan"
_VERSION = 1
Read = TypeVar("Read")


@dataclass(frozen=True)
class PlanAnswer:
    """Contents of a plan's answer file. Bounds are in the plan file's unit.

    `capacities` are the whole memory of each device with which the bound was proved, where that is not the problem's.
    Where the problem has variants, `choices` are of one of them, and the bound is over all `variants`.
    """

    problem: PlanProblem
    lower_bound: Fraction
    choices: tuple[ChoiceResult, ...]
    choice: Choice
    partition: Partition
    schedule: ScheduleFile
    capacities: Capacities | None = None
    variants: tuple[VariantResult, ...] = ()


def plan_text(plan: Plan) -> str:
    """The file's text, of a plan that was found; ValueError for a problem that no problem file can describe."""
    best = plan.best
    assert best is not None
    file = ScheduleFile(best.timeline)
    asked = plan.asked or plan.problem
    answer = PlanAnswer(asked, plan.lower_bound, plan.choices, best.choice, best.partition, file)
    return answer_text(replace(answer, variants=plan.variants))


def answer_text(answer: PlanAnswer) -> str:
    """The text of a file that says this; ValueError as there."""
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
    if answer.variants:
        document["variants"] = list(map(variant_document, answer.variants))
    if answer.capacities is not None:
        document["proved_with_capacity"] = capacities_document(answer.capacities)
    return write_json(document)


def choice_document(one: ChoiceResult) -> dict[str, object]:
    """The result of a placement, with its evidence."""
    return {
        **one.choice.document(),
        "lower_bound": None if one.lower_bound is None else str(one.lower_bound),
        "reason": one.reason,
        "evidence": plan_evidence_document(one.evidence),
    }


def is_plan_answer(document: object) -> bool:
    """True if a document says that it is such a file."""
    return isinstance(document, dict) and document.get("format") == PLAN_FORMAT


def plan_answer_from(document: Any, path: str) -> PlanAnswer:
    """Such a file from its content; `path` names it in messages."""
    if not is_plan_answer(document) or document.get("format_version") != _VERSION:
        raise BadInput(f"{path}: not a plan's file of version {_VERSION}; `pipesched plan -o` writes one")
    problem = _part(path, "problem", lambda: plan_from_document(document["problem"], f"{path}: problem"))
    held = document.get("plan")
    return PlanAnswer(
        problem,
        _part(path, "lower_bound", lambda: Fraction(str(document["lower_bound"]))),
        tuple(
            _part(path, f"choices[{n}]", partial(choice_from, one))
            for n, one in enumerate(_part(path, "choices", lambda: list(document["choices"])))
        ),
        _part(path, "plan.placement and plan.chunks", lambda: placement_from(held)),
        _part(path, "plan.layers and plan.recompute", lambda: partition_from(held)),
        _part(path, "plan.schedule", lambda: schedule_from(held["schedule"], f"{path}: plan.schedule")),
        _part(path, "proved_with_capacity", lambda: capacities_from(document.get("proved_with_capacity"))),
        _part(path, "variants", lambda: tuple(map(variant_from, document.get("variants", ())))),
    )


def _part(path: str, key: str, read: Callable[[], Read]) -> Read:
    """A part of such a file; a line that names its key where it has another form."""
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise BadInput(f"{path}: {key}: not as a plan's file has it; allowed: what plan -o writes") from None


def choice_from(document: Any) -> ChoiceResult:
    """Read back; errors of Python where the document has another form."""
    bound = document["lower_bound"]
    return ChoiceResult(
        placement_from(document),
        None if bound is None else Fraction(str(bound)),
        None,
        str(document["reason"]),
        plan_evidence_from(document["evidence"]),
    )


def variant_document(one: VariantResult) -> dict[str, object]:
    """The result of a variant, with its evidence."""
    bound = None if one.lower_bound is None else str(one.lower_bound)
    return {
        "name": one.name,
        "lower_bound": bound,
        "reason": one.reason,
        "choices": list(map(choice_document, one.choices)),
    }


def variant_from(document: Any) -> VariantResult:
    """Read back; errors of Python where the document has another form."""
    bound = None if document["lower_bound"] is None else Fraction(str(document["lower_bound"]))
    name, reason = str(document["name"]), str(document["reason"])
    return VariantResult(name, None, bound, reason, tuple(map(choice_from, document["choices"])))


def capacities_document(capacities: Capacities | None) -> list[str | None] | None:
    """The memory of each device as exact text; None where it has no limit."""
    return None if capacities is None else [None if one is None else str(one) for one in capacities]


def capacities_from(document: Any) -> Capacities | None:
    """Read back; errors of Python where the document has another form."""
    return None if document is None else tuple(None if one is None else Fraction(str(one)) for one in document)
