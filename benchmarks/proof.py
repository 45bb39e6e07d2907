"""Time to a proof of optimality: the engine against the Zero Bubble paper's integer program with CBC, in pairs.

    python -m benchmarks.proof --write docs/results/ilp.md

Each case is given to both, one after the other, with the same time and workers; the seconds of both count all from
the problem to the proof. Where CBC proves, the ratio of the two times counts, and the geometric mean over those cases
is the figure. --beyond adds cases of the measured profiles, with more time, that the pairwise program leaves open.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

from benchmarks.cases.profiles import PROFILES, Profile, unit
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put, table
from benchmarks.reporting.record import Record, record
from benchmarks.rivals.cbc import IlpOutcome, solve_ilp
from pipesched.errors import Disagreement
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import in_ticks_of
from pipesched.results.solution import Solution, Status
from solver.limits import Limits
from solver.solve import solve

COMMAND = "python -m benchmarks.proof"
MEMORY = ("1p", "2p")
HEAD = ("problem", *(f"{memory}: {of}, s" for memory in MEMORY for of in ("CBC", "engine")))


@dataclass(frozen=True)
class Pair:
    """One case solved by both; `ratio` is CBC's time over the engine's, None where CBC proved nothing.

    Where only CBC proved, the engine is counted with all the time it used.
    """

    problem: Problem
    ilp: IlpOutcome
    ours: Record

    @property
    def ratio(self) -> float | None:
        if not self.ilp.proved:
            return None
        return self.ilp.seconds / (self.ours.wall if self.ours.proof is None else self.ours.proof)


def cases() -> list[Problem]:
    """Unit times with m = 3p, and measured ones with m = p, 2p and 3p as far as a pairwise program may get.

    Each with room for one and for two activations a stage.
    """
    found = [unit(p, 3 * p, "span", cap * p, f"unit p={p} m={3 * p} {cap}p") for p in range(2, 9) for cap in (1, 2)]
    shapes = [(p, p) for p in range(2, 9)] + [(2, 6), (3, 9), (4, 8)]
    found += [measured(PROFILES[0], p, m, cap) for p, m in shapes for cap in (1, 2)]
    found += [measured(PROFILES[6], p, m, cap) for p, m in ((2, 6), (3, 9), (4, 8)) for cap in (1, 2)]
    return found


def beyond() -> list[Problem]:
    """Cases of the measured profiles that the pairwise program leaves open."""
    profiles = PROFILES[0], PROFILES[6]
    return [measured(of, p, m, cap) for of in profiles for p, m in ((4, 12), (8, 24)) for cap in (1, 2)]


def measured(profile: Profile, p: int, m: int, cap: int) -> Problem:
    """A profile's times on fewer devices and micro-batches."""
    return profile.problem(cap * p, "span", f"{profile.model} p={p} m={m} {cap}p", devices=p, microbatches=m)


def solve_pair(problem: Problem, seconds: float, workers: int) -> Pair:
    """Both on one problem; `Disagreement` if the two contradict each other."""
    ilp = solve_ilp(problem, seconds, workers)
    limits = Limits(seconds=seconds, workers=workers)
    solution = solve(problem, limits)
    contradiction(problem, ilp, solution)
    return Pair(problem, ilp, record(problem.name, solution, limits))


def contradiction(problem: Problem, ilp: IlpOutcome, solution: Solution) -> None:
    """Neither may be below what the other proved; CBC's proof holds within its tolerance, a millionth."""
    if solution.value_ticks is None or ilp.value is None:
        return
    value = in_ticks_of(problem, solution.value_ticks, solution.problem)
    bound = in_ticks_of(problem, solution.lower_bound_ticks, solution.problem)
    if ilp.value < bound:
        raise Disagreement(f"CBC's order gives {ilp.value} ticks, below the engine's bound of {bound}")
    if ilp.proved and ilp.claimed is not None and value < ilp.claimed * (1 - 1e-6) - 1:
        raise Disagreement(f"the engine found {value} ticks where CBC proved {ilp.claimed:g} optimal")
    if ilp.proved and solution.status is Status.OPTIMAL and ilp.value > value * (1 + 1e-6) + 1:
        raise Disagreement(f"CBC proved {ilp.value} ticks optimal where the engine proved {value}")


def geometric_mean(ratios: Sequence[float]) -> float:
    """The mean of ratios."""
    return exp(sum(map(log, ratios)) / len(ratios))


def markdown(pairs: Sequence[Pair], described: str) -> str:
    """The table and its one figure."""
    ratios = [pair.ratio for pair in pairs if pair.ratio is not None]
    parts = [described, table(HEAD, _lines(pairs))]
    if ratios:
        ours = sum(pair.ilp.proved and pair.ours.proof is not None for pair in pairs)
        text = (
            f"CBC proved {len(ratios)} of {len(pairs)}, the engine {ours} of those. The engine's proof is "
            f"{geometric_mean(ratios):.1f} times faster there (geometric mean)"
        )
        longer = [pair.ratio for pair in pairs if pair.ratio is not None and pair.ilp.seconds >= 1]
        more = f"; {geometric_mean(longer):.1f} times where CBC takes a second or more" if longer else ""
        parts.append(f"{text}{more}.")
    return "\n\n".join(parts)


def _lines(pairs: Sequence[Pair]) -> list[list[str]]:
    """A row for each problem, with the seconds of both programs under each memory."""
    by_name: dict[str, dict[str, list[str]]] = {}
    for pair in pairs:
        name, _, memory = pair.problem.name.rpartition(" ")
        by_name.setdefault(name, {})[memory] = _seconds(pair)
    return [
        [name, *(cell for memory in MEMORY for cell in found.get(memory, ["", ""]))] for name, found in by_name.items()
    ]


def _seconds(pair: Pair) -> list[str]:
    ilp, ours = pair.ilp, pair.ours
    return [
        f"{ilp.seconds:.2f}" if ilp.proved else f"> {ilp.seconds:.0f}",
        f"> {ours.wall:.0f}" if ours.proof is None else f"{ours.proof:.2f}",
    ]


def main() -> int:
    """The pairs with what the command line says."""
    args = arguments()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """The pairs, a line each as they end, and the table; 1 if the two contradicted each other."""
    every = [(problem, args.seconds) for problem in cases()]
    every += [(problem, args.beyond) for problem in beyond()] if args.beyond else []
    wanted = [""] if args.cases is None else args.cases.split(",")
    first = solve_pair(unit(2, 2, "span"), 5, args.workers)  # what Python and CBC load on first use is nobody's time
    pairs, contradictions = [], 0
    for problem, seconds in every:
        if any(word in problem.name for word in wanted):
            try:
                pairs.append(solve_pair(problem, seconds, args.workers))
                print(" | ".join([problem.name, *_seconds(pairs[-1])]), file=sys.stderr, flush=True)
            except Disagreement as error:
                contradictions += 1
                print(f"{problem.name}: {error}", file=sys.stderr, flush=True)
    where = f"{machine(0, args.workers, 'pulp')}, CBC {first.ilp.version}"
    more = f", {args.beyond:g} s for the last {len(beyond())}" if args.beyond else ""
    text = markdown(pairs, f"{where}; {args.seconds:g} s a problem and program{more}")
    print(text)
    if args.write is not None:
        put(args.write, COMMAND, text)
    return 1 if contradictions else 0


def arguments() -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120, help="for each program and problem (default 120)")
    parser.add_argument("--beyond", type=float, nargs="?", const=300, metavar="SECONDS", help="larger cases (300)")
    parser.add_argument("--cases", metavar="TEXT,...", help="only problems whose name contains one of these")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to write, docs/results/ilp.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
