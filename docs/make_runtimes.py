"""Writes docs/runtimes.md: what was tested in which runtime, and how.

python -m docs.make_runtimes
"""

from __future__ import annotations

from pathlib import Path

from docs.tested_runtimes import (
    BY_HAND,
    FEATURES,
    MODEL,
    NEVER,
    READ,
    REFUSED,
    RUNTIMES,
    SETTINGS,
    TRAINED,
    Cell,
    Feature,
)
from pipesched.errors import BadInput

PAGE = Path(__file__).parent / "runtimes.md"

HEADER = f"""# Runtimes: what was tested, and how

| cell | means |
|---|---|
| {TRAINED} | processes over gloo trained a small model: every gradient is right, the order the planned one |
| {READ} | the runtime's own code read or checked it, or a record of its own was read; nothing was trained |
| {MODEL} | a model of the runtime's rules, in our tests |
| {BY_HAND} | a command that is no part of the tests, with its result |
| {REFUSED} | in one line; without a number: by the exporter, tried anew whenever this page is made |
| empty | neither run nor refused |

Versions: PyTorch 2.13.0, 2.14.1 and 2.15.0 (CSV), 2.13.0 and 2.14.1 (copies, recomputation); Megatron-Core 0.16.1 and
0.19.2 (by hand); torchtitan 0.3.0 with torch 2.14.1; DeepSpeed 0.19.8, JaxPP cf9e386 and sail-sg's zero-bubble
repository by models of their rules. *PyTorch* is its own `_PipelineScheduleRuntime`, *ours on PyTorch* what
[`run`](runtime.md) and [`pipesched.torch.load`](exporting.md#loading-it) execute themselves, *Megatron* the
[module](megatron.md). All of it on a CPU: no GPU was at hand, and NCCL was not run.

## Schedules and trainers
"""


def page() -> str:
    """Return the text of docs/runtimes.md."""
    numbers: dict[str, int] = {}
    rows = [[feature.name, *(_text(feature, one, numbers) for one in RUNTIMES)] for feature in FEATURES]
    settings = [[name, _numbered(cell, numbers)] for name, cell in SETTINGS]
    tests = [f"{number}. {_link(where)}" for where, number in numbers.items()]
    parts = [HEADER, _table(["", *RUNTIMES], rows), "\n## Settings and files\n", _table(["", "tested"], settings)]
    return "\n".join([*parts, "\n## Tests\n", *tests]) + "\n"


def refuses(feature: Feature, runtime: str) -> bool:
    """Return True if a runtime's exporter refuses the feature's example; False if there is no example."""
    if feature.example is None:
        return False
    try:
        RUNTIMES[runtime](feature.example())
    except BadInput:
        return True
    return False


def _text(feature: Feature, runtime: str, numbers: dict[str, int]) -> str:
    cell = feature.cells.get(runtime)
    if cell is None:
        return REFUSED if refuses(feature, runtime) else NEVER
    return _numbered(cell, numbers)


def _numbered(cell: Cell, numbers: dict[str, int]) -> str:
    return f"{cell.how} {numbers.setdefault(cell.where, len(numbers) + 1)}"


def _link(where: str) -> str:
    file, _, test = where.partition("::")
    if not test:
        return f"[{Path(file).name}]({Path(file).relative_to('docs')})"
    return f"[`{test or Path(file).name}`](../{file})"


def _table(head: list[str], rows: list[list[str]]) -> str:
    first, *others = (f"| {' | '.join(line)} |" for line in (head, *rows))
    return "\n".join((first, "|" + "---|" * len(head), *others))


if __name__ == "__main__":
    PAGE.write_text(page())
