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
    """Sharing of parameters by stages, and limits on how often parameters are gathered.

    `holders[s]` is the stage that gathers the parameters of stage s and reduces their gradients; `holders` is empty
    where no stages share. All stages together gather at most `most` times an iteration, and at most `window` stages of
    a device are gathered at once; None means no limit.
    """

    holders: tuple[StageId, ...] = ()
    most: int | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        """Replace holders that are each stage itself by none, so that problems with the same meaning are equal."""
        if self.holders == tuple(range(len(self.holders))):
            object.__setattr__(self, "holders", ())

    def holder(self, stage: StageId) -> StageId:
        """Return the stage that gathers a stage's parameters and reduces their gradients.

        The stage itself where none are shared.
        """
        return self.holders[stage] if self.holders else stage

    def users(self, stage: StageId, stages: int) -> list[StageId]:
        """Return the stages that compute with the parameters that stage `stage` holds.

        `stages` is the number of all stages.
        """
        return [one for one in range(stages) if self.holder(one) == stage]

    def needs(self, kind: PassKind, stage: StageId, stages: Sequence[Stage], walks: Sequence[range]) -> Iterator[Need]:
        """Yield the passes that a reduction of gradients, norm or optimizer step (`kind`) of a stage waits for.

        `stages` are all stages of the problem, `walks` the micro-batches of each. Nothing is yielded for gatherings:
        what they wait for depends on the order.

        - The first of these passes waits for the stage's backwards; a later one waits for the pass before it.
        - A reduction in buckets has one part for each bucket. The parts run in turn; if they are first, each waits
          until its bucket's gradients are complete in the backwards of all stages with these parameters.
        - A reduction after each micro-batch waits for the backward of that micro-batch alone.
        - A pass that serves all stages, such as the norm, waits for what each stage runs before it.
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
        """Return, ascending, the stages that hold parameters (`holder`) of which some backward computes gradients."""
        return sorted({self.holder(s) for s, stage in enumerate(stages) if not stage.forward_only})

    def line(self, stage: StageId, stages: Sequence[Stage]) -> list[tuple[StageId, Once]]:
        """Return the passes that run once an iteration for a stage, in order, as pairs (stage that runs it, pass).

        If the stage trains, they include the passes that another stage runs for all stages.
        """
        own = [(stage, one) for one in stages[stage].once]
        shared = [(s, one) for s, other in enumerate(stages) if s != stage for one in other.once if one.of_all]
        if not shared or stage not in self.trained(stages):
            return own
        return sorted((*own, *shared), key=lambda one: ONCE.index(one[1].kind))


# Every stage has its own, gathered as often as stages say.
OWN_PARAMETERS = StageParameters()


def numbers(stage: Stage, kind: PassKind, walked: Sequence[MicrobatchId]) -> range:
    """Return the numbers of a stage's passes of one kind for its parameters.

    They count from 0, and replace micro-batches. `walked` are the micro-batches of the stage: a reduction may run once
    for each of them. The stage must have passes of this kind.
    """
    if stage.gather is not None and kind in (UNSHARD, RESHARD):
        return range(stage.gather.most)
    return next(range(len(walked) if one.each_microbatch else one.parts) for one in stage.once if one.kind is kind)


def change(stage: Stage, kind: PassKind) -> tuple[MemorySteps, MemorySteps]:
    """Return the memory that a pass for parameters takes at its start and at its end (negative: frees), in steps."""
    memory = stage.gather.memory if stage.gather is not None else 0
    return memory * (kind is UNSHARD), -memory * (kind is RESHARD)


def most_gathers(in_all: int | None, pieces: int, stages: int) -> int:
    """Return how often one stage may gather its parameters in an iteration: as often as is useful and allowed.

    More than one gathering before each F, each B and each W of its `pieces` micro-batches (or pieces of them) is
    useless. `in_all` limits the gatherings of all `stages` together, each of which needs one; None is no limit, and
    with fewer than `stages` the result is below 1.
    """
    return min(3 * pieces, (in_all or 3 * pieces * stages) - stages + 1)
