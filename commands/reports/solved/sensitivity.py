"""`solve --explain`: options, progress, and the effect of changes to the problem as text and table."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from fractions import Fraction

from commands.options.search import interrupt_sets, limits_of, progress_line
from commands.options.values import seconds
from commands.shared.tables import table
from commands.shared.watch import stop_event
from pipesched.problem.formatting import plain
from pipesched.results.analysis.bottleneck import bottleneck_sentences
from pipesched.results.analysis.explanation import Explanation
from pipesched.results.analysis.explanation_text import advice, footnotes, gain_text, grouped
from pipesched.results.solution import Solution
from solver.analysis.sensitivity import explain

TITLE = "Sensitivity: bounds proved, and best values found, by a short search each"


def add_explain(parser: ArgumentParser) -> None:
    """Add `--explain`, True or False, and `--explain-time`, seconds for all changes (None: as the time limit)."""
    parser.add_argument(
        "--explain",
        action="store_true",
        help="also why no schedule is better, and the sensitivity to memory, links and stage cuts",
    )
    parser.add_argument(
        "--explain-time",
        type=seconds,
        metavar="S",
        help="with --explain: seconds for all changes together (default: as --time-limit)",
    )


def explained(solution: Solution, args: Namespace) -> Explanation:
    """Try changes to the problem and show progress; Ctrl-C keeps those tried so far."""
    limits = replace(limits_of(args), seconds=args.explain_time or args.time_limit)
    stop = stop_event(args)
    with interrupt_sets(stop), progress_line() as say:
        return explain(solution, limits, lambda n, of, text: say(f"explaining {n + 1} of {of}: {text}"), stop)


def lines(it: Explanation) -> list[str]:
    """Return sentences on the most useful change, on what limits the problem, and on changes that were not tried."""
    sentences = [*advice(it), *bottleneck_sentences(it.bottleneck)]
    if it.untried:
        sentences.append(f"Not tried, as the time was up: {'; '.join(change.text for change in it.untried)}.")
    return sentences


def show(solution: Solution, it: Explanation) -> None:
    """Print the explanation and the table of changes."""
    print("\nwhy not better?")
    for line in lines(it):
        print(f"- {line}")
    if it.effects:
        table(TITLE, columns(solution), rows(it))
        for line in footnotes(it):
            print(line)


def columns(solution: Solution) -> list[tuple[str, bool]]:
    """Return the headers of the table, each with True if the column is numeric."""
    unit = f"\n({solution.problem.time_unit})" if solution.problem.time_unit else ""
    return [
        ("change", False),
        (f"lower bound{unit}", True),
        (f"best found{unit}", True),
        ("proved: best possible\nvalue falls by", True),
    ]


def rows(it: Explanation) -> list[list[str]]:
    """Return the table rows: the problem as it is, then the changes by gain.

    Each has bound, best value and proved gain. Changes of the memory of single devices that gain the same share a row.
    """
    made = [["as it is", _number(it.unchanged.lower_bound), _number(it.unchanged.value), ""]]
    for what, effect in grouped(it):
        found = effect.outcome
        cells = [_number(found.lower_bound), _number(found.value), gain_text(it, effect)]
        made.append([what, *(["no schedule fits", "", ""] if effect.reason else cells)])
    return made


def _number(value: Fraction | None) -> str:
    return "none" if value is None else plain(float(value))
