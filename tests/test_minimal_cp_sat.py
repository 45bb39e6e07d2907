"""The first file that a contributor reads: it runs by itself, and agrees with `solve`."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from pipesched import read_problem, solve

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "examples" / "minimal_cp_sat.py"


def test_it_prints_the_proved_makespan_and_an_order_for_each_device() -> None:
    found = subprocess.run([sys.executable, str(FILE)], capture_output=True, text=True, check=True)
    first, *devices = found.stdout.splitlines()
    assert first == "makespan 279.0 ms, no schedule below 279.0 ms"
    assert len(devices) == 4
    assert devices[0].startswith("device 0: F0 ")


def test_its_value_is_that_of_solve_for_the_same_pipeline() -> None:
    spec = importlib.util.spec_from_file_location("minimal_cp_sat", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    value, bound, _ = module.optimal_schedule(module.START)
    solution = solve(read_problem(ROOT / "examples" / "start.yaml"), seconds=30)
    assert value == bound
    assert value / 2 == float(solution.value or 0)
