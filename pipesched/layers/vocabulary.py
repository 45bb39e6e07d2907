"""A vocabulary split over all devices: parts of embedding and head, apart from the stages of all other layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from math import lcm

from pipesched.errors import BadInput
from pipesched.layers.addition import Addition
from pipesched.layers.fixed_module import FixedModule, FixedStage, Joins
from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model
from pipesched.layers.plan_problem import PlanProblem
from pipesched.layers.roles import Role, role_of
from pipesched.layers.stage_costs import StageCosts
from pipesched.problem.quantities import DeviceId


class Vocabulary(StrEnum):
    """Placement of embedding and head.

    `ONE`: in the stage that has them. `SHARED`: split evenly over all devices. `FREE`: whichever of these is better.
    """

    ONE = "one"
    SHARED = "shared"
    FREE = "free"


def _without_vocabulary(model: Model) -> tuple[Model, tuple[LayerType, ...]]:
    """Return the model without its embedding and head, and these layers."""
    others = [layer for layer in model.layers if not is_vocabulary(layer.name)]
    others[:1] = [replace(layer, with_previous=False) for layer in others[:1]]
    return replace(model, layers=tuple(others)), tuple(layer for layer in model.layers if is_vocabulary(layer.name))


def is_vocabulary(name: str) -> bool:
    """True if a layer of this name is an embedding or a head."""
    return role_of(name) in (Role.EMBEDDING, Role.HEAD)


@dataclass(frozen=True)
class SharedVocabulary(Addition):
    """An embedding, a head, or both, of which every device has an equal part. `whole` are these layers undivided."""

    whole: tuple[LayerType, ...]

    @property
    def layers(self) -> tuple[LayerType, ...]:
        """Embedding and head, whole."""
        return self.whole

    def modules(self, plan: PlanProblem, /) -> tuple[FixedModule, ...]:
        """Return a module for each shared layer, with a part on every device.

        Parts of the head run after the stages, others before.
        """
        devices = range(plan.cluster.devices)
        return tuple(
            FixedModule(
                layer,
                Joins.PARTS_AFTER if role_of(layer.name) is Role.HEAD else Joins.PARTS_BEFORE,
                parts=tuple(
                    FixedStage(device, Fraction(layer.count, len(devices)), _part_of(layer, plan, device))
                    for device in devices
                ),
            )
            for layer in self.whole
        )

    def of_settings(self, _plan: PlanProblem, /) -> PlanProblem:
        """Raise `BadInput`, since no setting cuts these layers over all devices."""
        raise BadInput("vocabulary shared; allowed: one, or free")


@dataclass(frozen=True)
class FreeVocabulary(Addition):
    """The open choice of a plan: embedding and head in one stage each, or in equal parts on all devices."""

    def open_decisions(self) -> Mapping[str, Callable[[PlanProblem], PlanProblem]]:
        """Return by name the two functions that decide the choice in a plan problem.

        `vocabulary one` puts embedding and head in one stage each, `vocabulary shared` shares them.
        """
        return {"vocabulary one": self.of_settings, "vocabulary shared": lambda plan: sharing(self.of_settings(plan))}

    def of_settings(self, plan: PlanProblem, /) -> PlanProblem:
        """Return the plan problem with embedding and head in one stage each."""
        return replace(plan, additions=tuple(one for one in plan.additions if one != self))


def sharing(plan: PlanProblem) -> PlanProblem:
    """Return the plan problem in which every device has a part of embedding and head.

    Its `tick` and `resolution` are as much finer as parts need, and a partition that is given (`counts`) is dropped.
    """
    model, shared = _without_vocabulary(plan.model)
    finer = lcm(*(cluster.devices for _, cluster in plan.clusters or (("", plan.cluster),)))
    return replace(
        plan,
        model=model,
        additions=(*plan.additions, SharedVocabulary(shared)),
        counts=None,
        tick=plan.tick / finer,
        resolution=plan.resolution / finer,
    )


def shared_of(plan: PlanProblem) -> tuple[LayerType, ...]:
    """Return the layers of which every device has a part; empty if there are none."""
    return next((one.whole for one in plan.additions if isinstance(one, SharedVocabulary)), ())


def _part_of(layer: LayerType, plan: PlanProblem, device: DeviceId) -> StageCosts:
    """Return the costs of a device's equal part of a layer, of all `count` together, at the device's speed."""
    splits = plan.model.splittable
    parts, whole = Fraction(plan.cluster.devices, layer.count), layer.weight is None or not splits
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
    return costs.slowed(plan.cluster.slowness_of(device))
