"""Stress tests on tiny problems drawn by number: what is claimed of each, against a search that tries every order.

    python -m benchmarks.proofs.attack pieces --count 10000 --resume --write docs/results/sequence-chunks.md
    python -m benchmarks.proofs.attack collectives --count 10000 --resume --write docs/results/collectives.md

Counts of each kind are kept in a file after every round; --resume adds to them. Exit code 1 if something is wrong.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.proofs import (
    activation_modes,
    arguments,
    free_memory,
    frozen_plans,
    memory_options,
    partners_memory,
    periods,
    plan_attack,
    shared_digits,
    spans,
    tasks_at_once,
    unequal_problems,
)
from benchmarks.proofs.options import attack as options
from benchmarks.reporting.page import exit_code, show, table
from pipesched.errors import Deadlock, Disagreement
from pipesched.files.atomic_write import write_whole
from pipesched.problem.problem import Problem
from tests.support.collective_problems import tiny_collectives
from tests.support.module_problems import tiny_modules
from tests.support.piece_problems import compared, features, tiny_pieces, tiny_saving_pieces
from tests.support.task_brute_force import TooManyOrdersError
from tests.support.tasks_at_once import tiny_at_once
from tests.support.tiny_lent import tiny_lent
from tests.support.tiny_memory import tiny_unequal_memory

COMMAND = "python -m benchmarks.proofs.attack"
# What the problem of a number has, and how its outcome counts; raises an error where a claim is wrong.
Compare = Callable[[int], tuple[Sequence[str], Sequence[str]]]
# By what a problem has: how often each outcome was seen.
Counts = dict[str, Counter[str]]
ALL, PROBLEMS, WRONG, DRAWN, TOO_MANY = "all", "problems", "wrong", "drawn", "too many orders"
_ROUND = 50


def _pieces(make: Callable[[Random], Problem], number: int) -> tuple[Sequence[str], Sequence[str]]:
    one = make(Random(number))
    try:
        return features(one), (PROBLEMS, *compared(one))
    except (AssertionError, Deadlock, Disagreement) as wrong:
        print(f"number {number}: {wrong}", file=sys.stderr, flush=True)
        return features(one), (PROBLEMS, WRONG)
    except TooManyOrdersError:
        return features(one), (TOO_MANY,)


def _by_features(compare: Compare, number: int) -> tuple[Sequence[str], Sequence[str]]:
    """Of a kind that says itself what its problems have."""
    try:
        return compare(number)
    except (AssertionError, Deadlock, Disagreement) as wrong:
        print(f"number {number}: {wrong}", file=sys.stderr, flush=True)
        return (ALL,), (PROBLEMS, WRONG)


def _alone(compare: Callable[[int], Sequence[str]], number: int) -> tuple[Sequence[str], Sequence[str]]:
    """Of a kind whose problems all count alike."""
    return _by_features(lambda drawn: ((ALL,), compare(drawn)), number)


KINDS: Mapping[str, Compare] = {
    # The optimum of a solve, all bounds, the validator and `check` against a search that knows the definitions alone.
    "pieces": partial(_pieces, tiny_pieces),
    "modules": partial(_pieces, tiny_modules),
    "saving": partial(_pieces, tiny_saving_pieces),
    "collectives": partial(_pieces, tiny_collectives),
    "tasks-at-once": partial(_by_features, tasks_at_once.compare),
    "norms": partial(_by_features, tasks_at_once.norms),
    "solves-at-once": partial(_pieces, tiny_at_once),
    "memory": partial(_alone, memory_options.all_claims),
    "unequal-memory": partial(_alone, lambda number: memory_options.brute_force(tiny_unequal_memory(Random(number)))),
    "lent-memory": partial(_alone, lambda number: memory_options.brute_force(tiny_lent(Random(number)))),
    "partners-memory": partial(_by_features, partners_memory.compare),
    "memory-bounds": partial(_alone, memory_options.strongest_bound),
    "held-activations": partial(_by_features, activation_modes.modes_of_activations),
    "unequal": partial(_alone, unequal_problems.orders_and_modes),
    "spans": partial(_alone, spans.compare),
    # Bounds on the period, against all patterns of one and of two micro-batches.
    "periods": partial(_by_features, periods.compare),
    "plans": partial(_alone, plan_attack.compare),
    "free-memory": partial(_by_features, free_memory.compare),
    "frozen-plans": partial(_by_features, frozen_plans.compare),
    "shared-digits": partial(_by_features, shared_digits.compare),
    # Commands with options, on files with features of the matrix, against the optimum under what the options mean.
    "options": partial(_by_features, options.compare),
    "buckets": partial(_alone, arguments.buckets),
    "fractions": partial(_alone, arguments.fractions),
    "symmetry": partial(_alone, arguments.symmetries),
}


def count(number: int, counts: Counts, compare: Compare) -> None:
    """Compare the problem of this number, and count what was seen under each of its features."""
    has, seen = compare(number)
    for name in has:
        counts.setdefault(name, Counter()).update(seen)
    counts.setdefault(ALL, Counter()).update((DRAWN,))


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack until there are enough problems, or the time is over; 1 if something is wrong."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=[*KINDS], help="of problems")
    parser.add_argument("--count", type=int, default=10_000, help="problems (default 10000)")
    parser.add_argument("--seconds", type=float, default=3600, help="in all at most (default 3600)")
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="add to the counts of the file")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page of the docs")
    return run(parser.parse_args(arguments))


def run(args: Namespace) -> int:
    """In rounds; numbers go on where the counts of the file end."""
    file = args.results or Path(__file__).with_name(f"{args.kind.removesuffix('s')}_attack.json")
    known = json.loads(file.read_text(encoding="utf-8")) if args.resume and file.exists() else {}
    counts: Counts = {name: Counter(found) for name, found in known.items()}
    whole, end = counts.setdefault(ALL, Counter()), time.monotonic() + args.seconds
    while whole[PROBLEMS] < args.count and time.monotonic() < end:
        for _ in range(min(_ROUND, args.count - whole[PROBLEMS])):
            count(whole[DRAWN], counts, KINDS[args.kind])
        write_whole(file, json.dumps(counts, indent=1, sort_keys=True) + "\n")
    show(args.write, f"{COMMAND} {args.kind}", markdown(counts))
    return 1 if whole[WRONG] else 0


def markdown(counts: Counts) -> str:
    """A column for each outcome of all problems, and how many had each feature."""
    whole = counts[ALL]
    outcomes = (PROBLEMS, WRONG, *sorted(whole.keys() - {PROBLEMS, WRONG, DRAWN}))
    seen = ((found[PROBLEMS], name) for name, found in counts.items() if name != ALL and found[PROBLEMS])
    features = sorted(seen, reverse=True)
    had = "".join(f", {name} {number}" for number, name in features).removeprefix(", ")
    return table(outcomes, [[str(whole[key]) for key in outcomes]]) + f"\n\nOf these with: {had}." * bool(had)


if __name__ == "__main__":
    sys.exit(exit_code(main))
