"""Precedences between chains: those of pieces of a micro-batch, and of modules and the trunk that they feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pipesched.problem.features.module import Module
from pipesched.problem.features.stage_arc import StageArc
from pipesched.problem.gradient_lag import gradient_lag
from pipesched.problem.network.task_network import Need
from pipesched.problem.passes import F, PassKind
from pipesched.problem.stage import Stage


@dataclass(frozen=True)
class ChainArcs:
    """The precedences `arcs` between chains, and what the chains are.

    Each of `pieces` pieces of a micro-batch has its own chain, and the chains of `modules` follow that of the trunk.
    """

    arcs: tuple[StageArc, ...] = ()
    pieces: int = 1
    modules: tuple[Module, ...] = ()

    def needs(
        self,
        stage: int,
        kinds: tuple[PassKind, ...],
        stages: Sequence[Stage],
        walks: Sequence[range],
        travel: Callable[[int, int, bool], int],
    ) -> Iterator[Need]:
        """The passes of other chains that passes of these kinds of a stage need, forwards or backwards.

        `walks` are the micro-batches of each stage, `travel` the ticks between two stages of an activation, or of a
        gradient.
        """
        for arc in self.arcs:
            if arc.after == stage and arc.backward == (F not in kinds):
                lag = stages[arc.before].transfer if arc.barrier else travel(arc.before, arc.after, arc.backward)
                lag = gradient_lag(stages[arc.after], lag) if arc.backward else lag
                before = tuple((kind, arc.before) for kind in ((F,) if arc.turns else kinds))
                yield Need(before, lag, share=arc.share(walks))


# Chains that wait for nothing of each other.
NO_ARCS = ChainArcs()
