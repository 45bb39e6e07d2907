"""What the product predicts of a measured row: the runtime's own cut and schedule, simulated, on derived durations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from benchmarks.measured.table import CONFIGS, Row
from heuristics.catalogue import HEURISTICS
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.model_configs.hardware_table import DEVICES, Device
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted, plan_text
from pipesched.files.model_configs.read_config import read_config
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.even import some_counts
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.layers.recompute_rule import MODULES, modules_of
from pipesched.layers.roles import Role, role_of
from pipesched.problem.problem import Objective
from pipesched.results.plan import Candidate
from pipesched.results.plan_figures import step_time
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate

_DTYPES = {"fp8-cs": "fp8", "float8+asyncTP": "fp8"}
# Their authors run them with optimizer post-validation: devices begin the next step each on its own.
_POST_VALIDATED = ("zb-1p", "zb-2p")


@dataclass(frozen=True)
class Prediction:
    """Seconds of a step, GiB at the peak, and those that a device has for it."""

    seconds: float
    peak: float
    capacity: float

    @property
    def fits(self) -> bool:
        return self.peak <= self.capacity


def predicted(row: Row, configs: Path = CONFIGS, devices: Mapping[str, Device] = DEVICES) -> Prediction:
    """The step of a row's layout, by the formulas and the rates of devices."""
    plan = plan_of(row, configs, devices)
    choice = Choice("linear" if row.chunks == 1 else "interleaved", row.chunks)
    counts = row.partition or some_counts(plan.model, row.pipeline * row.chunks)
    own = training_of(row).get("recompute", [row.recompute])
    assert isinstance(own, list)
    partition = _recomputing(plan, Partition(counts), own[0])
    problem = plan.problem(choice, partition)
    timeline = simulate(problem, HEURISTICS[row.schedule].order(problem))
    found = Candidate(choice, partition, timeline, row.schedule)
    assert plan.cluster.capacity is not None
    peak = max(float(amount) for amount in measure(timeline).peak_memory)
    return Prediction(float(step_time(plan, found).total) / 1000, peak, float(plan.cluster.capacity[0]))


def training_of(row: Row) -> dict[str, object]:
    """What the table says of training, as keys of a plan file's section `model`."""
    found: dict[str, object] = {"dtype": _DTYPES.get(row.precision, row.precision), "flash": row.flash}
    if "grad_reduce_in_fp32=False" in row.runtime or "gradients in 16 bit" in row.runtime:
        found["gradient_bytes"] = 2
    if "precision-aware optimizer" in row.runtime:
        found["optimizer_bytes"] = 8
    if match := re.search(r"recompute (?:of )?([\w, and]+?) not expressible|recompute of ([\w, ]+)", row.runtime):
        words = re.findall(r"\w+", match[1] or match[2])
        found["recompute"] = ["+".join(sorted({*words} & {*MODULES}))]
    if "FULL_SHARD" in row.runtime or "FSDP as" in row.runtime or "FSDP shards" in row.runtime:
        found["sharding"] = "parameters"
    elif "SHARD_GRAD_OP" in row.runtime:
        found["sharding"] = "gradients"
    if not row.sequence_parallel and dict(row.sizes)["tensor"] > 1:
        found["sequence"] = False
    return found


def plan_of(row: Row, configs: Path = CONFIGS, devices: Mapping[str, Device] = DEVICES) -> PlanProblem:
    """The plan problem that `new --from` makes of the row's model and layout."""
    config = _config(configs / f"{row.model}.json")
    wanted = Wanted(
        row.pipeline, row.microbatches, row.gpu, devices[row.gpu], row.sequence, row.microbatch_size, dict(row.sizes),
        training=training_of(row),
    )  # fmt: skip
    plan = plan_problem_from(read_yaml(plan_text(config, wanted, row.model), row.id), row.id)
    # Room is compared, not enforced: what is out of memory is predicted too.
    return replace(plan, choices=(), objective=Objective.SPAN if row.schedule in _POST_VALIDATED else plan.objective)


@cache
def _config(path: Path) -> ModelConfig:
    return read_config(str(path))


def _recomputing(plan: PlanProblem, partition: Partition, way: str) -> Partition:
    """With every layer that has the way, or some of its modules, recomputed in it."""
    if way == "none":
        return partition
    modules, ways = modules_of(way), list[tuple[Recomputed, ...]]()
    for layers in partition.layers_of(plan.model):
        own: dict[tuple[str, str], int] = {}
        for layer in layers:
            has = [one.name for one in layer.recompute if one.name == way or modules_of(one.name) & modules]
            if has and role_of(layer.name) in (Role.TRANSFORMER, Role.MTP):
                own[layer.name, has[0]] = own.get((layer.name, has[0]), 0) + 1
        ways.append(tuple(Recomputed(*key, number) for key, number in own.items()))
    return Partition(partition.counts, tuple(ways))
