"""Evidence of the bound of a plan cell: as a document in its outcome, and as the file that `check` reads."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from pipesched.errors import BadInput
from pipesched.files.plan_answer import (
    PlanAnswer,
    capacities_document,
    capacities_from,
    choice_document,
    choice_from,
    variant_document,
    variant_from,
)
from pipesched.layers.cluster import Capacities
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import PlanProblem, placement_from
from pipesched.results.plan import ChoiceResult, Plan, VariantResult
from pipesched.sweeps.outcome import Outcome
from pipesched.sweeps.packed import unpack

_FORM = "all plans"


def plan_bound_document(plan: Plan) -> dict[str, Any]:
    """Return the results of each placement and variant with their evidence, as stored in a plan cell's outcome.

    It has `form`, `placements` (a list of `choice_document`, of the best variant) and, if there are several variants,
    `variants` (a list of `variant_document`, of all).
    """
    found: dict[str, Any] = {"form": _FORM, "placements": list(map(choice_document, plan.choices))}
    return found | ({"variants": list(map(variant_document, plan.variants))} if plan.variants else {})


def is_of_plans(evidence: Mapping[str, Any]) -> bool:
    """Return True if the evidence of an outcome is about plans."""
    return evidence.get("form") == _FORM


def proved_with(evidence: Mapping[str, Any], capacities: Capacities) -> dict[str, Any]:
    """Return a copy of the evidence of a cell, as another cell with less memory stores it.

    The capacities for which it was proved are added under the key `capacities`.
    """
    return {**evidence, "capacities": capacities_document(capacities)}


class Stated(NamedTuple):
    """The results of each placement and of each variant, and the capacities that they assume (None: the cell's own)."""

    choices: tuple[ChoiceResult, ...] = ()
    variants: tuple[VariantResult, ...] = ()
    capacities: Capacities | None = None


def placements_of(known: Outcome) -> Stated:
    """Return the results for placements and variants that the evidence of a cell's outcome has; empty if it has none.

    `BadInput` if the evidence is damaged.
    """
    evidence = known.evidence
    if evidence is None or not is_of_plans(evidence):
        return Stated()
    try:
        variants = tuple(map(variant_from, evidence.get("variants", ())))
        choices, capacities = (
            tuple(map(choice_from, evidence["placements"])),
            capacities_from(evidence.get("capacities")),
        )
        return Stated(choices, variants, capacities)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise BadInput(f"the evidence in the store is damaged: {type(error).__name__}: {str(error)[:60]}") from None


def plan_answer_of(problem: PlanProblem, known: Outcome) -> PlanAnswer | None:
    """Return the outcome of a cell as a plan answer; None if it has no plan.

    An unknown bound is 0 there. `BadInput` if evidence or schedule are damaged.
    """
    chosen = known.choice
    if known.schedule is None or chosen is None:
        return None
    stated = placements_of(known)
    recompute = tuple(tuple(Recomputed(*one) for one in stage) for stage in chosen["recompute"])
    return PlanAnswer(
        problem,
        Fraction(0) if known.lower_bound is None else known.lower_bound,
        stated.choices,
        placement_from(chosen),
        Partition(tuple(chosen["partition"]), recompute),
        unpack(known.schedule),
        stated.capacities,
        stated.variants,
        known.free,
    )
