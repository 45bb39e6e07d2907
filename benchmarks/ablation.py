"""Ablation: random problems of every kind, and each part of the engine left out where it does most.

    python -m benchmarks.ablation --resume --write docs/results/ablation.md

Seventeen problems like those of the fixed suite of `benchmarks.random` and five of its tasks, drawn with three other
seeds in turn, two of `benchmarks.growth`, a profile of `benchmarks.engine` and unequal micro-batches of
`benchmarks.unequal`, 20 seconds each: once with the whole engine, once with plain CP-SAT, then each part is left out on
the three problems or fewer where it proves or takes most of the time: 45 minutes. Results are kept in a file after
every solve; --resume runs only what is not there yet.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.cases.drawn_tasks import drawn_tasks
from benchmarks.cases.engine_subsolvers import COMPONENTS, Component, plain
from benchmarks.cases.profiles import PROFILES
from benchmarks.cases.random_problems import random_problems
from benchmarks.growth import problem_of
from benchmarks.reporting.page import exit_code, in_percent, show, table
from benchmarks.reporting.record import Record, measured, settings_of
from benchmarks.reporting.store import Store
from benchmarks.reporting.suite import gap_text, limits_of, parser_of, store_of
from benchmarks.unequal import dynapipe
from pipesched.errors import BadInput, did_you_mean
from pipesched.problem.problem import Problem
from solver.engine.engine import ENGINE
from solver.engine.search import Engine
from solver.limits import Limits

COMMAND = "python -m benchmarks.ablation"
WHOLE, PLAIN = "whole engine", "plain CP-SAT"
# Of the random problems those on which nearly all parts that any of them uses have something to do.
CHOSEN = (0, 2, 4, 8, 9, 14, 16, 19, 21, 23, 24, 27, 29, 33, 34, 35, 38)
# Of those of several tasks: an exchange, copies to the host, recomputation, both, gathered parameters.
OF_TASKS = (4, 6, 11, 13, 18)
_SEEDS = 3
# Of the seconds of a solve; what a process keeps of a problem, as patterns of V schedules, one before pays for.
_BEFORE = 0.1
# Of the seconds of a solve, what a part takes at least where it is left out; and the most problems of a part.
_LEAST_SHARE, _MOST = 0.01, 3


def chosen(seed: int) -> Sequence[Problem]:
    """Freshly drawn problems, very long ones, a profile that its warm-up decides, and micro-batches in any order."""
    every = list[Problem]()
    for draw, numbers in ((random_problems, CHOSEN), (drawn_tasks, OF_TASKS)):
        drawn = [draw(seed + 1 + number) for number in range(_SEEDS)]
        every += [drawn[number % _SEEDS][which] for number, which in enumerate(numbers)]
    long = problem_of("linear, .6p", 16, 512), problem_of("V, .6p", 64, 512)
    profile = next(one.problem(2 * one.p, "span", "zb-28.3b-m96-2p") for one in PROFILES if (one.p, one.m) == (32, 96))
    unequal = next(problem for problem in dynapipe() if problem.name == "DynaPipe, linear, free")
    return [*every, *long, profile, unequal]


def main() -> int:
    """Every variant of every problem, and the table; 1 if a solve broke."""
    parser = parser_of(COMMAND, __doc__, 20, "ablation")
    parser.add_argument("--problems", type=int, metavar="COUNT", help="only the first of them")
    parser.add_argument("--parts", nargs="+", metavar="NAME", help="only these parts")
    args = parser.parse_args()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Measure, then write what was asked for; 1 if a solve broke."""
    problems, parts = chosen(args.seed)[: args.problems], wanted(args.parts)
    limits, store = limits_of(args), store_of(args)
    for problem in problems:
        _measure(store, limits, problem, {WHOLE: ENGINE, PLAIN: plain()}, settle=True)
    for part in parts:
        wholes = {one.name: store.records[_key(one.name, WHOLE)] for one in problems if part.where(one)}
        names = left_out_on(part, wholes)
        for problem in (one for one in problems if one.name in names):
            _measure(store, limits, problem, {part.variant: part.engine})
    known = store.under(settings_of(limits))
    found = {
        problem.name: {
            variant: known[name]
            for variant in (WHOLE, PLAIN, *(part.variant for part in COMPONENTS))
            for name in [_key(problem.name, variant)]
            if name in known
        }
        for problem in problems
    }
    show(args.write, COMMAND, f"{store.machine}\n\n{markdown(parts, found)}")
    return 1 if any(one.error for variants in found.values() for one in variants.values()) else 0


