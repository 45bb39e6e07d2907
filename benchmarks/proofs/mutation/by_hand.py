"""Mutants made by hand, each held to an attack and, if it survives that, to the tests of its file.

    python -m benchmarks.proofs.mutation.by_hand [--files TEXT] [--resume] [--write docs/proofs.md]

A mutant of a bound claims too much of some problem; one of the check proves more than the optimum, or not what the
bound claims. Exit code 1 if one is not noticed. Needs a system with fork (Linux, macOS).
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import numba

from benchmarks.proofs.mutation.equivalent_mutants import BY_HAND
from benchmarks.proofs.mutation.hand_made import HAND_MADE
from benchmarks.proofs.mutation.mutant import HandMade
from benchmarks.proofs.mutation.mutant_tests import copied, fails, load_libraries, noticed
from benchmarks.proofs.mutation.running import Trial, each, keeps, known, options, show
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, table
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.formatting import counted

COMMAND = "python -m benchmarks.proofs.mutation.by_hand"
# By mutant: how it was noticed, or None.
Results = dict[str, str | None]
_RESULTS = Path(__file__).with_name("by_hand.json")
_NOTHING = "nothing"
_ATTACKS = "benchmarks.proofs.mutation.attacked"
_COUNT, _FEW, _ANSWER = 300, 40, "refuted.json"
_PACKAGES = tuple(
    f"{top}.crossing_{name}"
    for top in ("solver.bounds", "pipesched.checking")
    for name in ("steps", "blocks", "below", "whole", "guided", "some_whole")
)


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
            how = "changes nothing" if name in BY_HAND else results[name] or "survived the attack; tests not run"
            rows.append([f"`{mutant.file}`", mutant.mistake, how])
    return f"{described}\n\n{table(('file', 'mistake', 'noticed by'), rows)}"


def main() -> int:
    """Run them, print the table and what was not noticed; 1 if there is any."""
    args = arguments()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Run what was asked for: attacks first, then the tests of what survives. Results are kept after every mutant."""
    load_libraries()
    import_all()
    results: Results = known(args)
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        broken = _broken(args, results, copy)
        if broken:
            print(f"the attack fails without a mistake in {', '.join(broken)}", file=sys.stderr)
            return 1
        for how in (refuted, fails_tests):
            each(_trials(args, results, copy, how), lambda result: result not in (None, _NOTHING), keeps(args, results))
    show(args, COMMAND, markdown(results, f"{machine(0, 1, 'numba')}; {args.count} problems of a branch at most"))
    return 1 if any(how in (None, _NOTHING) and name not in BY_HAND for name, how in results.items()) else 0


def _trials(
    args: Namespace, results: Results, copy: Path, how: Callable[[Path, HandMade, Namespace], str | None]
) -> Iterator[Trial]:
    """Those that nothing has noticed so far."""
    for mutant in (one for one in HAND_MADE if args.files in one.file):
        name = name_of(mutant)
        if results.get(name) in (None, _NOTHING) and name not in BY_HAND:
            yield Trial(name, results, name, partial(how, copy, mutant, args))


def _broken(args: Namespace, results: Results, copy: Path) -> list[str]:
    """The files of which the attack finds something, or ends with an error, though nothing is wrong with them.

    Otherwise every mistake in them would count as noticed.
    """
    files = dict[str, HandMade]()
    for mutant in (one for one in HAND_MADE if args.files in one.file and one.branches):
        if results.get(name_of(mutant)) in (None, _NOTHING) and name_of(mutant) not in BY_HAND:
            branches = files.get(mutant.file, mutant).branches
            files[mutant.file] = mutant._replace(branches=tuple(dict.fromkeys((*branches, *mutant.branches))))
    answer = copy / _ANSWER
    return [
        file
        for file, every in files.items()
        if fails(args.seconds, partial(_attack, every, Path(file).read_text(encoding="utf-8"), _FEW, answer))
    ]


