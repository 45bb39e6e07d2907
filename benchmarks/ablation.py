"""Ablation: the same problems with one phase of the engine left out, and with all of them left out.

    python -m benchmarks.ablation --seconds 60 --write docs/engine.md --picture docs/images/gap-over-time.png

Results are kept in a file after every solve; --resume runs only what is not there yet.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from benchmarks.cases.rows import Row, select
from benchmarks.reporting.engine_table import percent
from benchmarks.reporting.gap_plot import draw
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put, table
from benchmarks.reporting.record import Record, failed, record, settings_of
from benchmarks.reporting.store import Store
from pipesched.errors import PipeschedError
from solver.engine.engine import ENGINE
from solver.engine.phases.analytic_bounds import AnalyticBounds
from solver.engine.phases.exact_model import ExactModel
from solver.engine.phases.local_search import LocalSearch, LocalSearchAgain
from solver.engine.phases.periodic import Periodic
from solver.engine.search import Engine, Phase
from solver.limits import Limits
from solver.solve import solve

COMMAND = "python -m benchmarks.ablation"
# Rows on which different parts should matter: tight memory, a long run, no bubble left, two chunks a device, unequal
# stages.
ROWS = "zb-1.5b-m24-0.5p,growth-0.5p-m64,zb-1.5b-m24-2p,zb-14.6b-m48-2p,v-6.2b-m48-half,uneven-8"
LOCAL_SEARCH = (LocalSearch, LocalSearchAgain)


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


VARIANTS: Mapping[str, Engine] = {
    "whole engine": ENGINE,
    "no certificates": replace(ENGINE, bounds=AnalyticBounds(load_only=True)),
    "no relaxation": replace(ENGINE, raise_bounds=False),
    "no periodic": replace(ENGINE, phases=without(Periodic)),
    "no neighbourhoods": replace(ENGINE, phases=without(*LOCAL_SEARCH)),
    "plain CP-SAT": plain(),
}


def measure_variant(row: Row, engine: Engine, limits: Limits) -> Record:
    """One row with a part of the engine left out; a solve that breaks is a result too."""
    started = perf_counter()
    try:
        return record(row.name, solve(row.problem, limits, engine=engine), limits)
    except (PipeschedError, ArithmeticError, LookupError, ValueError, AssertionError) as error:
        print(f"{row.name}: {type(error).__name__}: {error}", file=sys.stderr)
        return failed(row.name, limits, row.problem, perf_counter() - started, error)


def markdown(rows: tuple[Row, ...], records: Mapping[str, Record], described: str) -> str:
    """Gap, and value above the best one known, of every variant on every row."""
    lines = []
    for row in rows:
        found = {variant: records[key(row, variant)] for variant in VARIANTS if key(row, variant) in records}
        values = [one.value for one in found.values() if one.value is not None]
        if found:
            lines.append([row.name, *(_cell(found.get(variant), min(values, default=None)) for variant in VARIANTS)])
    told = "Each cell: the certified gap left; how far the schedule lies above the row's best one; seconds to a proof."
    return "\n\n".join([described, told, table(("problem", *VARIANTS), lines)])


def relative_to_page(picture: Path, page: Path) -> str:
    """The way from a page to its picture, as a link in the page says it."""
    return Path(os.path.relpath(picture, page.parent)).as_posix()


def key(row: Row, variant: str) -> str:
    """Of a row's variant in the results."""
    return f"{row.name} / {variant}"


def _cell(found: Record | None, best: float | None) -> str:
    if found is None:
        return ""
    if found.error:
        return found.error
    if found.value is None or best is None:
        return "no schedule"
    proof = "" if found.proof is None else f"; {found.proof:.1f} s"
    return f"{percent(found.gap)}; +{percent(found.value / best - 1)}{proof}"


def main() -> int:
    """Every variant of every row, the table and the picture; 1 if a solve broke."""
    args = arguments()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Measure, then write what was asked for."""
    rows = select(args.rows)
    limits = Limits(seconds=args.seconds, workers=args.workers, seed=args.seed)
    store = Store(args.results, f"{machine(args.seed, args.workers)}; {args.seconds:g} s a problem")
    store.load()
    for row in rows:
        for variant, engine in VARIANTS.items():
            if args.resume and store.has(key(row, variant), settings_of(limits)):
                continue
            print(key(row, variant), file=sys.stderr, flush=True)
            store.add(key(row, variant), measure_variant(row, engine, limits))
    records = store.under(settings_of(limits))
    text = markdown(rows, records, store.machine)
    print(text)
    if args.picture is not None:
        by_row = {row.name: {v: records[key(row, v)] for v in VARIANTS} for row in rows}
        draw(by_row, args.picture, args.seconds)
    if args.write is not None:
        shown = (
            ""
            if args.picture is None
            else f"\n\n![certified gap over time]({relative_to_page(args.picture, args.write)})"
        )
        put(args.write, COMMAND, text + shown)
    return 1 if any(records[key(row, variant)].error for row in rows for variant in VARIANTS) else 0


def arguments() -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--rows", metavar="NAME,...", default=ROWS, help="rows of benchmarks.engine")
    parser.add_argument("--seconds", type=float, default=60, help="for each solve (default 60)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("results/ablation.json"), metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="keep what was already measured with these settings")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page, docs/engine.md")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw gap over time as PNG or SVG")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
