"""Forged certificates of tiny problems, whose optimum is found by trying every order: does the check refuse them?

    python -m benchmarks.forged_evidence [--mutations 10000] [--seed 0] [--write docs/checking.md]

A mutation changes the value, the argument, the device, or the numbers of a certificate's evidence. Then the claim is
either false, above the optimum: the check must refuse it. Or it still is true: the check may find that the changed
evidence proves it, or refuse it.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.bound_problems import draw
from benchmarks.proofs.exhaustive import NotTiny, least_value
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put, table
from pipesched.checking.attainable import least_attainable_above
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import AroundDevice, DeviceMultipliers, Evidence, OnDevice, OnStage
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.lagrangian.bound import lagrangian_bounds

COMMAND = "python -m benchmarks.forged_evidence --write docs/checking.md"
# Mutations of one certificate, and values up to which an exhaustive search of a tiny problem looks.
_EACH, _AT_MOST = 40, 10_000
# Random multipliers that are tried for each problem.
_RANDOM = 3
KINDS = {
    "load": OnDevice,
    "round trip": OnDevice,
    "integral warm-up": OnDevice,
    "unpaired passes": OnDevice,
    "memory and modes": OnDevice,
    "in-flight limit": OnStage,
    "head and tail": AroundDevice,
    "Lagrangian": DeviceMultipliers,
}


@dataclass
class Tally:
    """Counts by kind of certificate: false claims refused and accepted, true ones with changed evidence likewise."""

    false_refused: Counter[str] = field(default_factory=Counter)
    false_accepted: Counter[str] = field(default_factory=Counter)
    true_refused: Counter[str] = field(default_factory=Counter)
    true_accepted: Counter[str] = field(default_factory=Counter)
    unproved: list[str] = field(default_factory=list)  # genuine certificates that the check refuses

    @property
    def mutations(self) -> int:
        return sum(sum(getattr(self, each.name).values()) for each in fields(self)[:4])


def forge(count: int, seed: int) -> Tally:
    """At least so many mutations of the certificates of random tiny problems."""
    random, tally = Random(seed), Tally()
    while tally.mutations < count:
        problem = draw(random, random.choice(BRANCHES).likely)
        problem = replace(problem, objective=random.choice((Objective.MAKESPAN, Objective.SPAN)))
        try:
            best = least_value(problem, problem.objective, _AT_MOST)
        except NotTiny:
            continue
        if best is not None:
            attack(problem, best, random, tally)
    return tally


def attack(problem: Problem, best: Fraction, random: Random, tally: Tally) -> None:
    """Mutations of every certificate of a problem with this optimum."""
    for genuine in _certificates(problem, best, random):
        if check_bound(problem, genuine).verdict is not Verdict.VERIFIED:
            tally.unproved.append(f"{genuine} of {problem}")
        for _ in range(_EACH):
            forged = mutated(problem, genuine, best, random)
            accepted = check_bound(problem, forged).verdict is Verdict.VERIFIED
            if forged.value > best:
                (tally.false_accepted if accepted else tally.false_refused)[forged.kind] += 1
            elif forged.evidence != genuine.evidence:
                (tally.true_accepted if accepted else tally.true_refused)[forged.kind] += 1


def _certificates(problem: Problem, best: Fraction, random: Random) -> Iterator[Certificate]:
    yield from (one for one in certificates(problem, problem.objective) if one.kind in KINDS and one.value > 0)
    yield from lagrangian_bounds(problem, 0, ceil(best) + 2, 2.0, Event())
    # A linear program finds few on tiny problems; any multipliers prove something.
    for _ in range(_RANDOM):
        yield from _of_multipliers(problem, best, random)


def _of_multipliers(problem: Problem, best: Fraction, random: Random) -> Iterator[Certificate]:
    """The strongest certificate of random multipliers of some device, if they prove anything."""
    device, most = random.randrange(problem.devices), ceil(best)
    instants = tuple(sorted(random.sample(range(most + 1), min(most + 1, random.randint(1, 6)))))
    running = tuple(random.choice((0, 1, 1, 2, 5)) for _ in instants)
    holding = tuple(0 if problem.room[device] is None else random.choice((0, 0, 1, 2)) for _ in instants)
    owner = None if problem.objective is Objective.MAKESPAN else random.randrange(problem.devices)
    unit = problem.resolution * random.choice((1, 1, 2))
    for until in range(most, 0, -1):
        evidence = DeviceMultipliers(device, owner, problem.tick, until, unit, instants, running, holding)
        one = Certificate("Lagrangian", least_attainable_above(problem, until), "", device, evidence)
        if check_bound(problem, one).verdict is Verdict.VERIFIED:
            yield one
            return


def mutated(problem: Problem, genuine: Certificate, best: Fraction, random: Random) -> Certificate:
    """The certificate with its value raised, its evidence changed, or both."""
    assert genuine.evidence is not None
    above = least_attainable_above(problem, best)
    value = random.choice((genuine.value, above, above, above + random.randint(1, 20)))
    forged = replace(genuine, value=value)
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        evidence = forged.evidence
        assert evidence is not None
        forged = replace(forged, evidence=_changed(problem, evidence, random))
    if random.random() < 0.1:
        forged = replace(forged, kind=random.choice(list(KINDS)))
    return forged


def _changed(problem: Problem, evidence: Evidence, random: Random) -> Evidence:
    """One field of the evidence changed."""
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


def _list(old: tuple[int, ...], random: Random) -> tuple[int, ...]:
    """One entry changed, one left out, or one twice."""
    at = random.randrange(len(old)) if old else 0
    change = random.choice(("more", "twice as much", "nothing", "negative", "left out", "again"))
    if not old or change == "again":
        return (*old[:at], *old[at : at + 1], *old[at:])
    if change == "left out":
        return (*old[:at], *old[at + 1 :])
    new = {"more": old[at] + random.randint(1, 9), "twice as much": 2 * old[at], "nothing": 0, "negative": -old[at] - 1}
    return (*old[:at], new[change], *old[at + 1 :])


def markdown(tally: Tally, described: str) -> str:
    """The table of the page."""
    head = "certificate", "false claims refused", "false claims accepted", "true, evidence changed: refused", "accepted"
    counts = tally.false_refused, tally.false_accepted, tally.true_refused, tally.true_accepted
    lines = [[kind, *(f"{count[kind]:,}" for count in counts)] for kind in KINDS]
    lines.append(["all", *(f"{sum(count.values()):,}" for count in counts)])
    return f"{described}\n\n{table(head, lines)}\n\n{tally.mutations:,} mutations in all."


def main() -> int:
    """Forge, print the table; 1 if the check accepts a false claim or refuses a genuine certificate."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=10_000, help="at least so many (default 10000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page, docs/checking.md")
    return exit_code(lambda: _run(parser.parse_args()))


def _run(args: Namespace) -> int:
    tally = forge(args.mutations, args.seed)
    text = markdown(tally, machine(args.seed, 1, "numba"))
    print(text)
    for wrong in tally.unproved:
        print(f"refused though genuine: {wrong}", file=sys.stderr)
    if args.write is not None:
        put(args.write, COMMAND, text)
    return 1 if tally.unproved or sum(tally.false_accepted.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
