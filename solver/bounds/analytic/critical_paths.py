"""Least durations of passes, and lengths of paths of passes across devices, valid in any schedule."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

from pipesched.problem.passes import BW, B, F
from pipesched.problem.problem import Problem
from pipesched.problem.view import PipelineView


class Paths:
    """Least durations and path lengths of a problem in ticks, as lists by stage.

    `forward` and `gradient` are least durations of a forward and of a gradient pass; `backward` is that of a whole
    backward on its device. They allow for overlapped blocks, in which a pass lasts as long as the block, possibly less
    than it takes alone.
    """

    def __init__(self, problem: Problem) -> None:
        if problem.network.scale:
            raise ValueError("unequal micro-batches are bounded as chains (`without_scale`)")
        self.view = problem.pipeline
        least = [durations(problem, stage, self.view.placement.on_device_of(stage)) for stage in self.view.stages]
        self.forward, self.gradient, self.backward = ([one[kind] for one in least] for kind in range(3))
        self._walk()

    def _walk(self) -> None:
        """Compute the path lengths `head`, `back` and `round_trip` along every chain."""
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

    def tail(self, stage: int) -> int:
        """Return the least time from a stage's gradient's end to the end of that micro-batch's last backward."""
        return self.tail_until(stage, self.view.placement.chains[self.view.placement.chain_index[stage]][0])

    def tail_until(self, stage: int, until: int) -> int:
        """Return the least time from the end of a gradient of `stage` to that of the backward on `until`."""
        return (
            0 if stage == until else self.back[stage] - self.back[until] - self.gradient[until] + self.backward[until]
        )

    def away(self, stages: list[int]) -> tuple[int, int]:
        """Return the least time a micro-batch is off a device between its forwards on it, and between its gradients.

        `stages` are the device's stages of one chain, in chain order.
        """
        pairs = list(pairwise(stages))
        forwards = sum(self.head[b] - self.head[a] - self.forward[a] for a, b in pairs)
        gradients = sum(self.back[b] - self.back[a] - self.gradient[a] for a, b in pairs)
        return forwards, gradients

    def work(self, device: int) -> int:
        """Return the least time that the device computes in all, in ticks."""
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


def chains_on(view: PipelineView, device: int) -> list[list[int]]:
    """Return the device's stages by chain, each in chain order; chains without micro-batches are left out."""
    where = view.placement.stage_device
    kept = [[s for s in c if where[s] == device and view.microbatches_of[s]] for c in view.placement.chains]
    return [stages for stages in kept if stages]


def visited(view: PipelineView) -> Iterator[tuple[int, list[list[int]]]]:
    """Yield every device that has passes, with its stages by chain as in `chains_on`."""
    for device in range(view.devices):
        chains = chains_on(view, device)
        if chains:
            yield device, chains


def gate_of(view: PipelineView, whose: int | None, stage: int) -> int | None:
    """Return the first stage of the chain on device `whose`, up to `stage`; None if there is none.

    With `whose` None it is the chain's first stage.
    """
    placement = view.placement
    chain = placement.chains[placement.chain_index[stage]]
    walked = chain[: chain.index(stage) + 1]
    return next((one for one in walked if whose is None or placement.stage_device[one] == whose), None)


def durations(problem: Problem, stage: int, mates: Collection[int]) -> tuple[int, int, int]:
    """Return the least durations of a forward, a gradient pass and a whole backward, alone or in a block with a
    mate."""
    view = problem.pipeline
    forward, full = view.ticks[F, stage], view.ticks[BW, stage]
    if mates:
        forward = min(forward, *(view.blocks.get((stage, mate), forward) for mate in mates))
        full = min(full, *(view.blocks.get((mate, stage), full) for mate in mates))
    split = view.split_ticks(stage)
    if split is None:
        return forward, full, full
    return forward, min(view.ticks[B, stage], full), min(split, full)
