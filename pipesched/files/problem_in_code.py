"""Problems made in code from typed arguments, with the checks of a problem file, and their writing to such a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import simplejson
from numpy.typing import NDArray

from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole
from pipesched.files.problem_file import problem_from
from pipesched.files.problem_text import problem_text
from pipesched.files.problems.document import placement_keys, problem_document
from pipesched.problem.objectives.makespan import MAKESPAN
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem

Number = int | float | Decimal | Fraction
# One for all, or an entry for each.
Numbers = Number | Sequence[Number] | NDArray[Any]
# With pieces (`sequence_chunks`): also one for each piece or a mapping of first and each_earlier, or a list of these.
PieceNumbers = Numbers | Mapping[str, Number] | Sequence[Number | Mapping[str, Number] | Sequence[Number]]


def make_problem(
    *,
    devices: int,
    microbatches: int,
    forward: PieceNumbers,
    backward: PieceNumbers,
    weight: PieceNumbers | None = None,
    fused: PieceNumbers | None = None,
    transfer: Numbers | Sequence[Sequence[Number]] | None = None,
    overlapped: Numbers | Mapping[str, Numbers] | None = None,
    placement: str | Sequence[int] | Placement = "linear",
    chunks: int | None = None,
    chains: Sequence[Mapping[str, object]] | None = None,
    pipelines: Mapping[str, object] | None = None,
    sequence_chunks: int | None = None,
    batch: Mapping[str, object] | None = None,
    frozen: int | None = None,
    modules: Mapping[str, object] | None = None,
    capacity: Numbers | None = None,
    static: Numbers | None = None,
    activation: PieceNumbers | None = None,
    freed_by_backward: PieceNumbers | None = None,
    kept_for_later: PieceNumbers | None = None,
    parameters: Mapping[str, object] | None = None,
    microbatch_scale: Sequence[Number] | None = None,
    microbatch_order: str | None = None,
    objective: Objective | str = MAKESPAN,
    then: Objective | str | None = None,
    overlap_next: bool | None = None,
    name: str = "problem",
    time_unit: str = "",
    memory_unit: str | None = None,
) -> Problem:
    """Return a problem whose passes are single tasks; each argument means what the key of a problem file does.

    Costs of stages are a number for all, or a list with one for each stage; `capacity` is by device, `static` by device
    or by stage.
    `BadInput` lists every mistake by its key path. For all other keys of a problem file use `problem_from`.
    """
    where = placement_keys(placement) if isinstance(placement, Placement) else {"placement": placement}
    times = {"forward": forward, "backward": backward, "weight": weight, "fused": fused, "transfer": transfer,
             "overlapped": overlapped}  # fmt: skip
    memory = {"unit": memory_unit, "capacity": capacity, "static": static, "activation": activation,
              "freed_by_backward": freed_by_backward, "kept_for_later": kept_for_later}  # fmt: skip
    return problem_from(
        _given({
            "name": name, "devices": devices, "microbatches": microbatches, "chunks": chunks, **where,
            "chains": chains, "pipelines": pipelines, "sequence_chunks": sequence_chunks,
            "batch": batch, "frozen": frozen,
            "modules": modules,
            "time_unit": time_unit, "times": _given(times), "memory": _given(memory) or None,
            "parameters": parameters,
            "microbatch_scale": microbatch_scale, "microbatch_order": microbatch_order, "objective": str(objective),
            "then": None if then is None else str(then), "overlap_next": overlap_next,
        })
    )  # fmt: skip


def _given(keys: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in keys.items() if value is not None}


def write_problem(problem: Problem, path: str | Path) -> Path:
    """Write a problem file that `read_problem` reads as the same problem: JSON if the path ends in .json, else YAML.

    `BadInput` if no file can express it, or the file cannot be written.
    """
    target = Path(path)
    try:
        if target.suffix.lower() == ".json":
            return write_whole(target, simplejson.dumps(problem_document(problem), indent=1) + "\n")
        return write_whole(target, problem_text(problem))
    except ValueError as why:
        raise BadInput(f"{path}: the problem cannot be written: {why}") from None
