"""What `new --from` says of the plan file that it wrote: parameters, and whether they fit."""

from __future__ import annotations

from math import ceil

from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted, sizes_of
from pipesched.layers.plan_problem import PlanProblem


def summary(plan: PlanProblem, config: ModelConfig, wanted: Wanted) -> list[str]:
    """The model's parameters, the devices in all, and the model state of a device beside its memory."""
    sizes = sizes_of(config, wanted)
    inside = sizes["tensor"] * sizes["context"] * sizes["data"]
    lines = [*plan.assumptions[:1], *config.notes]
    lines.append(f"{wanted.devices} pipeline ranks of {inside} x {wanted.hardware}: {wanted.devices * inside} in all")
    state, capacity = sum(layer.memory for layer in plan.model.sequence), plan.cluster.capacity
    assert capacity is not None
    mean, room = float(state / wanted.devices), float(capacity[0])
    line = f"model state: {mean:.1f} GiB a device on average, of {room:g} GiB"
    if mean > room:
        least = ceil(state / capacity[0])
        line += f": no plan fits; at least {least} pipeline ranks hold it, or --tensor, --expert and --data larger"
    return [*lines, line, "next: pipesched compare, then pipesched plan, with this file"]
