"""The idea of pipesched as one small CP-SAT model: the shortest schedule of a pipeline within its memory.

    python examples/minimal_cp_sat.py

A batch of micro-batches runs forward (F) through the stages of a model, one stage on each device, and backward for the
input (B) in reverse; the backward for the weights (W) of a stage runs any time after its B. A device runs one pass
at a time and holds an activation from the start of an F to the end of its W. CP-SAT chooses a start for every pass so
that the last one ends as soon as possible, and proves that no schedule ends sooner.

Everything else in this repository reads a richer model than this one, finds good schedules before CP-SAT is asked, and
proves bounds where CP-SAT alone would take too long. The numbers are those of `examples/start.yaml`: `pipesched solve`
gives the same value.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

Pass = tuple[str, int, int]  # kind, stage, micro-batch


@dataclass(frozen=True)
class Pipeline:
    """A pipeline of one stage on each device. Times are in ticks of half a millisecond, memory in activations."""

    microbatches: int
    forward: tuple[int, ...]
    backward: tuple[int, ...]
    weight: tuple[int, ...]
    transfer: int
    capacity: int

    @property
    def stages(self) -> range:
        return range(len(self.forward))

    def ticks(self, kind: str, stage: int) -> int:
        """Duration of a pass."""
        return {"F": self.forward, "B": self.backward, "W": self.weight}[kind][stage]


START = Pipeline(
    microbatches=8,
    forward=(20, 20, 20, 20),
    backward=(20, 20, 20, 24),
    weight=(16, 16, 16, 16),
    transfer=1,
    capacity=4,
)


def optimal_schedule(pipeline: Pipeline, seconds: float = 60.0) -> tuple[int, int, dict[Pass, int]]:
    """Makespan, lower bound and the start of every pass, all in ticks; the two are equal once optimality is proved."""
    model = cp_model.CpModel()
    batch = range(pipeline.microbatches)
    passes = [(kind, stage, j) for kind in "FBW" for stage in pipeline.stages for j in batch]

    # Variables: a start for every pass. All passes in turn, with every transfer, is a horizon that is always enough.
    horizon = sum(pipeline.ticks(kind, stage) + pipeline.transfer for kind, stage, _ in passes)
    start = {p: model.new_int_var(0, horizon, "{}{}.{}".format(*p)) for p in passes}
    end = {p: start[p] + pipeline.ticks(*p[:2]) for p in passes}
    makespan = model.new_int_var(0, horizon, "makespan")

    # Precedences: tensors travel from stage to stage, gradients back; the last stage turns around.
    last = pipeline.stages[-1]
    for j in batch:
        for stage, following in pairwise(pipeline.stages):
            model.add(start["F", following, j] >= end["F", stage, j] + pipeline.transfer)
            model.add(start["B", stage, j] >= end["B", following, j] + pipeline.transfer)
        model.add(start["B", last, j] >= end["F", last, j])
        for stage in pipeline.stages:
            model.add(start["W", stage, j] >= end["B", stage, j])

    for stage in pipeline.stages:
        own = [p for p in passes if p[1] == stage]
        # No overlap: a device runs one pass at a time.
        model.add_no_overlap(
            model.new_fixed_size_interval_var(start[p], pipeline.ticks(*p[:2]), f"run {p}") for p in own
        )
        # Memory: at any time no more activations than fit, each from the start of its F to the end of its W.
        activations = [
            model.new_interval_var(
                start["F", stage, j],
                model.new_int_var(0, horizon, f"duration {stage} {j}"),
                end["W", stage, j],
                f"activation {stage} {j}",
            )
            for j in batch
        ]
        model.add_cumulative(activations, [1] * len(activations), pipeline.capacity)
        # Symmetry: all micro-batches are alike, so passes of one kind may as well run in their order.
        for kind in "FBW":
            for j, following in pairwise(batch):
                model.add(start[kind, stage, following] >= end[kind, stage, j])
        model.add(makespan >= end["W", stage, batch[-1]])

    # Objective.
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise RuntimeError(f"no schedule found: {solver.status_name(status)}")
    found = {p: solver.value(one) for p, one in start.items()}
    return round(solver.objective_value), round(solver.best_objective_bound), found


if __name__ == "__main__":
    ticks, bound, starts = optimal_schedule(START)
    print(f"makespan {ticks / 2} ms, no schedule below {bound / 2} ms")
    for device in START.stages:
        own = sorted((begin, f"{kind}{j}") for (kind, stage, j), begin in starts.items() if stage == device)
        print(f"device {device}: {' '.join(name for _, name in own)}")
