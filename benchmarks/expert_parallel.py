"""Expert parallelism and offload: Kimi K2's layers at equal device memory, published schedules and ours.

python -m benchmarks.expert_parallel --write docs/results/expert-parallel.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.reporting.suite import Case, Suite
from pipesched.files.problem_file import read_problem
from pipesched.problem.placement import v_shape

_EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def cases(_: int) -> Iterator[Case]:
    """Four devices and sixteen; the layers interleaved as in the files or in a V, and with copies to the host."""
    for name in ("kimi-k2-mini", "kimi-k2"):
        problem = read_problem(_EXAMPLES / f"{name}.yaml")
        yield Case(replace(problem, name=f"{name} interleaved"), name)
        yield Case(replace(problem, placement=v_shape(problem.devices), name=f"{name} v-shape"), name)
    for name in ("kimi-k2-offload-mini", "kimi-k2-offload"):
        yield Case(replace(read_problem(_EXAMPLES / f"{name}.yaml"), name=name), name)


SUITE = Suite("expert_parallel", __doc__, {"experts": cases}, every=True)

if __name__ == "__main__":
    sys.exit(SUITE.main())
