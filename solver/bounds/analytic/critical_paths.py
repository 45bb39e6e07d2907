"""Least durations of passes in ticks, and least times along paths between passes across devices, for any schedule."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

from pipesched.problem.passes import BW, B, F
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.problem.view import PipelineView


class Paths:
    """Least durations and path lengths of a plain pipeline (`view`) in ticks, as lists by stage.

    `forward` is the least duration of a forward, `gradient` of the pass that computes the input's gradient (B, or BW),
    and `backward` of a whole backward (B and W, or BW) on its device. A pass in an overlapped block lasts as long as
    the block, which may be less than it takes alone; the least durations allow for that. Of one micro-batch, transfers
    included, `head` is from time 0 to the forward's start, `round_trip` from its end to the backward's start, and
    `back` from the gradient's end to that on the chain's first stage. Of a problem that is not plain all but its
    forwards and backwards is left out; `ValueError` for unequal micro-batches.
    """

    def __init__(self, problem: Problem) -> None:
        if problem.network.scale:
            raise ValueError("unequal micro-batches are bounded as chains (`without_scale`)")
        self.view = problem.pipeline
        least = [durations(problem, stage, self.view.placement.on_device_of(stage)) for stage in self.view.stages]
        self.forward, self.gradient, self.backward = ([one[kind] for one in least] for kind in range(3))
        self._walk()

    def _walk(self) -> None:
        """Compute `head`, `back` and `round_trip`, least ticks along every chain as lists by stage."""
        view, stages = self.view, len(self.view.stages)
        # From time 0 to the earliest start of the stage's first forward.
        self.head = [0] * stages
        # From the end of a gradient pass of the stage to the end of the same micro-batch's on the chain's first stage.
        self.back = [0] * stages
        # From the end of a forward of the stage to the earliest start of the same micro-batch's backward on it.
        self.round_trip = [0] * stages
        for chain in view.placement.chains:
            for one, other in pairwise(chain):
                self.head[other] = self.head[one] + self.forward[one] + view.lag(one, other)
                self.back[other] = view.lag(other, one) + self.gradient[one] + self.back[one]
            for one, other in zip(chain[-2::-1], chain[::-1], strict=False):
                lags = view.lag(one, other) + view.lag(other, one)
                self.round_trip[one] = lags + self.forward[other] + self.gradient[other] + self.round_trip[other]

    def tail(self, stage: StageId) -> Ticks:
        """Return the least ticks from the end of a gradient pass (B or BW) on `stage` to the end of its micro-batch.

        That is the end of the micro-batch's whole backward on the first stage of the chain; 0 if `stage` is that stage.
        """
        return self.tail_until(stage, self.view.placement.chains[self.view.placement.chain_index[stage]][0])

    def tail_until(self, stage: StageId, until: StageId) -> Ticks:
        """Return the least ticks from the end of a gradient pass on `stage` to the end of the backward on `until`.

        The gradient pass is B or BW. Both are of one micro-batch, and `until` is `stage` (then 0) or a stage before it
        on the chain.
        """
        return (
            0 if stage == until else self.back[stage] - self.back[until] - self.gradient[until] + self.backward[until]
        )

    def away(self, stages: list[StageId]) -> tuple[Ticks, Ticks]:
        """Return the least ticks that a micro-batch is away from a device between its first and its last pass there.

        The first number is for its forwards, the second for its gradient passes (B or BW); the passes on the device do
        not count. `stages` are the device's stages of one chain, in chain order.
        """
        pairs = list(pairwise(stages))
        forwards = sum(self.head[b] - self.head[a] - self.forward[a] for a, b in pairs)
        gradients = sum(self.back[b] - self.back[a] - self.gradient[a] for a, b in pairs)
        return forwards, gradients

    def work(self, device: DeviceId) -> Ticks:
        """Return the least total duration, in ticks, of all passes that the device runs.

        Blocks save as much as any could.
        """
        view = self.view
        stages = view.placement.stages_of[device]
        total = sum(view.least_work(s) * len(view.microbatches_of[s]) for s in stages)
        saving = max((view.saved_by_block(f, b) for f in stages for b in stages), default=0)
        return max(0, total - saving * sum(len(view.microbatches_of[s]) for s in stages))


def blocks_outlast_passes(problem: Problem) -> bool:
    """True if no overlapped block is shorter than either of its passes alone.

    Then a device that is relaxed to delays, on which a forward and a backward may run at the same time, needs no
    blocks.
    """
    view = problem.pipeline
    return all(ticks >= max(view.ticks[F, f], view.ticks[BW, b]) for (f, b), ticks in view.blocks.items())


def chains_on(view: PipelineView, device: DeviceId) -> list[list[StageId]]:
    """Return the device's stages by chain, each in chain order; chains without micro-batches are left out."""
    where = view.placement.stage_device
    kept = [[s for s in c if where[s] == device and view.microbatches_of[s]] for c in view.placement.chains]
    return [stages for stages in kept if stages]


def visited(view: PipelineView) -> Iterator[tuple[DeviceId, list[list[StageId]]]]:
    """Yield every device that has passes, with a list of its stages for each chain that has some there.

    Devices are in ascending order, stages in chain order.
    """
    for device in range(view.devices):
        chains = chains_on(view, device)
        if chains:
            yield device, chains


def entry_stage(view: PipelineView, whose: DeviceId | None, stage: StageId) -> StageId | None:
    """Return the first stage that device `whose` has on the chain of `stage`, up to `stage` itself.

    None if it has none. With `whose` None, it is the first stage of the chain.
    """
    placement = view.placement
    chain = placement.chains[placement.chain_index[stage]]
    walked = chain[: chain.index(stage) + 1]
    return next((one for one in walked if whose is None or placement.stage_device[one] == whose), None)


def durations(problem: Problem, stage: StageId, mates: Collection[StageId]) -> tuple[Ticks, Ticks, Ticks]:
    """Return the least ticks of a forward, of a gradient pass (B or BW), and of a whole backward of a stage.

    Each runs alone, or in an overlapped block with a pass of one of the stages `mates`. These are as a rule the stages
    of its device; `mates` is empty where blocks do not count.
    """
    view = problem.pipeline
    forward, full = view.ticks[F, stage], view.ticks[BW, stage]
    if mates:
        forward = min(forward, *(view.blocks.get((stage, mate), forward) for mate in mates))
        full = min(full, *(view.blocks.get((mate, stage), full) for mate in mates))
    split = view.split_ticks(stage)
    if split is None:
        return forward, full, full
    return forward, min(view.ticks[B, stage], full), min(split, full)
