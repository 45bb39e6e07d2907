"""Named mutants: mistakes that certain tests must notice, each an exact replacement in a file of the program.

    python -m benchmarks.proofs.named_mutants
    python -m benchmarks.proofs.named_mutants --only diagram

Run before and after tests are shortened or merged: a mutant that its tests no longer notice is attack power lost. The
list is in `benchmarks/proofs/mutation/named/`, a file an area. Prints each mutant with the processor seconds of its
tests; exit code 1 if one is not noticed. Needs a system with fork (Linux, macOS).
"""

from __future__ import annotations

import resource
import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.proofs.mutation.mutant_tests import copied, load_libraries, noticed
from benchmarks.proofs.mutation.named.catalogue import MUTANTS
from benchmarks.proofs.mutation.named.mutant import NamedMutant
from benchmarks.reporting.page import exit_code
from pipesched.errors import BadInput

COMMAND = "python -m benchmarks.proofs.named_mutants"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests of each mutant; 1 if one is not noticed."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="TEXT", default="", help="mutants with this text in their name or file")
    parser.add_argument("--seconds", type=float, default=300, help="of processor time for the tests of each mutant")
    args = parser.parse_args(arguments)
    chosen = [one for one in MUTANTS if args.only in f"{one.name} {one.file}"]
    if not chosen:
        raise BadInput(f"no mutant has {args.only!r} in its name or file")
    load_libraries()
    with tempfile.TemporaryDirectory() as folder:
        return run(chosen, copied(Path(folder)), args.seconds)


def run(chosen: Iterable[NamedMutant], copy: Path, seconds: float) -> int:
    """1 if a mutant is not noticed; `BadInput` where its tests fail without it, or its text is not there once."""
    passed, missed = set[tuple[str, ...]](), 0
    for one in chosen:
        source = (copy / one.file).read_text(encoding="utf-8")
        if one.tests not in passed and noticed(copy, one.file, source, one.tests, seconds):
            raise BadInput(f"{one.name}: its tests fail without a mistake: {' '.join(one.tests)}")
        passed.add(one.tests)
        before = _of_children()
        found = noticed(copy, one.file, one.mutated(source), one.tests, seconds)
        missed += not found
        print(
            f"{'noticed' if found else 'NOT NOTICED'}: {one.name} ({_of_children() - before:.1f} s): {one.breaks}",
            flush=True,
        )
    return 1 if missed else 0


def _of_children() -> float:
    """The processor seconds of all processes that have ended."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


if __name__ == "__main__":
    sys.exit(exit_code(main))
