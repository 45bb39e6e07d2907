"""Parameters of stages: the stages that share them, how often they are gathered, and the passes run for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipesched.problem.network.share import Share
from pipesched.problem.network.task_network import Need
from pipesched.problem.passes import BW, ONCE, RESHARD, UNSHARD, PassKind, W
from pipesched.problem.stage import Stage


@dataclass(frozen=True)
class StageParameters:
    """The stages that share parameters, and limits of gathering them.

    `holders[s]` is the stage that gathers, and reduces the gradients of, the parameters that stage s computes with;
    empty where each stage has its own. All stages together gather `most` times at most; those of `window` stages of a
    device are there at once at most; None where there is no limit.
    """

    holders: tuple[int, ...] = ()
    most: int | None = None
    window: int | None = None

    def holder(self, stage: int) -> int:
        """The stage that holds the parameters of a stage."""
        return self.holders[stage] if self.holders else stage

    def users(self, stage: int, stages: int) -> list[int]:
        """The stages, of so many, that compute with the parameters of this one."""
        return [one for one in range(stages) if self.holder(one) == stage]

    def needs(self, kind: PassKind, stage: int, stages: Sequence[Stage], walks: Sequence[range]) -> Iterator[Need]:
        """The precedences of a pass for the parameters of a stage; `walks` are the micro-batches of each stage.

        Gradients are reduced after all backwards that compute them, and the step follows that: each part waits for the
        one before it, the first one for the last part of the pass before. Those of each micro-batch wait for its own
        backward, and for no other part. What a gathering waits for depends on the order.
        """
        if kind not in ONCE:
            return
        once = stages[stage].once
        place = next(place for place, one in enumerate(once) if one.kind is kind)
        parts = once[place].parts
        if once[place].each_microbatch:
            yield Need(((W, stage), (BW, stage)), 0, share=Share(walks[stage], range(len(walks[stage]))))
            return
        if parts > 1:
            yield Need(((kind, stage),), 0, share=Share(range(parts - 1), range(1, parts)))
        if place:
            before = once[place - 1]
            last = range(len(walks[stage])) if before.each_microbatch else (before.parts - 1,)
            yield Need(((before.kind, stage),), 0, share=Share(last, range(1)))
            return
        for at in range(parts):
            # Stages that no gradient reaches compute none.
            for one in (s for s in self.users(stage, len(stages)) if not stages[s].forward_only):
                yield Need(((W, one), (BW, one)), 0, share=Share(walks[one], (at,)), bucket=(at, parts))


# Every stage has its own, gathered as often as stages say.
OWN_PARAMETERS = StageParameters()


def numbers(stage: Stage, kind: PassKind, walked: Sequence[int]) -> range:
    """The numbers of the passes of this kind for the parameters of a stage, from 0 on; it walks these micro-batches."""
    if stage.gather is not None and kind in (UNSHARD, RESHARD):
        return range(stage.gather.most)
    return next(range(len(walked) if one.each_microbatch else one.parts) for one in stage.once if one.kind is kind)


def change(stage: Stage, kind: PassKind) -> tuple[int, int]:
    """Memory that a pass for the parameters of a stage takes when it starts and when it ends (negative: gives back)."""
    held = stage.gather.memory if stage.gather is not None else 0
    return held * (kind is UNSHARD), -held * (kind is RESHARD)


def most_gathers(in_all: int | None, pieces: int, stages: int) -> int:
    """The most gatherings of one of the stages: before each forward, backward and part for the weights of a piece.

    Of all that are allowed of them together it leaves each other stage one.
    """
    return min(3 * pieces, (in_all or 3 * pieces * stages) - stages + 1)