def wanted(names: Sequence[str] | None) -> Sequence[Component]:
    """The parts of these names; all of them where none is given."""
    known = {part.name: part for part in COMPONENTS}
    for name in names or ():
        if name not in known:
            raise BadInput(f"--parts: found {name!r}; allowed: parts of the engine{did_you_mean(name, list(known))}")
    return COMPONENTS if names is None else [known[name] for name in names]


def _key(name: str, variant: str) -> str:
    return f"{name} / {variant}"


def _measure(
    store: Store, limits: Limits, problem: Problem, engines: Mapping[str, Engine], settle: bool = False
) -> None:
    """The variants that are not there yet; `settle` solves the problem for a moment before the first one."""
    if settle and any(not store.has(_key(problem.name, variant), settings_of(limits)) for variant in engines):
        measured(problem, replace(limits, seconds=_BEFORE * limits.seconds))
    for variant, engine in engines.items():
        name = _key(problem.name, variant)
        if store.measure(name, problem, limits, engine):
            print(f"{name}: {gap_text(store.records[name])}", file=sys.stderr, flush=True)


def left_out_on(part: Component, wholes: Mapping[str, Record]) -> list[str]:
    """The problems on which to leave a part out: where its bound is the one that proves, then where it takes most."""

    def rank(name: str) -> tuple[bool, float]:
        whole = wholes[name]
        taken = sum(seconds for each, seconds in whole.parts if each in part.takes)
        return whole.proved_by in part.kinds, min(1.0, taken / whole.wall) if whole.wall else 0.0

    tells = [name for name in wholes if rank(name)[0] or rank(name)[1] >= _LEAST_SHARE]
    return sorted(tells, key=rank, reverse=True)[:_MOST]


def markdown(parts: Sequence[Component], records: Mapping[str, Mapping[str, Record]]) -> str:
    """The results of the whole engine, then the loss without each part, then the parts left out on none."""
    numbers = {name: str(number) for number, name in enumerate(records, 1)}
    whole = [[numbers[name], name, gap_text(found[WHOLE]), gap_text(found[PLAIN])] for name, found in records.items()]
    lines, idle = [], []
    for part in parts:
        names = [name for name, found in records.items() if part.variant in found]
        if names:
            lost = [_lost(records[name][WHOLE], records[name][part.variant]) for name in names]
            on = [numbers[name] for name in names]
            lines.append([part.name, *map(", ".join, (on, *zip(*lost, strict=True)))])
        else:
            idle.append(part.name)
    paragraphs = [
        table(("", "problem", WHOLE, PLAIN), whole),
        "Each part on the problems it was left out on. *Value above* and *bound below* are what is lost on each, "
        "against the value and the bound with it.",
        table(("part left out", "on", "value above, %", "bound below, %"), lines),
    ]
    if idle:
        paragraphs.append(
            f"On none of these problems do these take a hundredth of the time or prove: {', '.join(idle)}."
        )
    return "\n\n".join(paragraphs)


def _lost(whole: Record, without: Record) -> tuple[str, str]:
    """The value's distance above that of the whole engine, and the bound's below it, in per cent."""
    value_loss = None if not whole.value or without.value is None else without.value / whole.value - 1
    bound_loss = 1 - without.bound / whole.bound if whole.bound else None
    return _signed(value_loss), _signed(bound_loss)


def _signed(lost: float | None) -> str:
    return "–" if lost is None else "-" * (lost < 0) + in_percent(abs(lost))


if __name__ == "__main__":
    sys.exit(main())
