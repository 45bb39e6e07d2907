"""Conversion of partitions, and of the evidence of a lower bound over all plans, to JSON documents and back."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pipesched.layers.partition import Partition, Recomputed
from pipesched.problem.attainable_spans import simplest
from pipesched.problem.formatting import visible
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import UnknownForm
from pipesched.results.evidence_document import evidence_document, evidence_from, unknown_form
from pipesched.results.plan_evidence import (
    AllOrders,
    AllPartitions,
    MeanLoad,
    OrderPaths,
    PlanEvidence,
    SolvedPartition,
    TooManyStages,
)


def partition_document(partition: Partition) -> dict[str, object]:
    """Return a partition as a document: `layers` of each stage, and `recompute`.

    The latter has for each stage a list of [name of the layer, mode, number of layers]; empty if no stage recomputes.
    """
    return {"layers": list(partition.counts), "recompute": [[list(one) for one in row] for row in partition.recompute]}


def partition_from(document: Any) -> Partition:
    """Read a partition from its document, `layers` and `recompute`, without checks against a model.

    KeyError, TypeError or ValueError for any other form.
    """
    rows = tuple(tuple(Recomputed(str(a), str(b), _whole(n)) for a, b, n in row) for row in document["recompute"])
    return Partition(tuple(map(_whole, document["layers"])), rows)


def plan_evidence_document(evidence: PlanEvidence | None) -> dict[str, object] | None:
    """Return the evidence of a placement's bound as a document; None where there is none.

    It has `form`, and by form `solved`, partitions with their bounds in the file's unit and certificates in ticks, all
    exact text, or `orders`, partitions for each order. A form that this version does not know has the keys as read.
    """
    match evidence:
        case MeanLoad():
            return {"form": "mean load"}
        case TooManyStages():
            return {"form": "no such partition"}
        case AllPartitions(solved):
            return {"form": "all partitions", "solved": list(map(_solved_document, solved))}
        case AllOrders(orders):
            return {"form": "published orders", "orders": list(map(_order_document, orders))}
        case UnknownForm():
            return evidence_document(evidence)
    return None


def plan_evidence_from(document: Any) -> PlanEvidence | None:
    """Return the evidence in a document.

    None for none, and `UnknownForm` for a form that this version does not write.
    """
    try:
        return None if document is None else _known(document)
    except KeyError as error:
        return unknown_form(document, f"{error.args[0]}: found nothing; allowed: what the tool writes there")
    except (TypeError, ValueError, AttributeError, ArithmeticError):
        return unknown_form(document, "a value is not of the kind that the tool writes there")


def _known(document: Any) -> PlanEvidence:
    """Read evidence of a form that this version writes; KeyError, TypeError or ValueError for any other."""
    match document["form"]:
        case "mean load":
            return MeanLoad()
        case "no such partition":
            return TooManyStages()
        case "all partitions":
            return AllPartitions(tuple(map(_solved_from, document["solved"])))
        case "published orders":
            return AllOrders(tuple(map(_order_from, document["orders"])))
    return unknown_form(document)


def _solved_document(one: SolvedPartition) -> dict[str, object]:
    certificate = one.certificate
    document = partition_document(one.partition) | {"lower_bound": None if one.bound is None else str(one.bound)}
    if certificate is None:
        return document
    stated: dict[str, object] = {
        "kind": certificate.kind,
        "value": str(certificate.value_ticks),
        "text": certificate.text,
        "device": certificate.device,
    }
    evidence = None if certificate.evidence is None else evidence_document(certificate.evidence)
    return document | {"certificate": stated | {"evidence": evidence}}


def _solved_from(document: Any) -> SolvedPartition:
    bound, stated = document["lower_bound"], document.get("certificate")
    certificate = None
    if stated is not None:
        evidence = stated.get("evidence")
        certificate = Certificate(
            visible(str(stated["kind"])),
            simplest(Fraction(str(stated["value"]))),
            visible(str(stated["text"])),
            None if stated["device"] is None else _whole(stated["device"]),
            None if evidence is None else evidence_from(evidence),
        )
    return SolvedPartition(partition_from(document), None if bound is None else Fraction(str(bound)), certificate)


def _order_document(paths: OrderPaths) -> dict[str, object]:
    return {
        "order": paths.order,
        "tried": list(map(partition_document, paths.tried)),
        "unfit": list(map(partition_document, paths.unfit)),
    }


def _order_from(document: Any) -> OrderPaths:
    tried, unfit = (tuple(map(partition_from, document[key])) for key in ("tried", "unfit"))
    return OrderPaths(str(document["order"]), tried, unfit)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(value)
    return value
