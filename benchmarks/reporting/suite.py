"""A suite of problems that are solved alike: its command line, results that are kept, and its page of the docs."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from benchmarks.reporting.page import exit_code, in_percent, machine, show, table
from benchmarks.reporting.record import Record, settings_of
from benchmarks.reporting.store import Store
from pipesched.errors import BadInput, did_you_mean
from pipesched.problem.problem import Problem
from pipesched.results.bound_names import bound_name
from solver.limits import Limits

HEAD = "problem", "objective", "known", "published", "value", "bubble", "gap, %", "seconds", "proved by"
SUMS = "kind", "problems", "proved", "mean gap, %", "median", "largest", "mean seconds"


class Case(NamedTuple):
    """A problem, the kind that it counts under, the value known or asked, its most seconds, and published orders.

    These are `orders` by name, with the time of each; the best that fits is named where there are none.
    """

    problem: Problem
    kind: str
    known: str = ""
    seconds: float = inf
    orders: str = ""


@dataclass(frozen=True)
class Suite:
    """The cases of one module by suite and seed, the first suite where none is named; each stops at the gap.

    A table shows cases of which something is known and those that did not come to the gap, or every one.
    """

    module: str
    about: str | None
    suites: Mapping[str, Callable[[int], Iterable[Case]]]
    seconds: float = 60
    gap: float = 0.0
    every: bool = False

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Solve what was asked for; the table of all that was measured with the same settings. 1 if a solve broke."""
        parser = parser_of(f"python -m benchmarks.{self.module}", self.about, self.seconds, self.module)
        parser.add_argument("--suite", choices=[*self.suites], default=next(iter(self.suites)))
        names = "whose name fits, * for anything, or has this text, or whose kind it is"
        parser.add_argument("--problems", "--only", nargs="+", metavar="NAME", default=["*"], help=names)
        parser.add_argument("--list", action="store_true", help="name the problems, and stop")
        return exit_code(lambda: self._run(parser.parse_args(arguments)))

    def _run(self, args: Namespace) -> int:
        every = [*self.suites[args.suite](args.seed)]
        chosen = _chosen(every, args.problems)
        if args.list:
            print("\n".join(case.problem.name for case in chosen))
            return 0
        store = store_of(args)
        if args.problems != ["*"]:
            store.load()
        for number, case in enumerate(chosen, 1):
            name = case.problem.name
            if store.measure(name, case.problem, self._limits(case, args), resume=args.resume):
                print(f"{number}/{len(chosen)} {name}: {gap_text(store.records[name])}", file=sys.stderr, flush=True)
        shown = [
            (case, found)
            for case in every
            for found in [store.under(settings_of(self._limits(case, args))).get(case.problem.name)]
            if found is not None
        ]
        suite = "" if args.suite == next(iter(self.suites)) else f" --suite {args.suite}"
        show(args.write, f"python -m benchmarks.{self.module}{suite}", f"{store.machine}\n\n{self.text(shown)}")
        return 1 if any(found.error for _, found in shown) else 0

    def _limits(self, case: Case, args: Namespace) -> Limits:
        limits = limits_of(args)
        return replace(limits, seconds=min(limits.seconds, case.seconds), gap=self.gap)

    def text(self, measured: Sequence[tuple[Case, Record]]) -> str:
        """A line for each problem, sums by kind, and what all come to."""
        listed = [(case, one) for case, one in measured if self.every or case.known or one.seconds_to(self.gap) is None]
        alike = len({case.problem.objective for case, _ in measured}) == 1
        parts = [table(HEAD, [self._line(case, one, alike) for case, one in listed])] if listed else []
        kinds: dict[str, list[Record]] = {}
        for case, one in measured:
            kinds.setdefault(case.kind, []).append(one)
        parts += [table(SUMS, [[kind, *_sums(found)] for kind, found in kinds.items()])] * (len(kinds) > 1)
        gaps = [one.gap for _, one in measured if one.gap is not None]
        if gaps:
            within = ", ".join(f"{sum(gap <= most for gap in gaps)} within {100 * most:g} %" for most in (0.01, 0.03))
            parts.append(
                f"{len(measured)} problems: {sum(gap == 0 for gap in gaps)} proved optimal, {within}; gap "
                f"{in_percent(fmean(gaps))} % in the mean, {in_percent(median(gaps))} % in the median, "
                f"{in_percent(max(gaps))} % at most."
            )
        better = [one.published / one.value for _, one in measured if one.published and one.value]
        if better:
            parts.append(
                f"The best published schedule that fits, where one does ({len(better)}), takes {fmean(better):.2f} "
                "times as long in the mean."
            )
        return "\n\n".join(parts)

    def _line(self, case: Case, solved: Record, alike: bool) -> list[str]:
        reached = solved.seconds_to(self.gap)
        return [
            case.problem.name,
            "" if alike else case.problem.objective.name,
            case.known,
            case.orders or _best(solved),
            solved.error or (solved.status if solved.value is None else f"{solved.value:.10g}"),
            f"{solved.bubble:.4f}" if case.known.startswith("bubble") and solved.bubble is not None else "",
            in_percent(solved.gap),
            "" if reached is None else f"{reached:.1f}",
            bound_name(solved.proved_by) if case.known and reached is not None else "",
        ]


