"""Modules of a plan problem: stages that no partition changes, and how they join the stages of a partition."""

from __future__ import annotations

from enum import Enum, auto
from fractions import Fraction
from typing import NamedTuple

from pipesched.layers.layer import LayerType
from pipesched.layers.stage_costs import StageCosts
from pipesched.problem.quantities import DeviceId


class Joins(Enum):
    """Order between the passes of a module and those of the stages that a partition makes.

    `FEEDS`: the module's chains take its passes in turn, and each pass feeds the first stage. Otherwise every device
    runs a part of each pass, and all parts run before the first stage's forward and after its backward
    (`PARTS_BEFORE`), or between the last stage's forward and its backward (`PARTS_AFTER`).
    """

    # Chains take the module's passes in turn; each pass feeds the first stage.
    FEEDS = auto()
    # A part of every pass on each device: all of them before the first stage's forward, and after its backward.
    PARTS_BEFORE = auto()
    # A part of every pass on each device: all of them between the last stage's forward and its backward.
    PARTS_AFTER = auto()


class FixedStage(NamedTuple):
    """A stage that no partition changes: its device, its number of layers, and the costs of a pass on that device.

    The number is a fraction for a part of a layer.
    """

    device: DeviceId
    layers: Fraction
    costs: StageCosts


class FixedModule(NamedTuple):
    """Stages that no partition changes, all of one layer type.

    One that `FEEDS` has a chain of stages for each of its equal copies, the others have equal `parts`, that of device d
    at index d. One pass serves `serves` micro-batches.
    """

    layer: LayerType
    joins: Joins
    chains: tuple[tuple[FixedStage, ...], ...] = ()
    parts: tuple[FixedStage, ...] = ()
    serves: int = 1

    @property
    def stages(self) -> tuple[FixedStage, ...]:
        """All stages, chain by chain, or all parts."""
        return (*(stage for chain in self.chains for stage in chain), *self.parts)

    @property
    def of_one_pass(self) -> tuple[FixedStage, ...]:
        """The stages that one pass runs on: all parts, or one of the chains."""
        return self.parts or self.chains[0]
