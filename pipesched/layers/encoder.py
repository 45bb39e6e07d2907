"""An encoder, such as a vision tower, whose output the model's first stage needs, and its possible placements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import partial

from pipesched.errors import BadInput
from pipesched.layers.addition import Addition
from pipesched.layers.fixed_module import FixedModule, FixedStage, Joins
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import PlanProblem
from pipesched.layers.stage_costs import costs_of
from pipesched.problem.quantities import DeviceId


class EncoderPlacement(StrEnum):
    """Placement of an encoder on the devices of a pipeline.

    `FIRST_STAGE`: with the model's first stage. `OWN_DEVICE`: a device of its own. `IN_THE_BUBBLES`: cut over all
    devices, or over the first ones if it has fewer layers. `REPLICATED`: a copy on each device. `FREE`: any of these,
    as is best.
    """

    FIRST_STAGE = "first-stage"
    OWN_DEVICE = "own-device"
    IN_THE_BUBBLES = "in-the-bubbles"
    REPLICATED = "replicated"
    FREE = "free"


@dataclass(frozen=True)
class Encoder(Addition):
    """An encoder of `layer.count` equal layers.

    One pass serves `serves` micro-batches, and costs are those of a pass.
    """

    layer: LayerType
    serves: int
    placement: EncoderPlacement

    @property
    def own_devices(self) -> int:
        """1 if the encoder is placed on a device of its own, else 0."""
        return int(self.placement is EncoderPlacement.OWN_DEVICE)

    @property
    def layers(self) -> tuple[LayerType, ...]:
        """The layer of which the encoder has several, as the only entry."""
        return (self.layer,)

    def copies(self, devices: int) -> list[list[tuple[DeviceId, int]]]:
        """Return a list for each copy of the encoder, with (device, number of layers) for each of its stages in order.

        `devices` is the number of the trunk's devices; devices of the encoder alone have the following numbers. A
        placement that is `FREE` gives the copies of `FIRST_STAGE`.
        """
        count = self.layer.count
        if self.placement is EncoderPlacement.REPLICATED:
            return [[(device, count)] for device in range(devices)]
        if self.own_devices:
            return [[(devices, count)]]
        stages = min(count, devices) if self.placement is EncoderPlacement.IN_THE_BUBBLES else 1
        return [[(device, (count + stages - 1 - device) // stages) for device in range(stages)]]

    def modules(self, plan: PlanProblem, /) -> tuple[FixedModule, ...]:
        """Return the encoder's stages, in one module that feeds the first stage.

        Their costs include the model's overheads of a stage.
        """
        cluster = plan.all_devices
        chains = tuple(
            tuple(
                FixedStage(
                    device,
                    Fraction(number),
                    costs_of(plan.model, [self.layer.alone] * number).slowed(cluster.slowness_of(device)),
                )
                for device, number in copy
            )
            for copy in self.copies(plan.cluster.devices)
        )
        return (FixedModule(self.layer, Joins.FEEDS, chains, serves=self.serves),)

    def placed(self, plan: PlanProblem, where: EncoderPlacement) -> PlanProblem:
        """Return the plan problem with its encoder placed as `where` says; a device of its own is the last device.

        The other stages then have one device fewer, since the number of all devices, which must be equal, stays the
        same.
        """
        own = replace(self, placement=where)
        more = own.own_devices - self.own_devices
        cluster = plan.cluster.of_equal(plan.cluster.devices - more) if more else plan.cluster
        return replace(plan, cluster=cluster, additions=tuple(own if one == self else one for one in plan.additions))

    def open_decisions(self) -> Mapping[str, Callable[[PlanProblem], PlanProblem]]:
        """Return by name, for each possible placement of the encoder, the function that gives a plan problem it.

        A name is `encoder` with the placement's. Empty where the placement is given.
        """
        if self.placement is not EncoderPlacement.FREE:
            return {}
        return {
            f"encoder {where}": partial(self.placed, where=where)
            for where in EncoderPlacement
            if where is not EncoderPlacement.FREE
        }

    def of_settings(self, _plan: PlanProblem, /) -> PlanProblem:
        """Raise `BadInput`, since no setting places an encoder."""
        raise BadInput("an encoder; allowed: a model without, since no setting places one")


def encoder_of(plan: PlanProblem) -> Encoder | None:
    """Return the encoder of a plan problem; None if it has none."""
    return next((one for one in plan.additions if isinstance(one, Encoder)), None)