def _best(one: Record) -> str:
    """The best published schedule that fits."""
    return "none" if one.published is None else f"{one.published:.8g}" + f" ({one.by})" * bool(one.by)


def _sums(found: Sequence[Record]) -> list[str]:
    gaps = [one.gap for one in found if one.gap is not None]
    of = [in_percent(each(gaps)) for each in (fmean, median, max)] if gaps else [""] * 3
    return [str(len(found)), str(sum(gap == 0 for gap in gaps)), *of, f"{fmean(one.wall for one in found):.1f}"]


def gap_text(one: Record) -> str:
    """The gap left, or how soon it was closed."""
    if one.error or one.gap is None:
        return one.error or "no schedule"
    return f"{in_percent(one.gap)} %" if one.proof is None else f"0 in {one.proof:.1f} s"


def _chosen(every: Sequence[Case], patterns: Sequence[str]) -> list[Case]:
    def fits(case: Case, pattern: str) -> bool:
        return pattern == case.kind or pattern in case.problem.name or fnmatchcase(case.problem.name, pattern)

    known = [*{case.kind for case in every}, *(case.problem.name for case in every)]
    for pattern in patterns:
        if not any(fits(case, pattern) for case in every):
            near = did_you_mean(pattern, known)
            raise BadInput(f"--problems: found {pattern!r}; allowed: names of --list, * for anything{near}")
    return [case for case in every if any(fits(case, pattern) for pattern in patterns)]


def parser_of(command: str, about: str | None, seconds: float, results: str = "") -> ArgumentParser:
    """With the limits of each search, `seconds` unless given, the page, and where results are kept, if they are."""
    parser = ArgumentParser(command, description=about, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=seconds, help=f"for each search (default {seconds:g})")
    parser.add_argument("--units", type=float, help="of work for each search, instead of seconds; with one worker")
    parser.add_argument("--workers", type=int, default=2, help="threads of each search (default 2)")
    parser.add_argument("--seed", type=int, default=0, help="of each search, and of what is drawn (default 0)")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page of the docs")
    if results:
        parser.add_argument("--results", type=Path, default=Path(f"results/{results}.json"), metavar="FILE")
        parser.add_argument("--resume", action="store_true", help="keep what was already measured with these settings")
    return parser


def limits_of(args: Namespace) -> Limits:
    """Of each search."""
    if args.units is not None:
        return Limits(seconds=10_000, deterministic=args.units, workers=1, seed=args.seed)
    return Limits(seconds=args.seconds, workers=args.workers, seed=args.seed)


def store_of(args: Namespace) -> Store:
    """Where results are kept, with what is there already if the run is resumed."""
    limits = limits_of(args)
    amount = f"{limits.seconds:g} s" if args.units is None else f"{args.units:g} units of work"
    store = Store(args.results, f"{machine(args.seed, limits.workers)}; {amount} a problem")
    if args.resume:
        store.load()
    return store
