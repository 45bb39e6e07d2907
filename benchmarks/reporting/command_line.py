"""The command line that benchmarks share: the limits of each search, where results are kept, the page to write."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from solver.limits import Limits


def parser_of(command: str, about: str | None, seconds: float, of: str = "each problem") -> ArgumentParser:
    """With the options of a search, `seconds` for each, and the page; more may be added."""
    parser = ArgumentParser(command, description=about, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=seconds, help=f"for {of} (default {seconds:g})")
    parser.add_argument("--workers", type=int, default=2, help="threads of each search (default 2)")
    parser.add_argument("--seed", type=int, default=0, help="of each search, and of what is drawn (default 0)")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page of the docs")
    return parser


def keep_results(parser: ArgumentParser, name: str) -> None:
    """Options of a benchmark that keeps what it measured."""
    parser.add_argument("--results", type=Path, default=Path(f"results/{name}.json"), metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="keep what was already measured with these settings")


def limits_of(args: Namespace) -> Limits:
    """Of each search."""
    return Limits(seconds=args.seconds, workers=args.workers, seed=args.seed)
