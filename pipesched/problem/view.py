"""A task network seen as a plain pipeline: stages on devices, chains, and the costs of one micro-batch's passes.

`pipeline_of` sees each pass as one box, for heuristics and for sums over passes; `is_pipeline` is True if the network
is no more than that, so that proofs for the pipeline hold for the network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from pipesched.problem.network.task_network import Mode, PassType, TaskNetwork, TaskTemplate
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.placement import Placement
from pipesched.problem.quantities import MemorySteps, StageId, TaskPart, Ticks


@dataclass(frozen=True)
class PipelineView:
    """A pipeline of equal micro-batches in which every pass is one task of its device, which runs one task at a time.

    `ticks` are the durations of passes by kind and stage; `splits` is True if backwards may run as B and W. `placement`
    has the device of each stage and the chains, `microbatches_of` the micro-batches of each stage. `arrivals[s]` are
    the ticks that an activation takes from the stage before, `returns[s]` those that a gradient takes from the stage
    after; 0 at the ends of a chain. `blocks[f, b]` are the ticks of a forward of stage f run as one block with a full
    backward of stage b, for pairs that may. `memory_in_flight[s]` is the memory of a micro-batch from the start of
    F to the end of its backward, of which `memory_until_weight[s]` stays until the end of W, in units of the
    resolution; `room[d]` is device d's memory for it, None where unlimited.
    """

    ticks: Mapping[PassType, Ticks]
    splits: bool
    placement: Placement
    microbatches_of: tuple[range, ...]
    arrivals: tuple[Ticks, ...]
    returns: tuple[Ticks, ...]
    blocks: Mapping[tuple[StageId, StageId], Ticks]
    memory_in_flight: tuple[MemorySteps, ...]
    memory_until_weight: tuple[MemorySteps, ...]
    room: tuple[MemorySteps | None, ...]

    @property
    def devices(self) -> int:
        return self.placement.devices

    @property
    def stages(self) -> range:
        return range(self.placement.stages)

    def freed_by_backward(self, stage: StageId) -> MemorySteps:
        """Return the memory of one micro-batch that B frees, in steps; negative where B takes more than it frees.

        Where backwards are never split, it is all memory of the micro-batch, which BW frees.
        """
        return self.memory_in_flight[stage] - self.memory_until_weight[stage]

    def lag(self, sender: StageId, receiver: StageId) -> Ticks:
        """Return the ticks from a pass's end to the arrival of its tensor at a neighbouring stage on the chain.

        The tensor is an activation if `receiver` follows `sender` on the chain, else a gradient.
        """
        return self.arrivals[receiver] if self.placement.next[sender] == receiver else self.returns[receiver]

    def split_ticks(self, stage: StageId) -> Ticks | None:
        """Return the ticks of B directly followed by W; None where backwards are never split."""
        return self.ticks[B, stage] + self.ticks[W, stage] if self.splits else None

    def least_backward(self, stage: StageId) -> Ticks:
        """Return the least ticks of a backward in any schedule, split or fused, without blocks."""
        split, whole = self.split_ticks(stage), self.ticks[BW, stage]
        return whole if split is None else min(whole, split)

    def least_work(self, stage: StageId) -> Ticks:
        """Return the least ticks of one micro-batch's passes on a stage in any schedule, without blocks."""
        return self.ticks[F, stage] + self.least_backward(stage)

    def saved_by_fusing(self, stage: StageId) -> Ticks:
        """Return the ticks by which BW is shorter than B and W; 0 where it is not, or backwards are never split."""
        return max(0, (self.split_ticks(stage) or 0) - self.ticks[BW, stage])

    def saved_by_block(self, forward: StageId, backward: StageId) -> Ticks:
        """Return the ticks by which a block of a forward and a full backward is shorter than the two passes in turn.

        `forward` and `backward` are stages of one device. 0 where a block is no shorter, or there is none.
        """
        in_turn = self.ticks[F, forward] + self.ticks[BW, backward]
        return max(0, in_turn - self.blocks.get((forward, backward), in_turn))

    def least_block_of_forward(self, stage: StageId) -> Ticks | None:
        """Return the least ticks of a block with the stage's forward; None if there is none."""
        mates = self.placement.on_device_of(stage)
        return min((self.blocks[stage, mate] for mate in mates if (stage, mate) in self.blocks), default=None)

    def least_block_of_backward(self, stage: StageId) -> Ticks | None:
        """Return the least ticks of a block with the stage's full backward; None if there is none."""
        mates = self.placement.on_device_of(stage)
        return min((self.blocks[mate, stage] for mate in mates if (mate, stage) in self.blocks), default=None)

    def pairs_on_devices(self) -> Iterator[tuple[StageId, StageId]]:
        """Yield (stage of a forward, stage of a backward) for all pairs on one device, which a block might join."""
        for stages in self.placement.stages_of:
            yield from product(stages, stages)


