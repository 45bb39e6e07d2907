"""Changes of a certificate: its value, its argument, and the numbers and rows of its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from fractions import Fraction
from random import Random
from typing import Any

from pipesched.checking.attainable import least_attainable_above
from pipesched.problem.passes import B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import Evidence, RowMultipliers
from pipesched.results.relaxation_rows import RowKind, RowName


def mutated(
    problem: Problem, genuine: Certificate, best: Fraction, kinds: Sequence[str], random: Random
) -> Certificate:
    """The certificate with its value raised, its evidence changed, or both; now and then with another argument."""
    assert genuine.evidence is not None
    above = least_attainable_above(problem, best)
    value = random.choice((genuine.value, above, above, above + random.randint(1, 20)))
    forged = replace(genuine, value=value)
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        evidence = forged.evidence
        assert evidence is not None
        forged = replace(forged, evidence=_changed(problem, evidence, random))
    if random.random() < 0.1:
        forged = replace(forged, kind=random.choice(kinds))
    return forged


def _changed(problem: Problem, evidence: Evidence, random: Random) -> Evidence:
    """One field of the evidence changed."""
    if isinstance(evidence, RowMultipliers) and random.random() < 0.6:
        return _rows_changed(evidence, random)
    name = random.choice([each.name for each in fields(evidence)])
    old = getattr(evidence, name)
    new: object = old
    match old:
        case bool():
            new = not old
        case tuple():
            new = _list(old, random)
        case Fraction():
            new = old * random.choice((Fraction(1, 2), 2, 3, Fraction(1, 3)))
        case int() | None if name in ("device", "owner", "stage"):
            new = random.choice((*range(-1, len(problem.stages) + 1), *([None] if name == "owner" else [])))
        case int():
            new = max(0, old + random.choice((-1, 1, 2, 5, 100)))
    changed: Any = {name: new}
    return replace(evidence, **changed)


def _list(old: tuple[Any, ...], random: Random) -> tuple[Any, ...]:
    """One entry changed, one left out, or one twice."""
    at = random.randrange(len(old)) if old else 0
    change = random.choice(("more", "twice as much", "nothing", "negative", "left out", "again"))
    if not old or change == "again":
        return (*old[:at], *old[at : at + 1], *old[at:])
    if change == "left out":
        return (*old[:at], *old[at + 1 :])
    if isinstance(old[at], RowName):
        return (*old[:at], _row_changed(old[at], random), *old[at + 1 :])
    new = {"more": old[at] + random.randint(1, 9), "twice as much": 2 * old[at], "nothing": 0, "negative": -old[at] - 1}
    return (*old[:at], new[change], *old[at + 1 :])


def _rows_changed(evidence: RowMultipliers, random: Random) -> RowMultipliers:
    """A row with its multiplier left out or put in again, one multiplied anew, or one that states something else."""
    rows, multipliers = list(evidence.rows), list(evidence.multipliers)
    shorter = min(len(rows), len(multipliers))  # one of them may have lost an entry before
    if not shorter:
        return evidence
    at = random.randrange(shorter)
    change = random.choice(("left out", "again", "multiplied", "stated"))
    if change == "left out":
        del rows[at], multipliers[at]
    elif change == "again":
        rows.append(_row_changed(rows[at], random))
        multipliers.append(multipliers[at])
    elif change == "multiplied":
        multipliers[at] = round(multipliers[at] * random.choice((-1, 0, 0.5, 1.5, 2, 4)))
    else:
        rows[at] = _row_changed(rows[at], random)
    return replace(evidence, rows=tuple(rows), multipliers=tuple(multipliers))


def _row_changed(row: RowName, random: Random) -> RowName:
    """Of another kind with as many operations, with one of them changed, or with the two the other way round."""
    change = random.random()
    if change < 0.3:
        return row._replace(kind=random.choice([kind for kind in RowKind if _two(kind) == _two(row.kind)]))
    if change < 0.5 and len(row.operations) == 2:
        return row._replace(operations=row.operations[::-1])
    at = random.randrange(len(row.operations))
    kind, stage, j = row.operations[at]
    which = random.randrange(3)
    kind = random.choice((F, B, W)) if which == 0 else kind
    stage, j = stage + (which == 1) * random.choice((-1, 1)), j + (which == 2) * random.choice((-1, 1))
    return row._replace(operations=(*row.operations[:at], Pass(kind, stage, j), *row.operations[at + 1 :]))


def _two(kind: RowKind) -> bool:
    return kind in (RowKind.FOLLOWS, RowKind.IDLE_GROWS, RowKind.FUSED)
