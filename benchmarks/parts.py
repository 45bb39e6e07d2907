"""Sequence chunks, collectives, lookups, modules, lost workers: published schedules against what is found and proved.

python -m benchmarks.parts --units 20 --write docs/results/parts.md

The instances are public questions with numbers; `asked` is the optimum known of each, or what a schedule must reach.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from benchmarks.reporting.command_line import limits_of, parser_of
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, show, table
from pipesched.files.problem_file import problem_from, read_document
from pipesched.problem.problem import Problem
from pipesched.results.comparison import OURS
from solver.analysis.published_comparison import compare
from solver.limits import Limits

COMMAND = "python -m benchmarks.parts"
_EXAMPLES = Path(__file__).parents[1] / "examples"
_MOST_SHOWN = 4


class Case(NamedTuple):
    """A problem by its name, and what is known of it."""

    name: str
    asked: str
    document: Mapping[str, Any]

    def problem(self) -> Problem:
        return problem_from({**self.document, "name": self.name})


def cases() -> Iterator[Case]:
    """Those of each part in turn."""
    pieces = _example("sequence-chunks")
    for microbatches, capacity, asked in ((2, 2.8, "213"), (2, 6.4, "195"), (4, 2.8, "381"), (4, 6.4, "<= 327")):
        keys = {"microbatches": microbatches, "memory.capacity": capacity}
        yield Case(f"{microbatches} sequences of 4 pieces, memory {capacity:g}", asked, _with(pieces, keys))
    whole = {"sequence_chunks": 1, "times": {"forward": 22, "backward": 44}, "memory.activation": 1.6}
    yield Case("2 whole sequences, memory 6.4", "330", _with(pieces, {**whole, "memory.capacity": 6.4}))
    gathered = _example("gathered-weights")
    for most, asked in ((4, "50"), (10, "34")):
        keys = {"parameters.gather.most": most}
        yield Case(f"gathered weights, {most} gatherings at most", asked, _with(gathered, keys))
    window = {"parameters.gather.keep": {"window": 1}}
    yield Case("gathered weights, a stage of a device at once", "", _with(gathered, window))
    roomy = {"memory.capacity": 10, "parameters.gather.most": 32}
    yield Case("gathered weights, memory for both stages and 8 activations", "34", _with(gathered, roomy))
    yield Case("reductions and steps", "210", _example("reduce-and-step"))
    for capacity, asked in ((2, "306"), (2.5, "302"), (3, "300")):
        yield Case(f"lookups, memory {capacity:g}", asked, _with(_example("lookups"), {"memory.capacity": capacity}))
    lost = _example("lost-workers")
    yield Case("lost workers: one of 16", "989, bound >= 981", lost)
    several = {"pipelines.lost": [[0, 0], [1, 0], [1, 1], [2, 2], [3, 3]], "pipelines.slow": {"0.2": 2}}
    yield Case("lost workers: five of 16, one slow", "1962", _with(lost, several))
    encoder = {"first-stage": "414", "own-device": "442", "in-the-bubbles": "380", "replicated": "373"}
    for name, asked in encoder.items():
        yield Case(f"vision encoder, {name}", asked, _example(f"modules/{name}"))
    vocabulary, head = _example("shared-vocabulary"), "modules.head"
    yield Case("vocabulary of a million words, 2 barriers", "", vocabulary)
    times = {"forward": 4.3325, "backward": 0, "weight": 0.3825}  # a forward has the gradient of the input, too
    one = _with(vocabulary, {f"{head}.barriers": 1, f"{head}.times": times})
    yield Case("vocabulary of a million words, 1 barrier", "", one)


def _example(name: str) -> Mapping[str, Any]:
    document = read_document(_EXAMPLES / f"{name}.yaml")
    assert isinstance(document, dict)
    return document


def _with(document: Mapping[str, Any], keys: Mapping[str, object]) -> Mapping[str, Any]:
    """The document with these values at these paths."""
    found: dict[str, Any] = deepcopy(dict(document))
    for path, value in keys.items():
        *sections, key = path.split(".")
        held = found
        for section in sections:
            held = held[section]
        held[key] = value
    return found


def row(case: Case, limits: Limits) -> list[str]:
    """The published schedules that fit, best first, beside what was found and proved."""
    began = process_time()
    comparison = compare(case.problem(), limits)
    taken, found = process_time() - began, comparison.solution
    fitting = [one for one in comparison if one.fits and one.value is not None and one.name != OURS]
    shown = [f"{one.name} {one.value:g}" for one in fitting[:_MOST_SHOWN]]
    shown += [f"{len(fitting) - len(shown)} more"] if len(fitting) > len(shown) else []
    known = any(one.metrics is not None for one in comparison if one.name != OURS)
    none = "none fits" if known else "none applies"
    value, gap = "none" if found.value is None else f"{float(found.value):g}", found.gap
    print(f"{case.name}: {value}, bound {float(found.lower_bound):g}, {taken:.1f} s", file=sys.stderr, flush=True)
    return [
        case.name, case.asked, ", ".join(shown) or none, value, f"{float(found.lower_bound):g}",
        "" if gap is None else f"{100 * gap:.2f}", f"{taken:.1f}",
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = parser_of(COMMAND, __doc__, 60)
    parser.add_argument("--units", type=float, help="of work for each problem, instead of seconds; with one worker")
    parser.add_argument("--only", metavar="TEXT", default="", help="problems whose names have this text")
    args = parser.parse_args(arguments)
    if args.units is not None:
        args.seconds, args.workers = 10_000.0, 1
    limits = replace(limits_of(args), deterministic=args.units)
    head = ("problem", "asked", "published schedules that fit", "found", "bound", "gap, %", "CPU s")
    amount = f"{args.seconds:g} s" if args.units is None else f"{args.units:g} units of work"
    lines = [row(case, limits) for case in cases() if args.only in case.name]
    described = f"{machine(args.seed, args.workers)}, at most {amount} a problem."
    show(args.write, COMMAND, f"{described}\n\n{table(head, lines)}")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
