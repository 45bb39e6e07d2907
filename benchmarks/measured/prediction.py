"""What the product predicts of a measured row: the runtime's own cut and schedule, simulated, on derived durations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from benchmarks.measured.table import CONFIGS, Row
from heuristics.catalogue import HEURISTICS
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.model_configs.hardware_table import DEVICES
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted, plan_text
from pipesched.files.model_configs.read_config import read_config
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.even import some_counts
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.layers.roles import Role, role_of
from pipesched.results.plan import Candidate
from pipesched.results.plan_figures import step_time
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate


@dataclass(frozen=True)
class Prediction:
    """Seconds of a step, GiB at the peak, and those that a device has for it."""

    seconds: float
    peak: float
    capacity: float

    @property
    def fits(self) -> bool:
        return self.peak <= self.capacity


def predicted(row: Row, configs: Path = CONFIGS) -> Prediction:
    """The step of a row's layout, by the formulas."""
    plan = plan_of(row, configs)
    choice = Choice("linear" if row.chunks == 1 else "interleaved", row.chunks)
    counts = row.partition or some_counts(plan.model, row.pipeline * row.chunks)
    partition = _recomputing(plan, Partition(counts), row.recompute)
    problem = plan.problem(choice, partition)
    timeline = simulate(problem, HEURISTICS[row.schedule].order(problem))
    found = Candidate(choice, partition, timeline, row.schedule)
    assert plan.cluster.capacity is not None
    peak = max(float(amount) for amount in measure(timeline).peak_memory)
    return Prediction(float(step_time(plan, found).total) / 1000, peak, float(plan.cluster.capacity[0]))


def plan_of(row: Row, configs: Path = CONFIGS) -> PlanProblem:
    """The plan problem that `new --from` makes of the row's model and layout."""
    config = _config(configs / f"{row.model}.json")
    wanted = Wanted(
        row.pipeline, row.microbatches, row.gpu, DEVICES[row.gpu], row.sequence, row.microbatch_size, dict(row.sizes)
    )
    plan = plan_problem_from(read_yaml(plan_text(config, wanted, row.model), row.id), row.id)
    # Room is compared, not enforced: what is out of memory is predicted too.
    return replace(plan, choices=())


@cache
def _config(path: Path) -> ModelConfig:
    return read_config(str(path))


def _recomputing(plan: PlanProblem, partition: Partition, way: str) -> Partition:
    """With every layer that has the way recomputed in it; attention by itself keeps no scores where there are none."""
    if way == "none":
        return partition
    ways: list[tuple[Recomputed, ...]] = []
    for layers in partition.layers_of(plan.model):
        names = [layer.name for layer in layers if role_of(layer.name) in (Role.TRANSFORMER, Role.MTP)
                 and any(one.name == way for one in layer.recompute)]  # fmt: skip
        ways.append(tuple(Recomputed(name, way, names.count(name)) for name in dict.fromkeys(names)))
    return Partition(partition.counts, tuple(ways))