def refuted(folder: Path, mutant: HandMade, args: Namespace) -> str | None:
    """What was wrong in how many problems of which branch; None where it survives all, or is for the tests alone."""
    if not mutant.branches:
        return None
    source, answer = changed(Path(mutant.file).read_text(encoding="utf-8"), mutant), folder / _ANSWER
    answer.unlink(missing_ok=True)
    if not fails(args.seconds, lambda: _attack(mutant, source, args.count, answer)):
        return None
    if not answer.exists():
        return "an error in the attack, or no end"
    seen, branch, how = json.loads(answer.read_text(encoding="utf-8"))
    return f"{how} in {counted(seen, 'problem')} of *{branch}*" if branch else f"{how} in the attack"


def fails_tests(copy: Path, mutant: HandMade, args: Namespace) -> str | None:
    """Compiled, by the tests of its file, or by nothing."""
    source = changed((copy / mutant.file).read_text(encoding="utf-8"), mutant)
    numba.config.CACHE_DIR = ""  # type: ignore[attr-defined]  # beside the files of the copy
    forget_compiled(copy, mutant.file)
    try:
        return "tests" if noticed(copy, mutant.file, source, args.seconds) else _NOTHING
    finally:
        forget_compiled(copy, mutant.file)


def import_all() -> None:
    """What attacks need. The kernels of bounds and checks run as Python: compiling each mistake takes far longer."""
    numba.config.DISABLE_JIT = 1  # type: ignore[attr-defined]
    for package in _PACKAGES:
        for file in Path(*package.split(".")).glob("*.py"):
            importlib.import_module(f"{package}.{file.stem}")
    numba.config.DISABLE_JIT = 0  # type: ignore[attr-defined]
    attacks = importlib.import_module(_ATTACKS)
    # All other kernels are compiled here: an attack of a mistake could not, since nothing is compiled there.
    attacks.check_refuted(tuple({branch for mutant in HAND_MADE for branch in mutant.branches}), _FEW)


def _attack(mutant: HandMade, source: str, count: int, answer: Path) -> int:
    """Say what refuted it; whether anything did. This process has the mistake, and imports anew all that imports it."""
    numba.config.DISABLE_JIT = 1  # type: ignore[attr-defined]
    name = mutant.file.removesuffix(".py").replace("/", ".")
    for other in importers(name):
        del sys.modules[other]
    sys.modules[name] = module = ModuleType(name)
    exec(compile(source, mutant.file, "exec"), module.__dict__)
    attacks = importlib.import_module(_ATTACKS)
    first = attacks.check_refuted if mutant.file.startswith("pipesched/") else attacks.bound_refuted
    # What survives few problems of each attack is attacked by many.
    few = ((attack, _FEW) for attack in (first, attacks.check_refuted, attacks.rests_differ))
    for attack, problems in (*few, (first, count)):
        try:
            found = attack(mutant.branches, problems) if mutant.branches else None
        except (IndexError, NotCoveredError, RefusedEvidenceError) as error:
            found = 0, "", type(error).__name__
        if found is not None:
            answer.write_text(json.dumps(found), encoding="utf-8")
            return 1
    return 0


def importers(name: str) -> set[str]:
    """The module, and all of the repository that import it, directly or not."""
    here = str(Path.cwd())
    files = {other: getattr(module, "__file__", None) or "" for other, module in sys.modules.items()}
    texts = {other: Path(file).read_text(encoding="utf-8") for other, file in files.items() if _own(file, here)}
    found, left = set[str](), [name]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += [other for other, text in texts.items() if f"from {one} import" in text]
    return found


def _own(file: str, here: str) -> bool:
    return file.startswith(here) and file.endswith(".py") and "/.venv/" not in file


def forget_compiled(copy: Path, file: str) -> None:
    """What is compiled of a file, and of all bounds and checks that import it: kernels hold what they call."""
    folders = [copy / package.replace(".", "/") for package in _PACKAGES]
    every = {path: path.read_text(encoding="utf-8") for folder in folders for path in folder.glob("*.py")}
    found, left = set[Path](), [copy / file]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            module = ".".join(path.relative_to(copy).with_suffix("").parts)
            left += [other for other, text in every.items() if f"from {module} import" in text]
    for path in found:
        for kernel in (path.parent / "__pycache__").glob(f"{path.stem}.*.nb?"):
            kernel.unlink()


def arguments() -> Namespace:
    """The command line."""
    return options(__doc__, _RESULTS, (_COUNT, "problems of each branch (default 300)")).parse_args()


if __name__ == "__main__":
    sys.exit(main())
