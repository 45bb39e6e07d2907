"""The tests meant for a file, run on a copy of the repository in which the file has a mistake."""

from __future__ import annotations

import importlib
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from pathlib import Path

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
    "solver/bounds/analytic/head_and_tail_in_order.py": ("tests/solver/bounds/test_head_and_tail_in_order.py", _VALUES),
    "solver/bounds/analytic/integral_warmup.py": _BOUNDS,
    "solver/bounds/analytic/in_flight.py": _BOUNDS[:3],
    "solver/bounds/analytic/heads_and_tails.py": _BOUNDS[:3],
    **{
        f"solver/bounds/analytic/{name}.py": ("tests/solver/bounds/test_several_streams.py",)
        for name in ("stream_head_and_tail", "stream_heads_and_tails", "stream_chains", "stream_memory")
    },
    **{
        f"{name}.py": ("tests/solver/bounds/test_waiting_weights.py", "tests/solver/bounds/test_saving_bounds.py")
        for name in ("solver/bounds/analytic/stream_weights", "pipesched/checking/streams/weights")
    },
    **{
        f"solver/bounds/saving/{name}.py": ("tests/solver/bounds/test_saving_bounds.py",)
        for name in ("certificates", "memory_and_copies", "rows_of_device")
    },
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
    **{
        f"solver/bounds/crossing/{name}.py": (
            "tests/solver/bounds/crossings/test_crossings.py",
            "tests/benchmarks/test_bound_attack.py",
        )
        for name in ("bound", "line", "states", "rounds")
    },
    **{
        f"{name}.py": ("tests/solver/bounds/crossings/test_steps.py",)
        for name in (
            *(f"solver/bounds/crossing_steps/{one}" for one in ("bound", "device_sets", "growth", "layers", "steps")),
            *(f"pipesched/checking/crossing_steps/{one}" for one in ("argument", "orders", "repetition")),
        )
    },
    **{
        f"{name}.py": (
            "tests/solver/bounds/crossings/test_below.py",
            "tests/solver/bounds/crossings/test_below_blocks.py",
        )
        for name in (
            *(f"solver/bounds/crossing_below/{one}" for one in ("bound", "follow", "moves", "remaining")),
            *(f"pipesched/checking/crossing_below/{one}" for one in ("argument", "orders", "rest")),
        )
    },
    **{
        f"{name}.py": ("tests/solver/bounds/crossings/test_stages.py",)
        for name in (
            *(f"solver/bounds/crossing_stages/{one}" for one in ("bound", "stages")),
            "pipesched/checking/crossing_stages/argument",
        )
    },
    **{
        f"{name}.py": ("tests/solver/bounds/crossings/test_whole.py",)
        for name in (
            *(
                f"solver/bounds/crossing_whole/{one}"
                for one in ("bound", "choices", "follow", "layers", "stay", "weights")
            ),
            *(f"pipesched/checking/crossing_whole/{one}" for one in ("argument", "device", "fewer", "orders")),
        )
    },
    **{
        f"{name}.py": ("tests/solver/bounds/crossings/test_blocks.py",)
        for name in (
            *(f"solver/bounds/crossing_blocks/{one}" for one in ("blocks", "bound", "layers")),
            *(f"pipesched/checking/crossing_blocks/{one}" for one in ("argument", "orders")),
        )
    },
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
            "coverage",
            "device_arguments",
            "head_and_tail",
            "least_times",
            "memory_and_modes",
            "memory_over_time",
            "more_memory",
            "one_device",
            "period",
            "relaxation/known_order",
            "relaxation/rows",
            "relaxation/weak_duality",
            "streams/head_and_tail",
            "streams/load",
            "streams/tasks",
            "streams/task_paths",
            "unpaired",
            "warm_up",
        )
    },
    **{
        f"{name}.py": ("tests/solver/bounds/crossings/test_crossings.py",)
        for name in (
            "solver/bounds/crossing/bound",
            "solver/bounds/crossing/line",
            "solver/bounds/crossing/rounds",
            "solver/bounds/crossing/states",
            "pipesched/checking/crossings/argument",
            "pipesched/checking/crossings/rounds",
        )
    },
    **{
        f"pipesched/checking/{name}.py": ("tests/solver/bounds/test_saving_bounds.py",)
        for name in ("least_held", "memory_and_copies")
    },
    "pipesched/checking/streams/memory.py": ("tests/solver/bounds/test_several_streams.py",),
    "pipesched/checking/check.py": (*_CHECK, "tests/solver/bounds/test_saving_bounds.py"),
    "pipesched/checking/lagrangian.py": ("tests/pipesched/checking/test_forged_multipliers.py", *_CHECK),
    "pipesched/checking/plan_check.py": ("tests/pipesched/checking/test_plan_findings.py",),
    "solver/cyclic/replication.py": ("tests/solver/cyclic/test_replication.py",),
    "runtime/lowering/deadlock.py": ("tests/runtime/lowering/test_deadlock.py",),
}
# How much longer than its seconds of processor time a run may take.
_PATIENCE = 20
# Loaded once, before the tests of each mutant run in a process of their own.
_LIBRARIES = ("numpy", "numba", "ortools.sat.python.cp_model", "pytest", "hypothesis", "matplotlib.figure", "pydantic")


def load_libraries() -> None:
    """What all tests need, so that the process of each mutant has it from its start."""
    for library in _LIBRARIES:
        importlib.import_module(library)


def noticed(copy: Path, file: str, source: str, seconds: float) -> bool:
    """Whether the tests meant for the file fail in a copy of the repository where it reads so, or do not end."""
    place = copy / file
    original = place.read_text(encoding="utf-8")
    place.write_text(source, encoding="utf-8")
    try:
        return fails(seconds, lambda: _tests_of(copy, file))
    finally:
        place.write_text(original, encoding="utf-8")


def fails(seconds: float, run: Callable[[], int]) -> bool:
    """Whether this gives another number than 0 in a process of its own, or does not end.

    It is ended after so many seconds of processor time, so that a machine that is busy makes no mutant look noticed.
    """
    process = os.fork()
    if process == 0:
        _run(ceil(seconds), run)
    end = time.monotonic() + _PATIENCE * seconds
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.02)
    os.kill(process, 9)
    os.waitpid(process, 0)
    return True


def _run(seconds: int, run: Callable[[], int]) -> None:
    """Run this in this process, which ends with the number that it gives."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    with Path(os.devnull).open("w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        code = 1
        with suppress(Exception):
            code = run()
    os._exit(code)


def _tests_of(copy: Path, file: str) -> int:
    """Run the tests of a file; 0 if they pass. Packages come from the copy."""
    tops = {path.name for path in copy.iterdir() if path.is_dir()}
    for name in [name for name in sys.modules if name.split(".")[0] in tops]:
        del sys.modules[name]
    os.chdir(copy)
    sys.path.insert(0, str(copy))
    import pytest

    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", *TESTS[file]]))


def copied(folder: Path) -> Path:
    """A copy of all files of the repository that git knows or does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    ).stdout
    for name in filter(Path.is_file, map(Path, listed.splitlines())):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(name, folder / name)
    return folder
