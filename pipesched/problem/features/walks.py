"""Micro-batches: their number on each chain, their order, and their factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

from pipesched.errors import BadInput
from pipesched.problem.quantities import MemorySteps, MicrobatchId, Ticks
from pipesched.problem.scaled_stage import numbers_of
from pipesched.problem.stage import Stage

# Why a problem with factors has no overlapped blocks.
BLOCKS = "allowed: one of them, since one time of a block does not tell that of two micro-batches of unequal work"
# Why it has no passes for parameters: their numbers are none of micro-batches.
PARAMETERS = "allowed: one of them, since work for parameters takes as long for every micro-batch"


@dataclass(frozen=True)
class Walks:
    """The number of micro-batches on each chain, the order that they keep, and their factors.

    `shares[n]` is the number of micro-batches on chain n; `shares` is empty where all chains have equally many. All
    stages s with the same `queues[s]` together run their forwards in the order of micro-batches, and so their
    backwards; `queues` is empty where any order is allowed. `scale[j]` is a factor on all times and activations of
    micro-batch j; `scale` is empty where micro-batches are equal.

    A problem with factors has no passes for parameters: their numbers are none of micro-batches. Searches and bounds
    read problems with chains in place of factors (`pipesched.problem.chains.microbatch_chains`).
    """

    shares: tuple[int, ...] = ()
    queues: tuple[int, ...] = ()
    scale: tuple[Fraction, ...] = ()

    @cached_property
    def parts(self) -> int:
        """Return the common denominator of the factors; 1 without factors.

        The times and activations of all stages must be its multiples.
        """
        return lcm(*(factor.denominator for factor in self.scale))

    def scaled(self, number: Ticks | MemorySteps, microbatch: MicrobatchId) -> Ticks | MemorySteps:
        """Return `number`, ticks or memory of a stage, times the factor of a micro-batch.

        The product is whole: the ticks and steps of memory of a problem with factors are chosen so, and `refuse`
        refuses others.
        """
        if not self.scale:
            return number
        factor = self.scale[microbatch]
        return number * factor.numerator // factor.denominator

    def refuse(self, microbatches: int, stages: Sequence[Stage], links: Sequence[Sequence[Ticks]]) -> None:
        """Raise `BadInput` for factors that do not fit the problem.

        There must be one positive factor for each of `microbatches`, and every time and activation times its factor
        must be whole. `BadInput` too where factors meet overlapped blocks, passes for parameters, or `links` whose two
        directions differ.
        """
        scale, parts = self.scale, self.parts
        if len(scale) != microbatches:
            raise BadInput(f"microbatch_scale: found {len(scale)} values; allowed: {microbatches}, one each")
        if min(scale) <= 0:
            raise BadInput(f"microbatch_scale: found {min(scale)}; allowed: numbers above 0")
        if any(stage.in_blocks for stage in stages):
            raise BadInput(f"microbatch_scale: found with times.overlapped; {BLOCKS}")
        if any(stage.kinds_of_parameters for stage in stages):
            raise BadInput(f"microbatch_scale: found with parameters; {PARAMETERS}")
        if any(row[b] != links[b][a] for a, row in enumerate(links) for b in range(len(row))):
            raise BadInput(
                "microbatch_scale: found with transfers of two times between two devices; allowed: one both ways"
            )
        numbers = [stage.transfer for stage in stages] + [lag for row in links for lag in row]
        numbers += [number for stage in stages for of_kind in numbers_of(stage) for number in of_kind]
        if any(number % parts for number in numbers):
            raise BadInput(
                f"microbatch_scale: found times or activations that are no multiples of {parts} ticks or steps; "
                "allowed: a tick and a resolution finer by that factor"
            )


# Equal micro-batches in equal shares, in any order.
ALIKE = Walks()
