"""Running mutants: the command line, the loop over them, and results that are kept after each."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.reporting.page import put
from pipesched.files.atomic_write import write_whole


class Trial(NamedTuple):
    """A mutant: what it is called, where its result is kept under which name, and how it is run."""

    called: str
    results: dict[str, Any]
    name: str
    run: Callable[[], Any]


def each(trials: Iterable[Trial], noticed: Callable[[Any], bool], keep: Callable[[], None]) -> list[str]:
    """Run them one after the other, keep each result, and print what was not noticed; how these are called."""
    left = []
    for one in trials:
        result = one.results[one.name] = one.run()
        keep()
        if not noticed(result):
            left.append(one.called)
            print(f"not noticed: {one.called}", file=sys.stderr, flush=True)
    return left


def known(args: Namespace) -> dict[str, Any]:
    """The results of the file, where they are to be added to."""
    found: dict[str, Any] = {}
    if args.resume and args.results.exists():
        found = json.loads(args.results.read_text(encoding="utf-8"))
    return found


def keeps(args: Namespace, results: dict[str, Any]) -> Callable[[], None]:
    """What writes the results into their file."""

    def keep() -> None:
        write_whole(args.results, json.dumps(results, indent=1) + "\n")

    return keep


def show(args: Namespace, command: str, text: str) -> None:
    """Print the table, and put it into the page where one was named."""
    print(text)
    if args.write is not None:
        put(args.write, command, text)


def options(about: str | None, results: Path, count: tuple[int, str]) -> ArgumentParser:
    """The command line; `count` is the default and what it says."""
    parser = ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=count[0], help=count[1])
    parser.add_argument(
        "--seconds", type=float, default=300, help="of processor time for the tests of each mutant (default 300)"
    )
    parser.add_argument("--files", metavar="TEXT", default="", help="only those whose names have this text")
    parser.add_argument("--results", type=Path, default=results, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="run only mutants that were not noticed, or not run")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to write, docs/results/mutants.md")
    return parser
