"""What `new --from` says of the plan file that it wrote: parameters, and whether they fit."""

from __future__ import annotations

from fractions import Fraction
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
    # The first rank of 1F1B has as many micro-batches in flight as there are ranks, each of its share of the layers.
    kept = (min((way.keeps for way in layer.recompute), default=Fraction(1)) for layer in plan.model.sequence)
    held = float(sum(layer.activation * share for layer, share in zip(plan.model.sequence, kept, strict=True)))
    if mean <= room < mean + held:
        line += (
            f"; with all recomputed 1F1B holds {held:.1f} GiB more on the first rank: hardly any plan fits; more "
            "pipeline ranks, or --tensor, --expert and --data larger"
        )
    if mean > room:
        least = ceil(state / capacity[0])
        line += f": no plan fits; at least {least} pipeline ranks hold it, or --tensor, --expert and --data larger"
    return [*lines, line, "next: pipesched compare, then pipesched plan, with this file"]
