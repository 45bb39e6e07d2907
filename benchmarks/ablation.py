"""Ablation: random problems of every kind with one part of the engine left out, and with nearly all of it left out.

    python -m benchmarks.ablation --resume --write docs/engine.md --picture docs/images/gap-over-time.png

Eight problems of `benchmarks.wild`, 6 seconds each, for every variant and once before: a quarter of an hour. Results
are kept in a file after every solve; --resume runs only what is not there yet.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from time import perf_counter

from benchmarks.cases.random_problems import random_problems
from benchmarks.reporting.engine_table import percent
from benchmarks.reporting.gap_plot import draw
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put, relative_to_page, table
from benchmarks.reporting.record import Record, failed, record, settings_of
from benchmarks.reporting.store import Store
from pipesched.errors import PipeschedError
from pipesched.problem.problem import Problem
from solver.engine.engine import ENGINE
from solver.engine.phases.beam_schedules import BeamSchedules
from solver.engine.phases.block_orders import BlockOrders
from solver.engine.phases.bounds.analytic_bounds import AnalyticBounds
from solver.engine.phases.bounds.crossing_below import CrossingsBelow
from solver.engine.phases.bounds.crossing_chains import CrossingsOfChains
from solver.engine.phases.bounds.crossing_some_whole import CrossingsSomeWhole
from solver.engine.phases.bounds.crossing_stages import CrossingsOfMoreStages, CrossingStages
from solver.engine.phases.bounds.crossing_steps import CrossingSteps
from solver.engine.phases.bounds.crossing_whole import CrossingsWhole
from solver.engine.phases.bounds.crossings import CrossingBounds
from solver.engine.phases.bounds.linear_relaxation import LinearRelaxation
from solver.engine.phases.exact_below import ExactModelBelow
from solver.engine.phases.exact_model import ExactModel
from solver.engine.phases.list_schedules import ListSchedules
from solver.engine.phases.local_search import LocalSearch, LocalSearchAgain
from solver.engine.phases.mirrored_schedules import MirroredSchedules
from solver.engine.phases.periodic import Periodic
from solver.engine.phases.published import Published
from solver.engine.phases.published_extended import PublishedExtended
from solver.engine.phases.shorter_problem import ShorterProblem
from solver.engine.phases.step_orders import StepOrders
from solver.engine.phases.step_orders_below import StepOrdersBelow
from solver.engine.phases.tuned_lists import TunedListSchedules
from solver.engine.search import Engine, Phase
from solver.limits import Limits
from solver.solve import solve

COMMAND = "python -m benchmarks.ablation"
# Of the random problems every sixth, from a very long one on, and a long one with little memory.
CHOSEN = (4, 9, 10, 16, 22, 28, 34, 40)
LOCAL_SEARCH = (LocalSearch, LocalSearchAgain, MirroredSchedules)


def without(*left_out: type[Phase]) -> tuple[Phase, ...]:
    """The phases of the engine but those of these types."""
    return tuple(phase for phase in ENGINE.phases if not isinstance(phase, left_out))


def plain() -> Engine:
    """Published and list schedules, then CP-SAT on plain intervals, with the load for a bound."""
    phases = tuple(
        replace(phase, literals=False) if isinstance(phase, ExactModel) else phase
        for phase in without(Periodic, *LOCAL_SEARCH)
    )
    return replace(ENGINE, bounds=AnalyticBounds(load_only=True), phases=phases, raise_bounds=False)


def opening_without(*left_out: type[Phase]) -> tuple[Phase, ...]:
    """The opening phases but those of these types, in the search of a shorter problem too."""
    kept = [phase for phase in ENGINE.opening if not isinstance(phase, left_out)]
    return tuple(
        replace(phase, opening=tuple(one for one in phase.opening if not isinstance(one, left_out)))
        if isinstance(phase, ShorterProblem)
        else phase
        for phase in kept
    )


VARIANTS: Mapping[str, Engine] = {
    "whole engine": ENGINE,
    "no analytic bounds but the load": replace(ENGINE, bounds=AnalyticBounds(load_only=True)),
    "no replication": replace(ENGINE, opening=opening_without(ShorterProblem, PublishedExtended)),
    "no published schedules": replace(ENGINE, opening=opening_without(Published, PublishedExtended)),
    "no crossings": replace(ENGINE, phases=without(CrossingBounds), opening=opening_without(CrossingBounds)),
    "no crossings of steps": replace(
        ENGINE,
        phases=without(
            *(CrossingSteps, CrossingsBelow, CrossingStages, CrossingsOfMoreStages),
            *(CrossingsWhole, CrossingsSomeWhole, CrossingsOfChains),
        ),
    ),
    "no linear relaxation": replace(ENGINE, phases=without(LinearRelaxation)),
    "no search for rules": replace(
        ENGINE, phases=without(TunedListSchedules), opening=opening_without(TunedListSchedules)
    ),
    "no beam search": replace(ENGINE, phases=without(BeamSchedules, BlockOrders)),
    "no orders of steps": replace(ENGINE, phases=without(StepOrders, StepOrdersBelow)),
    "no list scheduling": replace(ENGINE, phases=without(ListSchedules)),
    "no cyclic scheduling": replace(ENGINE, phases=without(Periodic)),
    "no mirrored schedules": replace(ENGINE, phases=without(MirroredSchedules)),
    "no CP-SAT over the full horizon": replace(ENGINE, phases=without(ExactModel, ExactModelBelow)),
    "no local search": replace(ENGINE, phases=without(*LOCAL_SEARCH)),
    "no Lagrangian bound": replace(ENGINE, lagrangian=False),
    "no destructive bounds": replace(ENGINE, destructive=False),
    "plain CP-SAT": plain(),
}


def chosen(seed: int) -> Sequence[Problem]:
    """The problems."""
    every = random_problems(seed)
    return [every[number] for number in CHOSEN]


def measure_variant(problem: Problem, engine: Engine, limits: Limits) -> Record:
    """One problem with a part of the engine left out; a solve that breaks is a result too."""
    started = perf_counter()
    try:
        return record(problem.name, solve(problem, limits, engine=engine), limits)
    except (PipeschedError, ArithmeticError, LookupError, ValueError, AssertionError) as error:
        print(f"{problem.name}: {type(error).__name__}: {error}", file=sys.stderr)
        return failed(problem.name, limits, problem, perf_counter() - started, error)


def markdown(problems: Sequence[Problem], records: Mapping[str, Record], described: str) -> str:
    """A row for each variant: how near its proofs come, and what its schedules and bounds lose against the best."""
    names = [problem.name for problem in problems]
    best = {name: _best(name, records) for name in names}
    lines = []
    for variant in VARIANTS:
        found = {name: records[key(name, variant)] for name in names if key(name, variant) in records}
        if found:
            lines.append([variant, *_cells(found, best)])
    head = ("engine", "mean gap", "proved", "value above the best", "bound below the best", *names)
    told = (
        "Means over the problems, each against the best value and the best bound of any row; then the gap left of each "
        "problem."
    )
    return "\n\n".join([described, told, table(head, lines)])


def _best(name: str, records: Mapping[str, Record]) -> tuple[float | None, float]:
    """The least value and the greatest bound of a problem over all variants."""
    known = [records[key(name, variant)] for variant in VARIANTS if key(name, variant) in records]
    values = [one.value for one in known if one.value is not None]
    return min(values, default=None), max((one.bound for one in known), default=0.0)


def _cells(found: Mapping[str, Record], best: Mapping[str, tuple[float | None, float]]) -> list[str]:
    gaps = [1.0 if one.gap is None else one.gap for one in found.values()]
    above, below = [], []
    for name, one in found.items():
        value, bound = best[name]
        if one.value is not None and value:
            above.append(one.value / value - 1)
        if bound:
            below.append(1 - one.bound / bound)
    means = [f"{percent(fmean(each))}" if each else "" for each in (above, below)]
    proved = f"{sum(one.proof is not None for one in found.values())} of {len(found)}"
    return [percent(fmean(gaps)), proved, *means, *map(_cell, found.values())]


def key(name: str, variant: str) -> str:
    """Of a problem's variant in the results."""
    return f"{name} / {variant}"


