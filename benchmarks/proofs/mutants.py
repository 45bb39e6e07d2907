"""Mutation testing of what was changed: tests run on copies of the program with one mistake each.

    python -m benchmarks.proofs.mutants --changed main
    python -m benchmarks.proofs.mutants --changed main --files streams --tests tests/solver/bounds/test_saving_bounds.py

Prints every mutant of a changed function that no test notices. Each is a test that is missing, or changes nothing: it
is to be looked at before the change lands. The tests of a file are those that import it, unless --tests names others.
Exit code 1 if any is not noticed. Needs a system with fork (Linux, macOS).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

from benchmarks.proofs.mutation.mutant_tests import copied, load_libraries, noticed
from benchmarks.proofs.mutation.mutations import changed_functions, is_inside, mutants
from benchmarks.reporting.page import exit_code
from pipesched.errors import BadInput

COMMAND = "python -m benchmarks.proofs.mutants"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run mutants and print what was not noticed; 1 if there is any."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--changed", required=True, metavar="REVISION", help="functions not as they were there")
    parser.add_argument("--files", metavar="TEXT", default="", help="only those whose names have this text")
    parser.add_argument("--tests", nargs="+", metavar="FILE", help="run these (default: those that import a file)")
    parser.add_argument("--count", type=int, default=1_000_000, help="mutants of each file at most, drawn at random")
    parser.add_argument("--seconds", type=float, default=300, help="of processor time for the tests of each mutant")
    parser.add_argument("--seed", type=int, default=0)
    return run(parser.parse_args(arguments))


def run(args: Namespace) -> int:
    """File by file."""
    load_libraries()
    left = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        for file in _lines("git", "diff", "--name-only", args.changed, "--", "*.py"):
            if args.files in file and not file.startswith("tests/") and (copy / file).exists():
                left += _survivors(copy, file, args)
    return 1 if left else 0


def _survivors(copy: Path, file: str, args: Namespace) -> int:
    """The number of mutants of a file's changed functions that its tests do not notice; each is printed."""
    source = (copy / file).read_text(encoding="utf-8")
    functions = changed_functions(_at(args.changed, file), source)
    every = [one for one in mutants(source) if is_inside(one.name, functions)]
    tests = args.tests or that_import(file, Path("tests").rglob("test_*.py"))
    if not every:
        return 0
    if not tests:
        raise BadInput(f"{file}: found no test that imports it; name some with --tests")
    if noticed(copy, file, source, tests, args.seconds):
        raise BadInput(f"{file}: its tests fail, or take too long, without a mistake: {' '.join(tests)}")
    drawn = Random(args.seed).sample(every, min(args.count, len(every)))
    missed = [one.name for one in drawn if not noticed(copy, file, one.source, tests, args.seconds)]
    print(f"{file}: {len(drawn) - len(missed)} of {len(drawn)} mutants noticed")
    print("".join(f"  not noticed: {name}\n" for name in missed), end="", flush=True)
    return len(missed)


def that_import(file: str, tests: Iterable[Path]) -> list[str]:
    """The tests that import a file by its full name."""
    module = file.removesuffix(".py").replace("/", ".")
    package, _, name = module.rpartition(".")
    pattern = rf"^from {module} import|^import {module}$|^from {package} import .*\b{name}\b"
    return sorted(str(path) for path in tests if re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE))


def _at(revision: str, file: str) -> str:
    """A file as it was; empty where it was not there."""
    return "\n".join(_lines("git", "show", f"{revision}:{file}"))


def _lines(*command: str) -> list[str]:
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    return shown.stdout.splitlines() if shown.returncode == 0 else []


if __name__ == "__main__":
    sys.exit(exit_code(main))
