"""Critical paths: least durations of passes and of chains of passes across devices, in any schedule."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise, product

from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem


class Paths:
    """Least durations and path lengths of a problem, in ticks; lists by stage.

    A forward or a full backward inside an overlapped block lasts as long as the block, which may be less than it
    takes alone; `forward`, `gradient` and `rest`, what a backward takes on its device in all, allow for that.
    """

    def __init__(self, problem: Problem) -> None:
        if problem.microbatch_scale:
            raise ValueError("unequal micro-batches are bounded as chains (`without_scale`)")
        self.problem = problem
        placement = problem.placement
        stages = range(placement.stages)
        mates = [placement.stages_of[device] for device in placement.stage_device]
        least = [durations(problem, stage, mates[stage]) for stage in stages]
        self.forward, self.gradient, self.rest = ([one[kind] for one in least] for kind in range(3))
        self._walk()

    def _walk(self) -> None:
        """Path lengths along every chain, forwards and back."""
        problem = self.problem
        stages = problem.placement.stages
        # From time 0 to the earliest start of the stage's first forward.
        self.head = [0] * stages
        # From the end of a gradient pass of the stage to the end of the same micro-batch's on the chain's first stage.
        self.back = [0] * stages
        # From the end of a forward of the stage to the earliest start of the same micro-batch's backward on it.
        self.round_trip = [0] * stages
        for chain in problem.placement.chains:
            for one, other in pairwise(chain):
                self.head[other] = self.head[one] + self.forward[one] + problem.lag(one, other)
                self.back[other] = problem.lag(other, one) + self.gradient[one] + self.back[one]
            for one, other in zip(chain[-2::-1], chain[::-1], strict=False):
                lags = problem.lag(one, other) + problem.lag(other, one)
                self.round_trip[one] = lags + self.forward[other] + self.gradient[other] + self.round_trip[other]

    def tail(self, stage: int) -> int:
        """From the end of a gradient pass of the stage to the end of that micro-batch's backward on the first stage."""
        return self.tail_until(stage, self.problem.placement.chains[self.problem.placement.chain_index[stage]][0])

    def tail_until(self, stage: int, until: int) -> int:
        """From the end of a gradient pass of the stage to the end of that micro-batch's backward on an earlier one."""
        return 0 if stage == until else self.back[stage] - self.back[until] - self.gradient[until] + self.rest[until]

    def away(self, held: list[int]) -> tuple[int, int]:
        """The least time a micro-batch spends off a device between its forwards on it, and between its gradients.

        `held` are the device's stages of one chain, in walking order.
        """
        pairs = list(pairwise(held))
        forwards = sum(self.head[b] - self.head[a] - self.forward[a] for a, b in pairs)
        gradients = sum(self.back[b] - self.back[a] - self.gradient[a] for a, b in pairs)
        return forwards, gradients

    def work(self, device: int) -> int:
        """The least time the device computes in all."""
        problem = self.problem
        held = problem.placement.stages_of[device]
        total = sum(problem.least_work(s) * len(problem.microbatches_of[s]) for s in held)
        saving = max((self._saving(f, b) for f in held for b in held), default=0)
        return max(0, total - saving * sum(len(problem.microbatches_of[s]) for s in held))

    def _saving(self, forward: int, backward: int) -> int:
        """What running a forward and a full backward as one block saves; 0 where nothing."""
        block = self.problem.overlapped_ticks(Pass(F, forward, 0), Pass(BW, backward, 0))
        if block is None:
            return 0
        alone = self.problem.duration(Pass(F, forward, 0)) + self.problem.duration(Pass(BW, backward, 0))
        return max(0, alone - block)


def blocks_outlast_passes(problem: Problem) -> bool:
    """Whether no overlapped block is shorter than either of its passes alone.

    Then a device relaxed to delays, on which a forward and a backward may run at once, needs no blocks.
    """
    for held in problem.placement.stages_of:
        for f, b in product(held, held):
            forward, backward = Pass(F, f, 0), Pass(BW, b, 0)
            block = problem.overlapped_ticks(forward, backward)
            if block is not None and block < max(problem.duration(forward), problem.duration(backward)):
                return False
    return True


def chains_on(problem: Problem, device: int) -> list[list[int]]:
    """The device's stages, chain by chain in walking order; chains that no micro-batch walks are left out."""
    where = problem.placement.stage_device
    kept = [[s for s in c if where[s] == device and problem.microbatches_of[s]] for c in problem.placement.chains]
    return [stages for stages in kept if stages]


def visited(problem: Problem) -> Iterator[tuple[int, list[list[int]]]]:
    """Every device that micro-batches visit, with its stages as `chains_on` gives them."""
    for device in range(problem.devices):
        chains = chains_on(problem, device)
        if chains:
            yield device, chains


def gate_of(problem: Problem, whose: int | None, stage: int) -> int | None:
    """The first stage a chain walks on device `whose` until it has walked this one, None if it has walked none there.

    The chain's first stage if `whose` is None.
    """
    placement = problem.placement
    chain = placement.chains[placement.chain_index[stage]]
    walked = chain[: chain.index(stage) + 1]
    return next((one for one in walked if whose is None or placement.stage_device[one] == whose), None)


def durations(problem: Problem, stage: int, mates: Collection[int]) -> tuple[int, int, int]:
    """The least of a forward, of a gradient pass and of a whole backward, alone or in a block with one of the mates.

    A block is as long as its forward's stage says.
    """
    own = problem.overlapped_ticks(Pass(F, stage, 0), Pass(BW, stage, 0)) if mates else None
    forward, full = problem.duration(Pass(F, stage, 0)), problem.duration(Pass(BW, stage, 0))
    blocks = [problem.overlapped_ticks(Pass(F, mate, 0), Pass(BW, stage, 0)) for mate in mates]
    forward, full = min(forward, forward if own is None else own), min([full, *(b for b in blocks if b is not None)])
    if not problem.splittable:
        return forward, full, full
    b, w = problem.duration(Pass(B, stage, 0)), problem.duration(Pass(W, stage, 0))
    return forward, min(b, full), min(b + w, full)
