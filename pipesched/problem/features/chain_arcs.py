"""Precedences between passes of different chains: pieces of a micro-batch, or modules and the trunk that they feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pipesched.problem.features.module import Module
from pipesched.problem.features.stage_arc import StageArc
from pipesched.problem.gradient_lag import gradient_lag
from pipesched.problem.network.task_network import Need
from pipesched.problem.passes import F, PassKind
from pipesched.problem.quantities import StageId, Ticks
from pipesched.problem.stage import Stage


@dataclass(frozen=True)
class ChainArcs:
    """The precedences `arcs` between chains, and the structure that they come from.

    A micro-batch consists of `pieces` pieces, each with a chain of its own; the chains of `modules` follow the trunk's.
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
        """Yield the needs of forwards, or of backwards (`kinds`), of a stage for passes of other chains.

        `walks` are the micro-batches of each stage. `travel` returns the ticks that an activation, or with True a
        gradient, takes between two stages.
        """
        for arc in self.arcs:
            if arc.after == stage and arc.backward == (F not in kinds):
                lag = stages[arc.before].transfer if arc.barrier else travel(arc.before, arc.after, arc.backward)
                lag = gradient_lag(stages[arc.after], lag) if arc.backward else lag
                before = tuple((kind, arc.before) for kind in ((F,) if arc.waits_for_forwards else kinds))
                yield Need(before, lag, share=arc.share(walks))


# Chains that wait for nothing of each other.
NO_ARCS = ChainArcs()
