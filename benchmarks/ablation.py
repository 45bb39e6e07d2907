"""Ablation: random problems of every kind, and each part of the engine left out where it does most.

    python -m benchmarks.ablation --resume --write docs/results/ablation.md --picture docs/images/gap-over-time.png

Seventeen problems of the fixed suite of `benchmarks.random`, two of `benchmarks.growth`, a profile of
`benchmarks.engine` and unequal micro-batches of `benchmarks.unequal`, 20 seconds each: once with the whole engine, once
with plain CP-SAT, then each part is left out on the three problems or fewer where it proves or takes most of the time:
35 minutes. Results are kept in a file after every solve; --resume runs only what is not there yet.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.cases.engine_parts import PARTS, Part, plain
from benchmarks.cases.random_problems import random_problems
from benchmarks.cases.rows import select
from benchmarks.growth import FAMILIES
from benchmarks.reporting.ablation_table import PLAIN, WHOLE, Records, cell, left_out_on, markdown
from benchmarks.reporting.command_line import keep_results, limits_of, parser_of
from benchmarks.reporting.gap_plot import draw
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, link_to, show
from benchmarks.reporting.record import Record, measured, settings_of
from benchmarks.reporting.store import Store
from benchmarks.unequal import dynapipe
from pipesched.errors import BadInput, did_you_mean
from pipesched.problem.problem import Problem
from solver.engine.engine import ENGINE
from solver.engine.search import Engine
from solver.limits import Limits

COMMAND = "python -m benchmarks.ablation"
# Of the random problems those on which nearly all parts that any of them uses have something to do.
CHOSEN = (0, 2, 4, 8, 9, 14, 16, 19, 21, 23, 24, 27, 29, 33, 34, 35, 38)
# Of the problems that grow: very long ones, which are shortened or extended. The family, devices and micro-batches.
LONG = ((1, 16, 512), (3, 64, 512))
# Of the published profiles one in which the forwards before the first backward decide; micro-batches in any order.
PROFILE, UNEQUAL = "zb-28.3b-m96-2p", "DynaPipe, linear, free"
# Of the seconds of a solve; what a process keeps of a problem, as patterns of V schedules, one before pays for.
_BEFORE = 0.1


def chosen(seed: int) -> Sequence[Problem]:
    """The problems."""
    every = random_problems(seed)
    long = [FAMILIES[family].problem(devices, microbatches) for family, devices, microbatches in LONG]
    profile = next(row.problem for row in select(PROFILE))
    unequal = next(problem for problem in dynapipe() if problem.name == UNEQUAL)
    return [*(every[number] for number in CHOSEN), *long, profile, unequal]


def key(name: str, variant: str) -> str:
    """Of a problem's variant in the results."""
    return f"{name} / {variant}"


def main() -> int:
    """Every variant of every problem, the table and the picture; 1 if a solve broke."""
    parser = parser_of(COMMAND, __doc__, 20, "each solve")
    parser.add_argument("--problems", type=int, metavar="COUNT", help="only the first of them")
    parser.add_argument("--parts", nargs="+", metavar="NAME", help="only these parts")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw gap over time as PNG or SVG")
    keep_results(parser, "ablation")
    args = parser.parse_args()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Measure, then write what was asked for; 1 if a solve broke."""
    problems, parts = chosen(args.seed)[: args.problems], _wanted(args.parts)
    limits = limits_of(args)
    store = Store(args.results, f"{machine(args.seed, args.workers)}; {args.seconds:g} s a problem")
    if args.resume:
        store.load()
    for problem in problems:
        _measure(store, limits, problem, {WHOLE: ENGINE, PLAIN: plain()}, settle=True)
    for part in parts:
        wholes = {one.name: store.records[key(one.name, WHOLE)] for one in problems if part.where(one)}
        names = left_out_on(part, wholes)
        for problem in (one for one in problems if one.name in names):
            _measure(store, limits, problem, {part.variant: part.engine})
    return _written(args, parts, {problem.name: _found(store, limits, problem) for problem in problems}, store.machine)


def _wanted(names: Sequence[str] | None) -> Sequence[Part]:
    """The parts of these names; all of them where none is given."""
    known = {part.name: part for part in PARTS}
    for name in names or ():
        if name not in known:
            raise BadInput(f"--parts: found {name!r}; allowed: parts of the engine{did_you_mean(name, list(known))}")
    return PARTS if names is None else [known[name] for name in names]


def _measure(
    store: Store, limits: Limits, problem: Problem, engines: Mapping[str, Engine], settle: bool = False
) -> None:
    """The variants that are not there yet; `settle` solves the problem for a moment before the first one."""
    if settle and any(not store.has(key(problem.name, variant), settings_of(limits)) for variant in engines):
        measured(problem, replace(limits, seconds=_BEFORE * limits.seconds))
    for variant, engine in engines.items():
        name = key(problem.name, variant)
        if store.measure(name, problem, limits, engine):
            print(f"{name}: {cell(store.records[name])}", file=sys.stderr, flush=True)


def _found(store: Store, limits: Limits, problem: Problem) -> dict[str, Record]:
    """Of a problem, by variant."""
    names = {variant: key(problem.name, variant) for variant in (WHOLE, PLAIN, *(part.variant for part in PARTS))}
    known = store.under(settings_of(limits))
    return {variant: known[name] for variant, name in names.items() if name in known}


def _written(args: Namespace, parts: Sequence[Part], records: Records, described: str) -> int:
    """The table and the picture; 1 if a solve broke."""
    text = markdown(parts, records, described)
    if args.picture is not None:
        draw(records, args.picture, args.seconds)
        text += link_to(args.picture, args.write, "certified gap over time")
    show(args.write, COMMAND, text)
    return 1 if any(found.error for variants in records.values() for found in variants.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
