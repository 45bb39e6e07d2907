"""Mutation testing: runs the tests meant for a file on copies of it with one mistake each.

    python -m benchmarks.proofs.mutants --count 40 --seed 0 --resume --write docs/proofs.md

Names every mutant that its tests do not notice, unless benchmarks/proofs/equivalent_mutants.py says why it changes
nothing. Exit code 1 if there are any. Needs a system with fork (Linux, macOS).
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from math import ceil
from pathlib import Path
from random import Random

from benchmarks.proofs.equivalent_mutants import EQUIVALENT
from benchmarks.proofs.mutations import mutants, names
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put, table
from pipesched.files.atomic_write import write_whole

COMMAND = "python -m benchmarks.proofs.mutants"
_RESULTS = Path(__file__).with_name("mutants.json")
_VALUES = "tests/solver/bounds/test_certificate_values.py"
_SENTENCES = "tests/solver/bounds/test_sentences.py"
_BOUNDS = (
    _VALUES,
    _SENTENCES,
    "tests/solver/bounds/test_memory_energy.py",
    "tests/benchmarks/test_bound_attack.py",
    "tests/solver/bounds/test_analytic_bounds.py",
)
_MODES = (
    _SENTENCES,
    _VALUES,
    "tests/solver/bounds/test_mode_bounds.py",
)
_RULES = "tests/pipesched/validation/test_task_rules.py"
_OPTIONS = "tests/pipesched/validation/test_memory_saving_rules.py"
_UNEQUAL = "tests/pipesched/test_microbatch_scale.py"
_VALIDATOR = ("tests/pipesched/validation/test_validator.py", _RULES, _OPTIONS, _UNEQUAL)
_CHECK = ("tests/pipesched/checking/test_coverage.py", "tests/pipesched/checking/test_proved_values.py")
# Each file, and the tests meant for it, the quick ones first.
TESTS: dict[str, tuple[str, ...]] = {
    "solver/bounds/analytic/idle_time/memory_energy.py": _BOUNDS[:3],
    "solver/bounds/analytic/idle_time/busy_interval.py": _BOUNDS,
    "solver/bounds/analytic/critical_paths.py": ("tests/solver/bounds/test_critical_paths.py", *_BOUNDS),
    "solver/bounds/analytic/load.py": ("tests/solver/bounds/test_several_streams.py", *_BOUNDS),
    "solver/bounds/analytic/catalogue.py": ("tests/solver/bounds/test_several_streams.py",),
    "solver/bounds/analytic/idle_time/idle_gaps.py": _BOUNDS,
    "solver/bounds/analytic/idle_time/knapsack.py": _BOUNDS,
    "solver/bounds/analytic/round_trip.py": _BOUNDS,
    "solver/bounds/analytic/head_and_tail.py": _BOUNDS,
    "solver/bounds/analytic/integral_warmup.py": _BOUNDS,
    "solver/bounds/analytic/in_flight.py": _BOUNDS[:3],
    "solver/bounds/analytic/heads_and_tails.py": _BOUNDS[:3],
    "solver/bounds/analytic/stream_head_and_tail.py": ("tests/solver/bounds/test_several_streams.py",),
    "solver/bounds/analytic/stream_heads_and_tails.py": ("tests/solver/bounds/test_several_streams.py",),
    **{
        f"solver/bounds/analytic/{name}.py": _MODES
        for name in (
            "modes/counts",
            "modes/values",
            "modes/delays",
            "modes/memory",
            "unpaired_passes",
            "memory_and_modes",
        )
    },
    "solver/cyclic/period_bounds.py": _BOUNDS[:3],
    "solver/bounds/lagrangian/bound.py": ("tests/solver/bounds/test_lagrangian_horizons.py",),
    "solver/bounds/lagrangian/subproblem.py": ("tests/solver/bounds/test_lagrangian_bound.py",),
    "solver/bounds/lagrangian/multipliers.py": ("tests/solver/bounds/test_multipliers.py",),
    "solver/bounds/lagrangian/single_device.py": ("tests/solver/bounds/test_lagrangian_bound.py",),
    **{
        f"pipesched/validation/{name}.py": _VALIDATOR
        for name in ("validator", "order_rules", "time_rules", "memory_rule", "pass_rules", "cycle_rule")
    },
    "pipesched/validation/task_order_rules.py": (_RULES,),
    "pipesched/validation/memory_order_rule.py": (_RULES, _OPTIONS, "tests/solver/tasks/test_task_solve.py"),
    **{
        f"pipesched/checking/{name}.py": _CHECK
        for name in (
            "attainable",
            "check",
            "coverage",
            "device_arguments",
            "head_and_tail",
            "least_times",
            "memory_and_modes",
            "memory_over_time",
            "one_device",
            "stream_head_and_tail",
            "stream_load",
            "stream_tasks",
            "task_paths",
            "unpaired",
            "warm_up",
        )
    },
    "pipesched/checking/lagrangian.py": ("tests/pipesched/checking/test_forged_multipliers.py", *_CHECK),
    "pipesched/checking/plan_check.py": ("tests/pipesched/checking/test_plan_findings.py",),
    "solver/cyclic/replication.py": ("tests/solver/cyclic/test_replication.py",),
    "runtime/lowering/deadlock.py": ("tests/runtime/lowering/test_deadlock.py",),
}
# How much longer than its seconds of processor time a run may take.
_PATIENCE = 20
# Loaded once, before the tests of each mutant run in a process of their own.
_LIBRARIES = ("numpy", "numba", "ortools.sat.python.cp_model", "pytest", "hypothesis", "matplotlib.figure", "pydantic")


def noticed(copy: Path, file: str, source: str, seconds: float) -> bool:
    """Whether the tests meant for the file fail in a copy of the repository where it reads so, or do not end."""
    place = copy / file
    original = place.read_text(encoding="utf-8")
    place.write_text(source, encoding="utf-8")
    try:
        process = os.fork()
        if process == 0:
            _run_tests(copy, file, ceil(seconds))
        end = time.monotonic() + _PATIENCE * seconds
        while time.monotonic() < end:
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                return status != 0
            time.sleep(0.02)
        os.kill(process, 9)
        os.waitpid(process, 0)
        return True
    finally:
        place.write_text(original, encoding="utf-8")


def _run_tests(copy: Path, file: str, seconds: int) -> None:
    """Run the tests of a file in this process, which ends with 0 if they pass; packages come from the copy.

    It is ended after so many seconds of processor time, so that a machine that is busy makes no mutant look noticed.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    tops = {path.name for path in copy.iterdir() if path.is_dir()}
    for name in [name for name in sys.modules if name.split(".")[0] in tops]:
        del sys.modules[name]
    os.chdir(copy)
    sys.path.insert(0, str(copy))
    with Path(os.devnull).open("w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        import pytest

        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", *TESTS[file]])
    os._exit(int(code))


def copied(folder: Path) -> Path:
    """A copy of all files of the repository that git knows or does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    ).stdout
    for name in filter(Path.is_file, map(Path, listed.splitlines())):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(name, folder / name)
    return folder


def markdown(results: dict[str, dict[str, bool]], described: str) -> str:
    """A row for each file: mutants there are, run, noticed, equal by an argument, and left."""
    lines = []
    for file, found in results.items():
        every = set(names(Path(file).read_text(encoding="utf-8")))
        ran = {name: seen for name, seen in found.items() if name in every}
        missed = [name for name, seen in ran.items() if not seen]
        equal = [name for name in missed if name in EQUIVALENT.get(file, {})]
        numbers = (len(every), len(ran), len(ran) - len(missed), len(equal), len(missed) - len(equal))
        lines.append([f"`{file}`", *map(str, numbers)])
    head = ("file", "mutants", "run", "noticed", "change nothing", "not noticed")
    return f"{described}\n\n{table(head, lines)}"


def main() -> int:
    """Run mutants and print the table and what was not noticed; 1 if there is any."""
    args = arguments()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Run what was asked for; results are kept after every mutant."""
    for library in _LIBRARIES:
        importlib.import_module(library)
    results: dict[str, dict[str, bool]] = {}
    if args.resume and args.results.exists():
        results = json.loads(args.results.read_text(encoding="utf-8"))
    left, passing = [], dict[tuple[str, ...], bool]()
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        for file, tests in TESTS.items():
            if args.files not in file:
                continue
            source = (copy / file).read_text(encoding="utf-8")
            every, ran = mutants(source), results.setdefault(file, {})
            if tests not in passing:
                passing[tests] = not noticed(copy, file, source, args.seconds)
            if passing[tests]:
                for mutant in Random(args.seed).sample(every, min(args.count, len(every))):
                    if not ran.get(mutant.name, False) and mutant.name not in EQUIVALENT.get(file, {}):
                        ran[mutant.name] = noticed(copy, file, mutant.source, args.seconds)
                        write_whole(args.results, json.dumps(results, indent=1) + "\n")
                        if not ran[mutant.name]:
                            left.append(f"{file}: {mutant.name}")
                            print(f"not noticed: {left[-1]}", file=sys.stderr, flush=True)
            else:
                print(f"the tests of {file} fail, or take too long, without a mistake", file=sys.stderr, flush=True)
                left.append(file)
    described = f"{machine(args.seed, 1, 'pytest')}; {args.count} mutants a file at most, {args.seconds:g} s a mutant"
    text = markdown(results, described)
    print(text)
    if args.write is not None:
        put(args.write, COMMAND, text)
    return 1 if left else 0


def arguments() -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument(
        "--count", type=int, default=1_000_000, help="mutants of each file, drawn at random (default all)"
    )
    parser.add_argument(
        "--seconds", type=float, default=300, help="of processor time for the tests of each mutant (default 300)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", metavar="TEXT", default="", help="only those whose names have this text")
    parser.add_argument("--results", type=Path, default=_RESULTS, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="run only mutants that were not noticed, or not run")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page, docs/proofs.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
