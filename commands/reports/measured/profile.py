"""Report of `profile`, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from commands.shared.tables import Column, table
from pipesched.problem.formatting import counted
from runtime.profiling.problem_text import MIB, first_stage_rule, time_and_spread
from runtime.profiling.profile import KINDS, Profile


def show(found: Profile) -> None:
    """Print a table of times and memory, a row for each stage and kind of pass, and a line for each transfer."""
    columns = [
        Column("stage", True),
        Column("pass"),
        Column("median ± half the quartiles' distance", True),
        Column("takes (MiB)", True),
        Column("workspace\n(MiB)", True, 1),
    ]
    rows = [
        [
            str(number),
            kind.value,
            time_and_spread(stage.times[kind]),
            f"{stage.memory[kind] / MIB:+.3f}",
            f"{stage.workspace[kind] / MIB:.3f}",
        ]
        for number, stage in enumerate(found.stages)
        for kind in KINDS
    ]
    request = found.request
    stages = counted(request.depth, "stage")
    table(f"{request.model}: {stages}, {request.dtype} on {found.machine['device']}", columns, rows)
    for number, samples in enumerate(found.transfers[:-1]):
        size = found.stages[number].output / MIB
        print(f"transfer of {size:.3f} MiB from stage {number} to the next: {time_and_spread(samples)}")
    if first_stage_rule(found):
        print("with autograd's split, B of stage 0 does nothing and W does all of its backward")


def document(found: Profile, files: Sequence[Path]) -> dict[str, object]:
    """Return the object of `profile --json`: times in seconds, memory in bytes.

    Each of `stages` has `parameters` and `output`, and `passes` by kind: `median` and `spread` (distance between the
    quartiles, a share of the median) of the times, bytes that the pass `takes` (negative: frees) and `needs_meanwhile`.
    `transfers[s]` is the median from stage s to the next; the last stage has none. `model`, `split`, `dtype`, `machine`
    and `versions` describe the measurement; `files` are the paths written.
    """
    return {
        "model": found.request.model,
        "split": found.request.split,
        "dtype": found.request.dtype,
        "stages": [
            {
                "parameters": stage.parameters,
                "output": stage.output,
                "passes": {
                    kind.value: {
                        "median": stage.times[kind].median,
                        "spread": stage.times[kind].spread,
                        "takes": stage.memory[kind],
                        "needs_meanwhile": stage.workspace[kind],
                    }
                    for kind in KINDS
                },
            }
            for stage in found.stages
        ],
        "transfers": [samples.median for samples in found.transfers[:-1]],
        "machine": dict(found.machine),
        "versions": dict(found.versions),
        "files": [str(path) for path in files],
    }
