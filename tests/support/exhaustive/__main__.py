"""Compile the search over all orders, before the processes of a test run need it: python -m tests.support.exhaustive."""

from __future__ import annotations

from pipesched.files.problem_file import problem_from
from tests.support.exhaustive.optimum import least

if __name__ == "__main__":
    tiny = problem_from(
        {
            "devices": 2,
            "microbatches": 2,
            "times": {"forward": 1, "backward": 1, "weight": 1},
            "memory": {"capacity": 2},
        }
    )
    least(tiny, tiny.objective)
