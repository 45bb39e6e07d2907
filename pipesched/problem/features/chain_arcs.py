"""Precedences between passes of different chains: pieces of a micro-batch, or modules and the trunk that they feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pipesched.problem.features.module import Module
from pipesched.problem.features.stage_arc import StageArc
from pipesched.problem.network.task_network import Need
from pipesched.problem.passes import F, PassKind
from pipesched.problem.quantities import StageId, Ticks
from pipesched.problem.stage import Stage, gradient_lag


@dataclass(frozen=True)
class ChainArcs:
    """The precedences between passes of different chains (`arcs`), and the feature that causes them.

    With `pieces` above 1, a micro-batch is cut into that many pieces, each with a chain of stages: the pass of piece k
    through stage s of the model is one of stage s * `pieces` + k of the problem. `modules` are the modules of a
    multi-module model; their chains follow the trunk's in the list of chains.
    """

    arcs: tuple[StageArc, ...] = ()
    pieces: int = 1
    modules: tuple[Module, ...] = ()

    def needs(
        self,
        stage: StageId,
        kinds: tuple[PassKind, ...],
        stages: Sequence[Stage],
        walks: Sequence[range],
        travel: Callable[[StageId, StageId, bool], Ticks],
    ) -> Iterator[Need]:
        """Yield the passes of other chains that the forwards of a stage wait for, or its backwards.

        `kinds` says which: (F,) for the forwards, the kinds that send a gradient for the backwards. `stages` are all
        stages of the problem, `walks` the micro-batches of each. `travel(a, b, backward)` returns the ticks that an
        activation, or if `backward` is True a gradient, takes from stage a to stage b.
        """
        for arc in self.arcs:
            if arc.after == stage and arc.backward == (F not in kinds):
                lag = stages[arc.before].transfer if arc.barrier else travel(arc.before, arc.after, arc.backward)
                lag = gradient_lag(stages[arc.after], lag) if arc.backward else lag
                before = tuple((kind, arc.before) for kind in ((F,) if arc.waits_for_forwards else kinds))
                yield Need(before, lag, share=arc.share(walks))


# Chains that wait for nothing of each other.
NO_ARCS = ChainArcs()
