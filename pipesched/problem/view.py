"""A pipeline read off a task network: stages on devices, chains, and what the passes of one micro-batch cost.

`pipeline_of` sees each pass as one box, for heuristics and for what is added up by pass; `is_pipeline` says whether
that is all of the network, so that what is proved of the pipeline is proved of the network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from pipesched.problem.network.task_network import Mode, PassType, TaskNetwork, TaskTemplate
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.placement import Placement


@dataclass(frozen=True)
class PipelineView:
    """A pipeline of equal micro-batches, every pass one task of its device, all of which a device runs one at a time.

    `ticks` are the durations of the passes of a micro-batch, by kind and stage; `splits` says whether backwards may run
    as B and W. `placement` has the device of each stage and the chains, `microbatches_of` the micro-batches of each
    stage. `arrivals[s]` are the ticks that an activation takes from the stage before, `returns[s]` those that a
    gradient takes from the stage after; 0 at the ends of a chain. `blocks[s]` are the ticks of a forward of the stage
    that runs as one block with a full backward of its device, for stages that may. `held_in_flight[s]` is what a
    micro-batch holds from its forward's start to its backward's end, of it `held_for_weight[s]` until the end of its W,
    in the memory's integers; `room[d]` is what device d has for that, None where it is unlimited.
    """

    ticks: Mapping[PassType, int]
    splits: bool
    placement: Placement
    microbatches_of: tuple[range, ...]
    arrivals: tuple[int, ...]
    returns: tuple[int, ...]
    blocks: Mapping[int, int]
    held_in_flight: tuple[int, ...]
    held_for_weight: tuple[int, ...]
    room: tuple[int | None, ...]

    @property
    def devices(self) -> int:
        return self.placement.devices

    @property
    def stages(self) -> range:
        return range(self.placement.stages)

    def freed_by_backward(self, stage: int) -> int:
        """Memory that a micro-batch's B gives back; negative where it takes more."""
        return self.held_in_flight[stage] - self.held_for_weight[stage]

    def lag(self, sender: int, receiver: int) -> int:
        """Ticks from a pass's end to its tensor's arrival at a neighbour on the chain: activation, or gradient back."""
        return self.arrivals[receiver] if self.placement.next[sender] == receiver else self.returns[receiver]

    def split_ticks(self, stage: int) -> int | None:
        """Ticks of B directly followed by W; None where backwards are never split."""
        return self.ticks[B, stage] + self.ticks[W, stage] if self.splits else None

    def least_backward(self, stage: int) -> int:
        """The least ticks of a backward in any schedule, in one pass or in two, alone in their slots."""
        split, whole = self.split_ticks(stage), self.ticks[BW, stage]
        return whole if split is None else min(whole, split)

    def least_work(self, stage: int) -> int:
        """The least ticks that one micro-batch's passes of this stage take in any schedule, alone in their slots."""
        return self.ticks[F, stage] + self.least_backward(stage)

    def saved_by_fusing(self, stage: int) -> int:
        """By how many ticks a full backward is shorter than B and W; 0 where it is not or none is split."""
        return max(0, (self.split_ticks(stage) or 0) - self.ticks[BW, stage])

    def saved_by_block(self, forward: int, backward: int) -> int:
        """By how many ticks a block of these stages, both of one device, is shorter than its two passes in turn.

        0 where it is not, or where there is no such block.
        """
        in_turn = self.ticks[F, forward] + self.ticks[BW, backward]
        return max(0, in_turn - self.blocks.get(forward, in_turn))

    def pairs_on_devices(self) -> Iterator[tuple[int, int]]:
        """All pairs of stages of one device, of a forward and a backward that may meet there."""
        for stages in self.placement.stages_of:
            yield from product(stages, stages)


def is_pipeline(network: TaskNetwork) -> bool:
    """False where passes are several tasks or occupy several streams of a device, where activations are copied or
    recomputed, parameters are gathered or reduced, micro-batches are unequal or wait for others, or passes have
    workspace."""
    return network.one_task_each and not network.scale and not network.has_pass_memory


def pipeline_of(network: TaskNetwork) -> PipelineView:
    """The forwards and backwards of a network, each pass as one box that ends when its last task may, at the least.

    Without copies, recomputations, what runs for parameters and what waits for other micro-batches; of unequal
    micro-batches it is one of factor 1.
    """
    previous, arrivals, returns = _walks(network)
    stages, following = range(len(network.device_of)), {before: stage for stage, before in previous.items()}
    walked = tuple(network.numbers[F, stage] for stage in stages)

    def chain(stage: int | None) -> Iterator[int]:
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
        network.held_in_flight,
        network.held_for_weight,
        network.room,
    )


def _ticks(tasks: Sequence[TaskTemplate], ends: Sequence[int]) -> int:
    """From the start of a pass to its end; several tasks that end it run side by side where their resources differ."""
    if len(ends) == 1:
        return sum(task.ticks for task in tasks[: ends[0] + 1])
    on = Counter[object]()
    for task in tasks:
        on[task.resource] += task.ticks
    return max(on.values())


def _walks(network: TaskNetwork) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """By stage: the one before it on its chain, and the lags of the tensors that it waits for, down and back."""
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
