"""Parameters of stages: stages that share them, limits of gathering them, and the passes that run for them."""

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

    `holders[s]` is the stage that gathers the parameters of stage s and reduces their gradients; empty where each stage
    has its own. All stages together gather at most `most` times an iteration; at most `window` stages of a device are
    gathered at once; None means no limit.
    """

    holders: tuple[int, ...] = ()
    most: int | None = None
    window: int | None = None

    def holder(self, stage: int) -> int:
        """Return the stage that holds the parameters of a stage."""
        return self.holders[stage] if self.holders else stage

    def users(self, stage: int, stages: int) -> list[int]:
        """Return the stages (of `stages` in all) that compute with the parameters of this holder."""
        return [one for one in range(stages) if self.holder(one) == stage]

    def needs(self, kind: PassKind, stage: int, stages: Sequence[Stage], walks: Sequence[range]) -> Iterator[Need]:
        """Yield the needs of a pass that a stage runs for its parameters; `walks` are the micro-batches of each stage.

        Gradients are reduced after all backwards that compute them, and the optimizer step follows. Each part waits for
        the part before it, and the first part for the last part of the kind before. A reduction after each micro-batch
        waits only for that micro-batch's backward. Gatherings have no fixed needs: they depend on the order.
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
    """Return the numbers, from 0, of the passes of a kind that a stage runs for its parameters.

    `walked` are the micro-batches of the stage.
    """
    if stage.gather is not None and kind in (UNSHARD, RESHARD):
        return range(stage.gather.most)
    return next(range(len(walked) if one.each_microbatch else one.parts) for one in stage.once if one.kind is kind)


def change(stage: Stage, kind: PassKind) -> tuple[int, int]:
    """Return the memory that a pass for parameters takes at its start and at its end (negative: frees)."""
    memory = stage.gather.memory if stage.gather is not None else 0
    return memory * (kind is UNSHARD), -memory * (kind is RESHARD)


def most_gathers(in_all: int | None, pieces: int, stages: int) -> int:
    """Return the most gatherings of one stage that are useful and allowed.

    Useful is one before each forward, B and W of each of `pieces` passes; `in_all` limits all stages together, each of
    which needs at least one.
    """
    return min(3 * pieces, (in_all or 3 * pieces * stages) - stages + 1)
