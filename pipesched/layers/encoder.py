"""An encoder, such as a vision tower, whose output the model's first stage needs, and its possible placements."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from pipesched.layers.cluster import Cluster
from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model
from pipesched.layers.stage_costs import StageCosts, costs_of
from pipesched.problem.chains.with_modules import with_modules
from pipesched.problem.features.module import Module
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage


class EncoderPlacement(StrEnum):
    """Placement of an encoder: the model's first device, a device of its own, cut over all devices, or a copy on
    each."""

    FIRST_STAGE = "first-stage"
    OWN_DEVICE = "own-device"
    IN_THE_BUBBLES = "in-the-bubbles"
    REPLICATED = "replicated"
    FREE = "free"


class Encoder(NamedTuple):
    """An encoder of `layer.count` equal layers.

    One pass serves `serves` micro-batches, and costs are those of a pass.
    """

    layer: LayerType
    serves: int
    placement: EncoderPlacement

    def copies(self, devices: int) -> list[list[tuple[int, int]]]:
        """Return for each copy of the encoder the device and the number of layers of each of its stages."""
        count = self.layer.count
        if self.placement is EncoderPlacement.REPLICATED:
            return [[(device, count)] for device in range(devices)]
        if self.placement is EncoderPlacement.OWN_DEVICE:
            return [[(devices - 1, count)]]
        stages = min(count, devices) if self.placement is EncoderPlacement.IN_THE_BUBBLES else 1
        return [[(device, (count + stages - 1 - device) // stages) for device in range(stages)]]


class EncoderStage(NamedTuple):
    """A stage of an encoder: its device, number of layers, and costs."""

    device: int
    layers: int
    costs: StageCosts


def encoder_stages(encoder: Encoder, model: Model, cluster: Cluster) -> list[EncoderStage]:
    """Return the encoder's stages, copy by copy; their costs include the model's overheads of a stage."""
    return [
        EncoderStage(
            device, number, costs_of(model, [encoder.layer.alone] * number).slowed(cluster.slowness_of(device))
        )
        for copy in encoder.copies(cluster.devices)
        for device, number in copy
    ]


def with_encoder(trunk: Problem, encoder: Encoder, where: tuple[int, ...], stages: tuple[Stage, ...]) -> Problem:
    """Return the problem of a trunk (of one chain) and an encoder, whose `stages` run on the devices `where`."""
    copies = len(encoder.copies(trunk.devices))
    length, fed = len(stages) // copies, (trunk.placement.chains[0][0],)
    module = Module(encoder.layer.name, trunk.placement.stages, length, copies, fed, encoder.serves)
    chains = module._replace(first=0).chains
    own = replace(trunk, placement=Placement("", trunk.devices, where, chains), stages=stages, pools=())
    return with_modules(trunk, [(module, own)])
