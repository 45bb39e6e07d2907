"""Placement: the device of each stage, and the chains of stages that micro-batches traverse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise

from pipesched.problem.quantities import ChainId, DeviceId, StageId


@dataclass(frozen=True)
class Placement:
    """The device of each stage, and the chains of stages.

    `stage_device[s]` is the device of stage s. Each chain lists the stages that a micro-batch traverses forwards, in
    order; its backward traverses them in reverse. Of the named placements only the bidirectional one has several
    chains; pieces, modules, replicas and unequal micro-batches also add chains. The name is a label: placements are
    equal if their stages and chains are.
    """

    name: str = field(compare=False)
    devices: int
    stage_device: tuple[DeviceId, ...]
    chains: tuple[tuple[StageId, ...], ...]

    @property
    def stages(self) -> int:
        """The number of (virtual) stages; a stage that two devices run counts twice."""
        return len(self.stage_device)

    @cached_property
    def stages_of(self) -> tuple[tuple[StageId, ...], ...]:
        """The stages of each device, in stage order; a stage's position is its chunk number."""
        stages: list[list[int]] = [[] for _ in range(self.devices)]
        for stage, device in enumerate(self.stage_device):
            stages[device].append(stage)
        return tuple(map(tuple, stages))

    @cached_property
    def chain_index(self) -> tuple[ChainId, ...]:
        """The index in `chains` of the chain that each stage is on, by stage."""
        chain_of = {stage: number for number, chain in enumerate(self.chains) for stage in chain}
        return tuple(chain_of[stage] for stage in range(self.stages))

    @cached_property
    def previous(self) -> tuple[StageId | None, ...]:
        """The stage before each stage on its chain; None for a chain's first."""
        before: dict[int, int] = {b: a for chain in self.chains for a, b in pairwise(chain)}
        return tuple(before.get(stage) for stage in range(self.stages))

    @cached_property
    def next(self) -> tuple[StageId | None, ...]:
        """The stage after each stage on its chain; None for a chain's last."""
        after: dict[int, int] = {a: b for chain in self.chains for a, b in pairwise(chain)}
        return tuple(after.get(stage) for stage in range(self.stages))

    def walks(self, microbatches: int, shares: Sequence[int] = ()) -> tuple[range, ...]:
        """Return the micro-batches of each chain, as consecutive ranges of the numbers from 0 to `microbatches` - 1.

        `shares` are their numbers by chain. If it is empty the shares are equal, rounded up: later chains get fewer, or
        none.
        """
        shares = shares or (-(-microbatches // len(self.chains)),) * len(self.chains)
        ends = [min(end, microbatches) for end in accumulate(shares, initial=0)]
        return tuple([range(start, end) for start, end in pairwise(ends)])

    def on_device_of(self, stage: StageId) -> tuple[StageId, ...]:
        """Return all stages on the device of `stage`, in stage order, `stage` included."""
        return self.stages_of[self.stage_device[stage]]

    def same_on_all_chains(self, of_device: Sequence[object]) -> bool:
        """Return True if for every k the k-th stages of all chains have devices with the same entry in `of_device`.

        `of_device` has an entry for each device. All chains must be equally long.
        """
        places = zip(*self.chains, strict=True)
        return all(len({of_device[self.stage_device[stage]] for stage in place}) == 1 for place in places)

    def chunk(self, stage: StageId) -> int:
        """Return the index of a stage among its device's stages, from 0."""
        return self.on_device_of(stage).index(stage)


def linear(devices: int) -> Placement:
    """Return the placement with stage s on device s (GPipe, 1F1B, Zero Bubble)."""
    return Placement("linear", devices, tuple(range(devices)), (tuple(range(devices)),))


def interleaved(devices: int, chunks: int) -> Placement:
    """Return the placement of `devices` * `chunks` stages with stage s on device s mod `devices`.

    This is Megatron's virtual pipeline, arXiv 2104.04473, section 2.2.
    """
    stages = devices * chunks
    return Placement("interleaved", devices, tuple(s % devices for s in range(stages)), (tuple(range(stages)),))


def wave(devices: int, chunks: int) -> Placement:
    """Return the placement down the devices, up again, and so on, once for each chunk (Hanayo, arXiv 2308.15762)."""
    down, up = tuple(range(devices)), tuple(reversed(range(devices)))
    stage_device = tuple(device for chunk in range(chunks) for device in (up if chunk % 2 else down))
    return Placement("wave", devices, stage_device, (tuple(range(devices * chunks)),))


def v_shape(devices: int) -> Placement:
    """Return the placement down the devices and up again, two chunks each (Controllable Memory, arXiv 2405.15362)."""
    shape = wave(devices, 2)
    return Placement("v-shape", devices, shape.stage_device, shape.chains)


def bidirectional(devices: int) -> Placement:
    """Return the placement with every stage on two devices, one for each direction (DualPipe, Chimera).

    Stages 0..p-1 run down the devices, stages p..2p-1 up; stage p+i has the same layers as stage i, on device p-1-i.
    The first half of the micro-batches (the larger one if their number is odd) goes down.
    """
    down, up = tuple(range(devices)), tuple(range(devices, 2 * devices))
    return Placement("bidirectional", devices, (*down, *reversed(down)), (down, up))


def explicit(devices: int, stage_device: Sequence[DeviceId]) -> Placement:
    """Return the placement with a given device for each stage, traversed in stage order."""
    return Placement("explicit", devices, tuple(stage_device), (tuple(range(len(stage_device))),))


# The named placements, from the number of devices and of chunks a device.
PLACEMENTS: Mapping[str, Callable[[int, int], Placement]] = {
    "linear": lambda devices, _: linear(devices),
    "interleaved": interleaved,
    "v-shape": lambda devices, _: v_shape(devices),
    "wave": wave,
    "bidirectional": lambda devices, _: bidirectional(devices),
}
# Stages a device holds under those that leave no choice.
FIXED_CHUNKS = {"linear": 1, "v-shape": 2, "bidirectional": 2}