def is_pipeline(network: TaskNetwork) -> bool:
    """Return True if the network is a plain pipeline of equal micro-batches.

    False if a single one of these holds: passes have several tasks or streams, activations may be offloaded or
    recomputed, parameters are gathered or reduced, micro-batches are unequal or wait for each other, passes have
    workspace or keep memory until the end.
    """
    return network.one_task_each and not network.scale and not network.has_pass_memory


def pipeline_of(network: TaskNetwork) -> PipelineView:
    """Return the forwards and backwards of a network, each pass as one box with its least duration.

    Copies, recomputations, passes for parameters and arcs between chains are left out; of unequal micro-batches it is
    the pipeline of one with factor 1.
    """
    previous, arrivals, returns = _walks(network)
    stages, following = range(len(network.device_of)), {before: stage for stage, before in previous.items()}
    walked = tuple(network.numbers[F, stage] for stage in stages)

    def chain(stage: StageId | None) -> Iterator[StageId]:
        while stage is not None:
            yield stage
            stage = following.get(stage)

    firsts = [stage for stage in stages if stage not in previous]
    firsts.sort(key=lambda stage: (walked[stage].start, walked[stage].stop))
    return PipelineView(
        {of: _ticks(tasks, network.ends[of]) for of, tasks in network.tasks.items() if of[0] in (F, B, W, BW)},
        Mode.SPLIT in network.modes,
        Placement("", len(network.room), network.device_of, tuple(tuple(chain(first)) for first in firsts)),
        walked,
        tuple(arrivals.get(stage, 0) for stage in stages),
        tuple(returns.get(stage, 0) for stage in stages),
        network.blocks,
        network.memory_in_flight,
        network.memory_until_weight,
        network.room,
    )


def _ticks(tasks: Sequence[TaskTemplate], ends: Sequence[TaskPart]) -> Ticks:
    """Return the least ticks from a pass's start to the end of the last task in `ends` (indices of tasks).

    Tasks that may run in parallel do so on different resources.
    """
    if len(ends) == 1:
        return sum(task.ticks for task in tasks[: ends[0] + 1])
    on = Counter[object]()
    for task in tasks:
        on[task.resources] += task.ticks
    return max(on.values())


def _walks(network: TaskNetwork) -> tuple[dict[StageId, StageId], dict[StageId, Ticks], dict[StageId, Ticks]]:
    """Return three maps by stage: the stage before it, the transfer ticks of its activation, and of its gradient.

    The stage before is that on its chain. A stage at the beginning or end of a chain is missing in the maps that do not
    apply.
    """
    previous, arrivals, returns = dict[int, int](), dict[int, int](), dict[int, int]()
    for (kind, stage), needs in network.needs.items():
        for need in needs if kind in (F, BW) else ():
            sender = need.alternatives[0][1]
            if sender == stage or need.share is not None:
                continue
            if kind is F:
                previous[stage], arrivals[stage] = sender, need.lag
            else:
                returns[stage] = need.lag
    return previous, arrivals, returns
