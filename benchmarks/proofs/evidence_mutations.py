"""Changes of a certificate: its value, its argument, and the numbers of its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from fractions import Fraction
from random import Random
from typing import Any

from pipesched.checking.attainable import least_attainable_above
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import Evidence, OfRelaxed, TasksAsStages


def mutated(
    problem: Problem, genuine: Certificate, best: Fraction, kinds: Sequence[str], random: Random
) -> Certificate:
    """The certificate with its value raised, its evidence changed, or both; now and then with another argument."""
    assert genuine.evidence is not None
    above = least_attainable_above(problem, best)
    value = random.choice((genuine.value_ticks, above, above, above + random.randint(1, 20)))
    forged = replace(genuine, value_ticks=value)
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        evidence = forged.evidence
        assert evidence is not None
        forged = replace(forged, evidence=_changed(problem, evidence, random))
    if random.random() < 0.1:
        forged = replace(forged, kind=random.choice(kinds))
    return forged


def _changed(problem: Problem, evidence: Evidence, random: Random) -> Evidence:
    """One field of the evidence changed."""
    if isinstance(evidence, OfRelaxed) and random.random() < 0.5:
        return replace(evidence, evidence=_changed(problem, evidence.evidence, random))
    if isinstance(evidence, OfRelaxed):
        return replace(evidence, relaxation=_with_other_field(problem, evidence.relaxation, random))
    other: Evidence = _with_other_field(problem, evidence, random)
    return other


def _with_other_field(problem: Problem, evidence: Any, random: Random) -> Any:
    """Evidence, or a relaxation that it names, with one field changed."""
    name = random.choice([each.name for each in fields(evidence)])
    old = getattr(evidence, name)
    new: object = old
    match old:
        case bool():
            new = not old
        case tuple() if isinstance(evidence, TasksAsStages):
            new = _rows(old, random)
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
    new = {"more": old[at] + random.randint(1, 9), "twice as much": 2 * old[at], "nothing": 0, "negative": -old[at] - 1}
    return (*old[:at], new[change], *old[at + 1 :])


def _rows(old: tuple[Any, ...], random: Random) -> tuple[Any, ...]:
    """Rows with one of them left out, there twice or in the place of another one, or with another number."""
    rows = [list(row) for row in old]
    index = random.randrange(len(rows)) if rows else 0
    change = random.choice(("left out", "again", "swapped", "number", "number", "number"))
    if not rows or change == "left out":
        rows[index : index + 1] = []
    elif change == "again":
        rows.insert(index, rows[index])
    elif change == "swapped":
        other = random.randrange(len(rows))
        rows[index], rows[other] = rows[other], rows[index]
    else:
        rows[index][random.randrange(1, 4)] = random.choice((None, 0, 1, 2))
    return tuple(map(tuple, rows))
