"""Parameters of stages: stages that share them, limits of gathering them, and the passes that run for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipesched.problem.network.share import Share
from pipesched.problem.network.task_network import Need
from pipesched.problem.passes import BW, ONCE, RESHARD, UNSHARD, PassKind, W
from pipesched.problem.quantities import MemorySteps, MicrobatchId, StageId
from pipesched.problem.stage import Once, Stage


@dataclass(frozen=True)
class StageParameters:
    """The stages that share parameters, and limits of gathering them.

    `holders[s]` is the stage that gathers the parameters of stage s and reduces their gradients; empty where each stage
    has its own. All stages together gather at most `most` times an iteration; at most `window` stages of a device are
    gathered at once; None means no limit.
    """

    holders: tuple[StageId, ...] = ()
    most: int | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        """Replace holders that are each stage itself by none, so that problems with the same meaning are equal."""
        if self.holders == tuple(range(len(self.holders))):
            object.__setattr__(self, "holders", ())

    def holder(self, stage: StageId) -> StageId:
        """Return the stage that gathers a stage's parameters and reduces their gradients; the stage itself where none
        are shared."""
        return self.holders[stage] if self.holders else stage

    def users(self, stage: StageId, stages: int) -> list[StageId]:
        """Return the stages that compute with the parameters that stage `stage` holds; `stages` is the number of all
        stages."""
        return [one for one in range(stages) if self.holder(one) == stage]

    def needs(self, kind: PassKind, stage: StageId, stages: Sequence[Stage], walks: Sequence[range]) -> Iterator[Need]:
        """Yield what a reduction, norm or optimizer step of a stage waits for; `walks` are the micro-batches of each
        stage.

        Nothing for gatherings, whose waits depend on the order. A reduction in buckets has as many parts, which run in
        turn; its first part waits for the last part of what is run before. If nothing is, each part waits for its
        bucket of the backwards of all stages with these parameters. A reduction after each micro-batch waits only for
        that micro-batch's backward, and a pass of all stages for what each of them runs before it.
        """
        if kind not in ONCE:
            return
        own = next(one for one in stages[stage].once if one.kind is kind)
        parts = own.parts
        if own.each_microbatch:
            yield Need(((W, stage), (BW, stage)), 0, share=Share(walks[stage], range(len(walks[stage]))))
            return
        if parts > 1:
            yield Need(((kind, stage),), 0, share=Share(range(parts - 1), range(1, parts)))
        for follows in self.trained(stages) if own.of_all else (stage,):
            line = self.line(follows, stages)
            place = next(place for place, (_, one) in enumerate(line) if one.kind is kind)
            if place:
                where, before = line[place - 1]
                last = range(len(walks[where])) if before.each_microbatch else (before.parts - 1,)
                yield Need(((before.kind, where),), 0, share=Share(last, range(1)))
                continue
            for at in range(parts):
                # Stages that no gradient reaches compute none.
                for one in (s for s in self.users(follows, len(stages)) if not stages[s].forward_only):
                    yield Need(((W, one), (BW, one)), 0, share=Share(walks[one], (at,)), bucket=(at, parts))

    def trained(self, stages: Sequence[Stage]) -> list[StageId]:
        """Return the stages that hold parameters (`holder`) whose gradients some backward computes, in ascending
        order."""
        return sorted({self.holder(s) for s, stage in enumerate(stages) if not stage.forward_only})

    def line(self, stage: StageId, stages: Sequence[Stage]) -> list[tuple[StageId, Once]]:
        """Return the passes that run once an iteration for a stage, in order, each with the stage that runs it.

        They are the stage's own and, if it trains, those that one stage runs for all.
        """
        own = [(stage, one) for one in stages[stage].once]
        shared = [(s, one) for s, other in enumerate(stages) if s != stage for one in other.once if one.of_all]
        if not shared or stage not in self.trained(stages):
            return own
        return sorted((*own, *shared), key=lambda one: ONCE.index(one[1].kind))


# Every stage has its own, gathered as often as stages say.
OWN_PARAMETERS = StageParameters()


def numbers(stage: Stage, kind: PassKind, walked: Sequence[MicrobatchId]) -> range:
    """Return the numbers, from 0, of the passes of a kind that a stage runs for its parameters, in place of
    micro-batches.

    `walked` are the micro-batches of the stage.
    """
    if stage.gather is not None and kind in (UNSHARD, RESHARD):
        return range(stage.gather.most)
    return next(range(len(walked) if one.each_microbatch else one.parts) for one in stage.once if one.kind is kind)


def change(stage: Stage, kind: PassKind) -> tuple[MemorySteps, MemorySteps]:
    """Return the memory that a pass for parameters takes at its start and at its end (negative: frees), in steps."""
    memory = stage.gather.memory if stage.gather is not None else 0
    return memory * (kind is UNSHARD), -memory * (kind is RESHARD)


def most_gathers(in_all: int | None, pieces: int, stages: int) -> int:
    """Return the most gatherings of one stage that are useful and allowed.

    Useful is one before each forward, B and W of each of `pieces` passes; `in_all` limits all stages together, each of
    which needs at least one.
    """
    return min(3 * pieces, (in_all or 3 * pieces * stages) - stages + 1)
