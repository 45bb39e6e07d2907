"""A vocabulary split over all devices: parts of embedding and head, apart from the stages of all other layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction

from pipesched.layers.cluster import Cluster
from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model
from pipesched.layers.roles import Role, role_of
from pipesched.layers.stage_costs import StageCosts
from pipesched.problem.chains.with_modules import with_shared
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage


class Vocabulary(StrEnum):
    """Placement of embedding and head: in the stage that has them, or split evenly over all devices."""

    ONE = "one"
    SHARED = "shared"
    FREE = "free"


def without_vocabulary(model: Model) -> tuple[Model, tuple[LayerType, ...]]:
    """Return the model without its embedding and head, and these layers."""
    others = [layer for layer in model.layers if not is_vocabulary(layer.name)]
    others[:1] = [replace(layer, with_previous=False) for layer in others[:1]]
    return replace(model, layers=tuple(others)), tuple(layer for layer in model.layers if is_vocabulary(layer.name))


def is_vocabulary(name: str) -> bool:
    """True if a layer of this name is an embedding or a head."""
    return role_of(name) in (Role.EMBEDDING, Role.HEAD)


def with_vocabulary(trunk: Problem, layers: Sequence[LayerType], stage: Callable[[LayerType, int], Stage]) -> Problem:
    """Return the problem of a trunk (of one chain) with a part of these layers on each device.

    `stage` makes the stage of a layer's part on a device. A head has two collectives a micro-batch, each as long as the
    transfer of its parts.
    """
    shared = [(layer.name, [stage(layer, device) for device in range(trunk.devices)]) for layer in layers]
    return with_shared(trunk, shared, [layer.name for layer in layers if role_of(layer.name) is Role.HEAD])


def part_of(layer: LayerType, cluster: Cluster, device: int, splits: bool) -> StageCosts:
    """Return the costs of a device's equal part of a layer, at the device's speed."""
    parts, whole = cluster.devices, layer.weight is None or not splits
    costs = StageCosts(
        forward=layer.forward / parts,
        backward=(layer.full_backward if whole else layer.backward) / parts,
        weight=(layer.weight or Fraction(0)) / parts if splits else None,
        fused=layer.full_backward / parts,
        memory=layer.memory / parts,
        activation=layer.activation / parts,
        freed=layer.freed_by_backward / parts if splits else Fraction(0),
        gather=layer.gather / parts,
        gathered=layer.gathered / parts,
        reduce=layer.reduce / parts,
        step=layer.step / parts,
        forward_only=layer.forward_only,
    )
    return costs.slowed(cluster.slowness_of(device))
