"""A partition as settings of runtimes are written from it: each stage's device, layers by role, and recomputation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.recompute_rule import selections
from pipesched.layers.roles import Role, check_places, role_of
from pipesched.layers.training_step import TrainingStep
from pipesched.problem.placement import Placement
from pipesched.problem.quantities import DeviceId


class StageCounts(NamedTuple):
    """The number of layers of each role on a stage, which is all that settings of a partition express.

    `layers` counts transformer layers, `mtp` those of multi-token prediction, `embedding` and `head` the model's ends.
    """

    embedding: int
    layers: int
    mtp: int
    head: int


class Run(NamedTuple):
    """Consecutive layers of one name on a stage: `layers` is their number.

    `recomputed` has by the name of a recomputation mode the number of these layers that use it; 0 or no entry for none.
    """

    name: str
    layers: int
    recomputed: Mapping[str, int]

    @property
    def role(self) -> Role:
        return role_of(self.name)


@dataclass(frozen=True)
class StageLayers:
    """One stage: its device, and its runs of layers, first to last.

    `forward_only` if all of them are frozen, and none before them trains.
    """

    device: DeviceId
    runs: tuple[Run, ...]
    forward_only: bool = False

    def count(self, role: Role) -> int:
        """Return the number of layers of a role."""
        return sum(run.layers for run in self.runs if run.role is role)

    @property
    def recompute_modes(self) -> tuple[str, ...]:
        """The names of the recomputation modes that some of its layers use."""
        return tuple(dict.fromkeys(mode for run in self.runs for mode, layers in run.recomputed.items() if layers))


@dataclass(frozen=True)
class StagedModel:
    """A partition on a placement of one chain; `stages` are in its order.

    `name` is the plan's name, `schedule` that of the order; None for an order of our own. An embedding or a head that
    the model does not list is assumed on the first or the last stage. Each of `selections` has, for one list of modules
    to recompute everywhere, the recomputation mode of each type of layer by its name. `figures` are lines for the head
    of a file. `step` has the training sizes of the plan's file; None if it lists layers. `trains` is False if no layer
    has a backward. `decides_recomputation`: some of its layers can be recomputed, so that the plan decides for all of
    them.
    """

    placement: Placement
    microbatches: int
    stages: tuple[StageLayers, ...]
    schedule: str | None = None
    name: str = field(default="plan")
    selections: tuple[Mapping[str, str], ...] = ()
    figures: tuple[str, ...] = ()
    step: TrainingStep | None = None
    decides_recomputation: bool = False
    trains: bool = True

    @property
    def devices(self) -> int:
        return self.placement.devices

    @property
    def counts(self) -> tuple[StageCounts, ...]:
        """The layer counts of every stage, in order; embedding (first) and head (last) are included, listed or not."""
        last = len(self.stages) - 1
        return tuple(
            StageCounts(int(at == 0), stage.count(Role.TRANSFORMER), stage.count(Role.MTP), int(at == last))
            for at, stage in enumerate(self.stages)
        )

    @property
    def layers(self) -> int:
        """The number of all transformer layers."""
        return sum(stage.count(Role.TRANSFORMER) for stage in self.stages)

    @property
    def mtp(self) -> int:
        """The number of all multi-token prediction layers."""
        return sum(stage.count(Role.MTP) for stage in self.stages)


def staged(
    model: Model,
    partition: Partition,
    placement: Placement,
    microbatches: int,
    schedule: str | None = None,
    name: str = "plan",
    figures: Sequence[str] = (),
) -> StagedModel:
    """Return the stages of a partition; `BadInput` if the model's layers are not in an order that runtimes know.

    `partition` gives the layers of the stages of a chain; a placement of two chains has each of them twice, and only
    the first is kept: formats refuse such a placement by its chains. `schedule` is the name of the order, None for one
    of our own, `name` the plan's, `figures` are lines for the head of a file.
    """
    check_places([layer.name for layer in model.sequence])
    layers_of_stages = partition.layers_of(model)
    stages = tuple(
        StageLayers(
            placement.stage_device[stage],
            _runs(layers, partition.recomputed_on(at)),
            bool(layers) and all(layer.forward_only for layer in layers),
        )
        for at, (stage, layers) in enumerate(zip(placement.chains[0], layers_of_stages, strict=True))
    )
    module_selections = tuple(selections(model.kinds))
    return StagedModel(
        placement,
        microbatches,
        stages,
        schedule,
        name,
        module_selections,
        tuple(figures),
        decides_recomputation=model.recomputes,
        trains=any(layer.trains for layer in model.layers),
    )


def _runs(layers: Sequence[LayerType], recomputed: Sequence[Recomputed]) -> tuple[Run, ...]:
    """Return the runs of consecutive layers of one name on a stage, with the layers recomputed in each.

    Where a name has several runs, recomputed layers fill the first of them, then the next.
    """
    left: Counter[tuple[str, str]] = Counter()
    for one in recomputed:
        left[one.layer, one.mode] += one.layers
    runs = []
    for name, group in groupby(layer.name for layer in layers):
        size = free = len(list(group))
        taken: dict[str, int] = {}
        for (layer, mode), wanted in left.items():
            if layer == name and (now := min(free, wanted)):
                taken[mode] = now
                left[layer, mode] -= now
                free -= now
        runs.append(Run(name, size, taken))
    return tuple(runs)
