"""Stress test of unequal micro-batches: tiny problems against every order, mode, way to hold less and wait.

    python -m benchmarks.proofs.unequal_attack --count 5000 --seconds 3600 --resume

Counts are kept in a file after every round; --resume adds to them. Exit code 1 if something is wrong.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from benchmarks.proofs.memory_options import brute_force
from benchmarks.proofs.unequal_problems import bounds, draw_unequal, optimum_of, solved
from benchmarks.reporting.page import exit_code
from pipesched.files.atomic_write import write_whole
from tests.support.tiny_memory import tiny_unequal_memory

_RESULTS = Path(__file__).with_name("unequal_attack.json")
# CP-SAT's units of work for a solve; every how many problems there is one; problems of a round.
_WORK, _SOLVED_EVERY, _ROUND = 0.1, 10, 20


def orders_and_modes(number: int) -> str:
    """All analytic bounds, and of some problems a whole solve, against every order of fused and split backwards."""
    problem = draw_unequal(Random(number))
    best = optimum_of(problem)
    if best is None:
        return "too large"
    right = all(value <= best for _, value in bounds(problem))
    if right and number % _SOLVED_EVERY == 0:
        low, high = solved(problem, _WORK, number)
        right = low <= best <= high
    return "right" if right else "wrong"


def ways_to_hold_less(number: int) -> str:
    """The exact model's optimum, its schedule as validated, and all bounds, with copies or recomputation."""
    try:
        found = brute_force(tiny_unequal_memory(Random(number)))
    except AssertionError:
        return "wrong"
    return "right" if "problems" in found else "too large"


KINDS: dict[str, Callable[[int], str]] = {
    "orders and modes": orders_and_modes,
    "offload and recompute": ways_to_hold_less,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack until there are enough of each kind, or the time is over; 1 if something is wrong."""
    parser = ArgumentParser("python -m benchmarks.proofs.unequal_attack", description=__doc__)
    parser.add_argument("--count", type=int, default=5_000, help="problems of each kind (default 5000)")
    parser.add_argument("--seconds", type=float, default=3600, help="in all at most (default 3600)")
    parser.add_argument("--results", type=Path, default=_RESULTS, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="add to the counts of the file")
    args = parser.parse_args(arguments)
    return exit_code(lambda: run(args.count, args.seconds, args.results, args.resume))


def run(count: int, seconds: float, file: Path, resume: bool) -> int:
    """In rounds, the kinds in turn; seeds go on where the counts of the file end."""
    known = json.loads(file.read_text(encoding="utf-8")) if resume and file.exists() else {}
    counts = {kind: Counter[str](known.get(kind, {})) for kind in KINDS}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        left = [kind for kind in KINDS if counts[kind]["right"] + counts[kind]["wrong"] < count]
        if not left:
            break
        kind = min(left, key=lambda one: counts[one].total())
        for _ in range(min(_ROUND, count - counts[kind]["right"] - counts[kind]["wrong"])):
            number = counts[kind].total()
            found = KINDS[kind](number)
            counts[kind][found] += 1
            if found == "wrong":
                print(f"{kind}: number {number} is wrong", file=sys.stderr, flush=True)
        write_whole(file, json.dumps(counts, indent=1, sort_keys=True) + "\n")
    for kind, own in counts.items():
        left_out = f"{own['too large']} with too many orders or waits"
        print(f"{kind}: {own['right']} right, {own['wrong']} wrong, {left_out}")
    return 1 if any(own["wrong"] for own in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