def _cell(found: Record) -> str:
    if found.error:
        return found.error
    if found.gap is None:
        return "no schedule"
    return percent(found.gap) if found.proof is None else f"{found.proof:.1f} s"


def main() -> int:
    """Every variant of every problem, the table and the picture; 1 if a solve broke."""
    args = arguments()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Measure, then write what was asked for."""
    problems = chosen(args.seed)[: args.problems]
    limits = Limits(seconds=args.seconds, workers=args.workers, seed=args.seed)
    store = Store(args.results, f"{machine(args.seed, args.workers)}; {args.seconds:g} s a problem")
    store.load()
    for problem in problems:
        left = {
            variant: engine
            for variant, engine in VARIANTS.items()
            if not (args.resume and store.has(key(problem.name, variant), settings_of(limits)))
        }
        if left:
            # What a process keeps of a problem, as patterns of V schedules, the first row alone would pay for.
            measure_variant(problem, ENGINE, limits)
        for variant, engine in left.items():
            store.add(key(problem.name, variant), measure_variant(problem, engine, limits))
            found = _cell(store.records[key(problem.name, variant)])
            print(f"{key(problem.name, variant)}: {found}", file=sys.stderr, flush=True)
    records = store.under(settings_of(limits))
    text = markdown(problems, records, store.machine)
    print(text)
    if args.picture is not None:
        by_name = {one.name: {v: records[key(one.name, v)] for v in VARIANTS} for one in problems}
        draw(by_name, args.picture, args.seconds)
    if args.write is not None:
        shown = (
            ""
            if args.picture is None
            else f"\n\n![certified gap over time]({relative_to_page(args.picture, args.write)})"
        )
        put(args.write, COMMAND, text + shown)
    return 1 if any(found.error for found in records.values()) else 0


def arguments() -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, metavar="COUNT", help="only the first of them")
    parser.add_argument("--seconds", type=float, default=6, help="for each solve (default 6)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("results/ablation.json"), metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="keep what was already measured with these settings")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page, docs/engine.md")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw gap over time as PNG or SVG")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
