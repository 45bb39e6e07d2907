"""Results of `layouts`: the best known plan of each layout of a model, and the recommended layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipesched.problem.formatting import plain
from pipesched.results.tabular import Tabular

EXACT, FIRST = "exact", "first plan"
NO_FIRST_PLAN = "no first plan of it fits the memory"


class ExpectedError(NamedTuple):
    """The expected error of predicted steps: `mean` relative error over `rows` measured steps of this `kind`.

    `ratio` is the mean relative error of the ratio of two layouts' steps, over `pairs` of measured layouts of one model
    on the same GPUs. Errors are shares of 1; a kind is a family of GPUs and a type of model, such as `H100 dense`.
    """

    kind: str
    mean: float
    rows: int
    ratio: float
    pairs: int


def plainness(sizes: Mapping[str, int], recomputes: bool, chunks: int) -> tuple[int, bool, int, int, int]:
    """Return a key by which simpler layouts sort first.

    It is (number of kinds of parallelism besides data, True if some layer recomputes, stages a device, tensor size,
    context size). `sizes` has the sizes `tensor`, `context`, `expert` and `pipeline` by name, others are not read;
    `chunks` is the number of stages a device.
    """
    chosen = [sizes[name] for name in ("tensor", "context", "expert", "pipeline")]
    return sum(size > 1 for size in chosen), recomputes, chunks, chosen[0], chosen[1]


@dataclass(frozen=True)
class LayoutRow:
    """One layout: sizes of parallelism, times in ms, memory in GiB, and its plan; None where no plan is known.

    `step` has the `total` time, and its parts `pipeline` (also `pipeline_time`), `exchange` and `optimizer`. No
    pipeline of the layout is faster than `lower_bound`, which `gap` is relative to, no step faster than
    `step_lower_bound`; both are None where the layout was not examined. `searched` is `EXACT` if its plans were
    searched, `FIRST` if it has the first plan made; `fits` is True if a plan is known. `chunks` is the number of stages
    a device. `idle` is a share of the pipeline's time, mean over the devices, `peak_memory` by device, `partition` the
    number of layers of each stage, `recomputed_layers` that of recomputed ones on all stages. `equal`: its step is
    longer than the best one by at most the expected error of their ratio. `reason`: why there is no plan, or no search.
    `assumed` are the rates of its plan file. `mfu` is the share of the GPUs' peak rate that the model's operations use,
    `tokens_per_second` that of all GPUs together. `tensor`, `context`, `pipeline`, `data` and `expert` are the numbers
    of devices of each kind of parallelism, `microbatches` those of each data-parallel replica.
    """

    tensor: int
    context: int
    pipeline: int
    data: int
    expert: int
    microbatch_size: int
    microbatches: int
    lower_bound: float | None
    step_lower_bound: float | None
    chunks: int | None = None
    step: Mapping[str, float] | None = None
    searched: str | None = None
    fits: bool = False
    reason: str = ""
    equal: bool = False
    pipeline_time: float | None = None
    gap: float | None = None
    tokens_per_second: float | None = None
    mfu: float | None = None
    idle: float | None = None
    peak_memory: tuple[float, ...] | None = None
    recomputed_layers: int | None = None
    placement: str | None = None
    partition: tuple[int, ...] | None = None
    schedule: str | None = None
    assumed: Mapping[str, Any] = field(default_factory=dict)
    expected_error: ExpectedError | None = None

    @property
    def total(self) -> float:
        """The time of a step in ms; infinite without a plan."""
        return float("inf") if self.step is None else self.step["total"]

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the layout by name: `tensor`, `context`, `pipeline`, `data`, `expert` and `microbatch_size`."""
        names = ("tensor", "context", "pipeline", "data", "expert", "microbatch_size")
        return {name: getattr(self, name) for name in names}

    @property
    def plainness(self) -> tuple[int, bool, int, int, int]:
        """The key `plainness` of this layout, by which simpler layouts sort first."""
        return plainness(self.sizes, bool(self.recomputed_layers), self.chunks or 0)

    def document(self) -> dict[str, Any]:
        """Return a row of `layouts --json` and of layouts.csv: the fields of this class, with their names as keys."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        error = self.expected_error
        lists = {name: None if found[name] is None else [*found[name]] for name in ("peak_memory", "partition")}
        step = None if self.step is None else dict(self.step)
        return found | lists | {
            "step": step, "assumed": dict(self.assumed), "expected_error": None if error is None else error._asdict(),
        }  # fmt: skip


@dataclass(frozen=True, repr=False)
class Layouts(Tabular):
    """All layouts of a model on a number of GPUs, by step time; those without a plan are last.

    A step has `sequences` of `sequence` tokens. `refused` gives, by layout as text, the reason why it was not examined.
    `recommended` is the simplest of those as good as the best, None if none fits. No step of any layout is faster than
    `step_lower_bound`, in ms; it is None if some layouts were not examined. `rows` are the layouts, `hardware` the name
    of the devices.
    """

    name: str
    gpus: int
    hardware: str
    sequences: int
    sequence: int
    rows: Sequence[LayoutRow]
    refused: Mapping[str, str]
    step_lower_bound: float | None
    recommended: LayoutRow | None = None

    @property
    def by_microbatch_size(self) -> dict[int, float]:
        """Return, by micro-batch size, the share by which its best step is longer than the best of all.

        Sizes without a plan are left out.
        """
        best: dict[int, float] = {}
        for row in self.rows:
            if row.step is not None:
                best[row.microbatch_size] = min(best.get(row.microbatch_size, float("inf")), row.total)
        least = min(best.values(), default=1.0)
        return {size: step / least - 1 for size, step in sorted(best.items())}

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each layout, by step time, with the fields of `LayoutRow` by name."""
        return [row.document() for row in self.rows]

    def summary(self) -> str:
        """Return a line with the recommended layout's sizes above 1 and its step in ms, or that no layout fits."""
        one = self.recommended
        if one is None:
            return f"{self.name!r} on {self.gpus} GPUs: no layout fits"
        sizes = ", ".join(f"{name.replace('_', ' ')} {size}" for name, size in one.sizes.items() if size > 1)
        return f"{self.name!r} on {self.gpus} GPUs: {sizes or 'data 1'}: step {plain(round(one.total, 3))} ms"

    def document(self) -> dict[str, Any]:
        """Return the object of `layouts --json`, without the plan of the recommended layout.

        The keys are `gpus`, `sequences` (of a step), `step_lower_bound` (ms, None if some layouts were not examined),
        `rows`, one for each layout, by step time, `recommended`, sizes by name, None if none fits, `refused`, reasons
        by layout, and `by_microbatch_size`, by size as text the share by which its best step is longer than the best.
        """
        chosen = None if self.recommended is None else self.recommended.sizes
        return {
            "gpus": self.gpus, "sequences": self.sequences, "step_lower_bound": self.step_lower_bound,
            "recommended": chosen, "rows": self.records(), "refused": dict(self.refused),
            "by_microbatch_size": {str(size): more for size, more in self.by_microbatch_size.items()},
        }  # fmt: skip
