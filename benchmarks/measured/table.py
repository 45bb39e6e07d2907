"""The table of published measurements: a layout of a model on so many GPUs, and its step's seconds or "out of memory".

Columns and sources: benchmarks/data/README.md.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from pipesched.errors import BadInput
from pipesched.files.model_configs.expected_error import kind_of
from pipesched.files.model_configs.hardware_table import DEVICES

DATA = Path(__file__).parents[1] / "data"
TABLE, CONFIGS = DATA / "measured.csv", DATA / "configs"
# Rows that no rate was fitted to; those of the last seven were recorded before any was predicted, on different days.
HOLDOUT, UNSEEN, BLIND = DATA / "holdout.csv", DATA / "unseen.csv", DATA / "blind.csv"
SECOND_BLIND, THIRD_BLIND = DATA / "second_blind.csv", DATA / "third_blind.csv"
FOURTH_BLIND, HYBRID_BLIND = DATA / "fourth_blind.csv", DATA / "hybrid_blind.csv"
FIFTH_BLIND = DATA / "fifth_blind.csv"

_GIB = {"GiB": 1.0, "GB": 1e9 / 2**30}
# Of memory columns, those that count what tensors hold; others also count the CUDA context and unused blocks.
_ALLOCATED = ("GiB, max allocated", "GiB, peak allocated")


@dataclass(frozen=True)
class Row:
    """A published measurement; `seconds` is None where the run was out of memory.

    `gpu` is a name of the hardware table, `partition` None where layers are cut evenly. `allocated` are GiB of tensors
    at the peak, where known. `runtime` is what the table says of options beyond the layout, in its own words.
    """

    id: str
    model: str
    source: str
    gpu: str
    gpus: int
    sizes: tuple[tuple[str, int], ...]  # tensor, context, expert, data
    pipeline: int
    chunks: int
    microbatch_size: int
    microbatches: int
    sequence: int
    recompute: str
    precision: str
    schedule: str
    flash: bool
    sequence_parallel: bool
    seconds: float | None
    allocated: float | None
    partition: tuple[int, ...] | None
    group: str
    runtime: str

    @property
    def bf16(self) -> bool:
        return self.precision == "bf16"

    @property
    def hybrid(self) -> bool:
        return any(part in self.model for part in ("nemotron-3-", "qwen3-next"))

    @property
    def moe(self) -> bool:
        return any(part in self.model for part in (
            "deepseek", "qwen1.5-moe", "qwen3-30b", "qwen3-235b", "qwen3-next", "nemotron-3-", "gpt-oss", "mixtral",
            "moon", "kimi", "grok",
        ))  # fmt: skip


def read_table(path: Path = TABLE) -> list[Row]:
    """All rows of a table; `BadInput` for one that cannot be read."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [_row(one) for one in csv.DictReader(file)]
    except (OSError, KeyError, ValueError) as error:
        raise BadInput(f"{path}: is no table of measurements: {error!r}") from None


def source_of(row: Row) -> str:
    """The repository or paper that a row is from, without the file."""
    first, _, details = row.source.partition(" ")
    return f"{first} {details.partition(' ')[0]}".rstrip(":,;") if first in ("arXiv", "MegaScale", "Meta") else first


def kind(row: Row) -> str:
    """The family of the GPU and of the model, as `expected_error` names it."""
    return kind_of(row.gpu, row.moe, row.hybrid)


def kind_and_precision(row: Row) -> str:
    """The kind, and the format of products."""
    return f"{kind(row)}, {row.precision.partition('-')[0].upper()}"


def _row(cells: dict[str, str]) -> Row:
    tensor, context, expert, data = (int(cells[key]) for key in ("tp", "cp", "ep", "dp"))
    size, batch = int(cells["mbs"]), int(cells["gbs"])
    description = f"{cells['expressible']}; {cells['note']}"
    kind, amount = cells["memory_kind"], cells["measured_memory"]
    part = cells["partition"]
    return Row(
        id=cells["id"], model=cells["model"], source=cells["source"],
        gpu=_gpu(cells["gpu"], description), gpus=int(cells["gpus"]),
        sizes=(("tensor", tensor), ("context", context), ("expert", expert), ("data", data)),
        pipeline=int(cells["pp"]), chunks=int(cells["vp"]), microbatch_size=size, microbatches=batch // (size * data),
        sequence=int(cells["seq"]), recompute=cells["recompute"], precision=cells["precision"],
        schedule=cells["schedule"], flash=cells["flash"] != "False",
        sequence_parallel=_sequence_parallel(cells["sequence_parallel"], cells["source"], description),
        seconds=None if cells["measured_oom"] == "1" else float(cells["measured_step_s"]),
        allocated=float(amount) * _GIB[kind[:3].strip(" ,")] if amount and kind in _ALLOCATED else None,
        partition=None if part == "even" else tuple(map(int, part.strip("[]").split(","))),
        group=cells["group"], runtime=description,
    )  # fmt: skip


def _gpu(name: str, description: str) -> str:
    """The name in the hardware table of what a source calls its GPUs: `h100-96gb 500W`, `mi355x?`, `gb200`."""
    plain = name.partition(" ")[0].rstrip("?")
    if "VBoost" in description:
        plain += "-vboost"
    return next((known for known in DEVICES if known.startswith(plain)), plain)


def _sequence_parallel(cell: str, source: str, description: str) -> bool:
    """Aleph Alpha's sweeps without the option are without it; so is what says so, or is older than arXiv 2205.05198."""
    if cell in ("True", "False"):
        return cell == "True"
    return cell != "None" and "no sequence parallel" not in description and not source.startswith("arXiv 2104.04473")
