"""Mutants made by hand, each held to an attack and, if it survives that, to the tests of its file.

    python -m benchmarks.proofs.mutation.by_hand [--files TEXT] [--resume] [--write docs/proofs.md]

A mutant of a bound claims too much of some problem; one of the check proves more than the optimum, or not what the
bound claims. Exit code 1 if one is not noticed. Needs a system with fork (Linux, macOS).
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from benchmarks.proofs.mutation.equivalent_mutants import BY_HAND
from benchmarks.proofs.mutation.hand_made import HAND_MADE, HandMade
from benchmarks.proofs.mutation.mutant_tests import copied, fails, load_libraries, noticed
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put, table
from pipesched.files.atomic_write import write_whole

COMMAND = "python -m benchmarks.proofs.mutation.by_hand"
# By mutant: how it was noticed, or None.
Results = dict[str, str | None]
_RESULTS = Path(__file__).with_name("by_hand.json")
_TESTS, _COUNT, _ANSWER = "tests", 300, "refuted.json"
_TOPS = ("solver/bounds", "pipesched/checking")


def name_of(mutant: HandMade) -> str:
    """Of its file, since the same mistake may be made in several."""
    return f"{mutant.file}: {mutant.mistake}"


def changed(source: str, mutant: HandMade) -> str:
    """The source with the mistake."""
    assert source.count(mutant.before) == 1, name_of(mutant)
    return source.replace(mutant.before, mutant.after)


def markdown(results: Results, described: str) -> str:
    """A row for each mutant that was run."""
    rows = []
    for mutant in HAND_MADE:
        name = name_of(mutant)
        if name in results:
            how = results[name] or ("changes nothing" if name in BY_HAND else "not noticed")
            rows.append([f"`{mutant.file}`", mutant.mistake, how])
    return f"{described}\n\n{table(('file', 'mistake', 'noticed by'), rows)}"


def main() -> int:
    """Run them, print the table and what was not noticed; 1 if there is any."""
    args = arguments()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Run what was asked for; results are kept after every mutant."""
    load_libraries()
    results: Results = {}
    if args.resume and args.results.exists():
        results = json.loads(args.results.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        copy, kernels = copied(Path(folder) / "copy"), Path(folder) / "kernels"
        compile_all(copy, kernels)
        for mutant in (one for one in HAND_MADE if args.files in one.file):
            name = name_of(mutant)
            if results.get(name) is None and name not in BY_HAND:
                results[name] = how_noticed(copy, kernels, mutant, args.count, args.seconds)
                write_whole(args.results, json.dumps(results, indent=1, sort_keys=True) + "\n")
                print(f"{name}: {results[name]}", file=sys.stderr, flush=True)
    text = markdown(results, f"{machine(0, 1, 'numba')}; {args.count} problems of a branch at most")
    print(text)
    if args.write is not None:
        put(args.write, COMMAND, text)
    return 1 if any(how is None and name not in BY_HAND for name, how in results.items()) else 0


def how_noticed(copy: Path, kernels: Path, mutant: HandMade, count: int, seconds: float) -> str | None:
    """The number of problems and the branch, or that tests fail; None where it survives both."""
    source = changed((copy / mutant.file).read_text(encoding="utf-8"), mutant)
    answer = copy / _ANSWER
    answer.unlink(missing_ok=True)
    compile_anew(copy, kernels, mutant.file)
    if fails(copy, mutant.file, source, seconds, lambda: _attack(mutant, count, answer)):
        found = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else None
        return f"{found[0]} problems of {found[1]}" if found else "an error, or no end"
    return _TESTS if noticed(copy, mutant.file, source, seconds) else None


def _attack(mutant: HandMade, count: int, answer: Path) -> int:
    """Say what refuted it, in the copy whose packages this process imports; whether anything did."""
    from benchmarks.proofs.mutation.attacked import bound_refuted, check_refuted

    attack = check_refuted if mutant.file.startswith("pipesched/") else bound_refuted
    found = attack(mutant.branches, count)
    if found is not None:
        answer.write_text(json.dumps(found), encoding="utf-8")
    return int(found is not None)


def compile_anew(copy: Path, kernels: Path, file: str) -> None:
    """What is compiled of a file, and of all that imports it, is not taken from before: kernels hold what they call."""
    import numba

    now = kernels.with_name("kernels now")
    shutil.rmtree(now, ignore_errors=True)
    shutil.copytree(kernels, now)
    for path in importers(copy, file):
        for old in now.glob(f"{path.parent.name}_*/{path.stem}.*"):
            old.unlink()
    numba.config.CACHE_DIR = str(now)


def importers(copy: Path, file: str) -> set[Path]:
    """The file, and all bounds and checks that import it, directly or not."""
    every = {path: path.read_text(encoding="utf-8") for top in _TOPS for path in (copy / top).rglob("*.py")}
    found, left = set[Path](), [copy / file]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            module = ".".join(path.relative_to(copy).with_suffix("").parts)
            left += [other for other, text in every.items() if f"from {module} import" in text]
    return found


def compile_all(copy: Path, kernels: Path) -> None:
    """Attacks of bounds and checks that have no mistake: what they compile is kept for those that have one."""
    import numba

    kernels.mkdir()
    numba.config.CACHE_DIR = str(kernels)
    branches = tuple(sorted({name for mutant in HAND_MADE for name in mutant.branches}))
    answer = copy / _ANSWER
    for file in ("pipesched/", "solver/"):
        clean = HandMade(file, "", "", "", branches)
        readme = (copy / "README.md").read_text(encoding="utf-8")
        if fails(copy, "README.md", readme, 600, lambda clean=clean: _attack(clean, 3, answer)):  # type: ignore[misc]
            raise RuntimeError(f"an attack finds a mistake without one: {answer.read_text(encoding='utf-8')}")


def arguments() -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=_COUNT, help="problems of each branch (default 300)")
    parser.add_argument(
        "--seconds", type=float, default=300, help="of processor time for each mutant, and again for its tests"
    )
    parser.add_argument("--files", metavar="TEXT", default="", help="only those whose names have this text")
    parser.add_argument("--results", type=Path, default=_RESULTS, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="run only mutants that were not noticed, or not run")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page, docs/proofs.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
