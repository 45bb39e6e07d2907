"""Ablation: random problems of every kind, and each part of the engine left out where it does most.

    python -m benchmarks.ablation --resume --write docs/results/ablation.md --picture docs/images/gap-over-time.png

Seventeen problems of the fixed suite of `benchmarks.random`, two of `benchmarks.growth`, a profile of
`benchmarks.engine` and unequal micro-batches of `benchmarks.unequal`, 20 seconds each: once with the whole engine, once
with plain CP-SAT, then each part is left out on the three problems or fewer where it proves or takes most of the time:
35 minutes. Results are kept in a file after every solve; --resume runs only what is not there yet.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from benchmarks.cases.engine_parts import PARTS, Part, plain
from benchmarks.cases.random_problems import random_problems
from benchmarks.cases.rows import select
from benchmarks.growth import FAMILIES
from benchmarks.reporting.ablation_table import PLAIN, WHOLE, Records, cell, left_out_on, markdown
from benchmarks.reporting.gap_plot import draw
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put, relative_to_page
from benchmarks.reporting.record import Record, failed, record, settings_of
from benchmarks.reporting.store import Store
from benchmarks.unequal import dynapipe
from pipesched.errors import BadInput, PipeschedError, did_you_mean
from pipesched.problem.problem import Problem
from solver.engine.engine import ENGINE
from solver.engine.search import Engine
from solver.limits import Limits
from solver.solve import solve

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


def measure_variant(problem: Problem, engine: Engine, limits: Limits) -> Record:
    """One problem with a part of the engine left out; a solve that breaks is a result too."""
    started = perf_counter()
    try:
        return record(problem.name, solve(problem, limits, engine=engine), limits)
    except (PipeschedError, ArithmeticError, LookupError, ValueError, AssertionError) as error:
        print(f"{problem.name}: {type(error).__name__}: {error}", file=sys.stderr)
        return failed(problem.name, limits, problem, perf_counter() - started, error)


def key(name: str, variant: str) -> str:
    """Of a problem's variant in the results."""
    return f"{name} / {variant}"


def main() -> int:
    """Every variant of every problem, the table and the picture; 1 if a solve broke."""
    args = arguments()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Measure, then write what was asked for; 1 if a solve broke."""
    problems, parts = chosen(args.seed)[: args.problems], _wanted(args.parts)
    limits = Limits(seconds=args.seconds, workers=args.workers, seed=args.seed)
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
    left = [variant for variant in engines if not store.has(key(problem.name, variant), settings_of(limits))]
    if settle and left:
        measure_variant(problem, ENGINE, replace(limits, seconds=_BEFORE * limits.seconds))
    for variant in left:
        name, found = key(problem.name, variant), measure_variant(problem, engines[variant], limits)
        store.add(name, found)
        print(f"{name}: {cell(found)}", file=sys.stderr, flush=True)


def _found(store: Store, limits: Limits, problem: Problem) -> dict[str, Record]:
    """Of a problem, by variant."""
    names = {variant: key(problem.name, variant) for variant in (WHOLE, PLAIN, *(part.variant for part in PARTS))}
    known = store.under(settings_of(limits))
    return {variant: known[name] for variant, name in names.items() if name in known}


def _written(args: Namespace, parts: Sequence[Part], records: Records, described: str) -> int:
    """The table and the picture; 1 if a solve broke."""
    text = markdown(parts, records, described)
    print(text)
    if args.picture is not None:
        draw(records, args.picture, args.seconds)
    if args.write is not None:
        link = None if args.picture is None else relative_to_page(args.picture, args.write)
        put(args.write, COMMAND, text if link is None else f"{text}\n\n![certified gap over time]({link})")
    return 1 if any(found.error for variants in records.values() for found in variants.values()) else 0


def arguments() -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, metavar="COUNT", help="only the first of them")
    parser.add_argument("--parts", nargs="+", metavar="NAME", help="only these parts")
    parser.add_argument("--seconds", type=float, default=20, help="for each solve (default 20)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("results/ablation.json"), metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="keep what was already measured with these settings")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to write, docs/results/ablation.md")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw gap over time as PNG or SVG")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
