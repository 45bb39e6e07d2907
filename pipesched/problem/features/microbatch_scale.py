"""Factors of unequal micro-batches: which ones a problem may have."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from pipesched.errors import BadInput
from pipesched.problem.stage import Stage

# Why a problem with factors has no overlapped blocks.
BLOCKS = "allowed: one of them, since one time of a block does not tell that of two micro-batches of unequal work"


def common_denominator(scale: Sequence[Fraction]) -> int:
    """The number that divides all times and activations of a problem whose micro-batches have these factors."""
    return lcm(*(factor.denominator for factor in scale))


def refuse_scale(
    scale: Sequence[Fraction], microbatches: int, stages: Sequence[Stage], links: Sequence[Sequence[int]]
) -> None:
    """`BadInput` where the factors do not fit a problem of these, or leave a time or an activation no integer."""
    parts = common_denominator(scale)
    if len(scale) != microbatches:
        raise BadInput(f"microbatch_scale: found {len(scale)} values; allowed: {microbatches}, one each")
    if min(scale) <= 0:
        raise BadInput(f"microbatch_scale: found {min(scale)}; allowed: numbers above 0")
    if any(stage.overlapped is not None for stage in stages):
        raise BadInput(f"microbatch_scale: found with times.overlapped; {BLOCKS}")
    if any(row[b] != links[b][a] for a, row in enumerate(links) for b in range(len(row))):
        raise BadInput(
            "microbatch_scale: found with transfers of two times between two devices; allowed: one both ways"
        )
    times = [task.ticks for stage in stages for kind in stage.kinds for task in stage.tasks_of(kind)]
    times += [stage.transfer for stage in stages] + [lag for row in links for lag in row]
    held = [number for stage in stages for number in (stage.activation, stage.freed)]
    held += [stage.offload.amount for stage in stages if stage.offload is not None]
    held += [number for stage in stages for number in (*stage.workspace, *stage.until_end)]
    held += [way.keeps for stage in stages for way in stage.recompute]
    if any(number % parts for number in (*times, *held)):
        raise BadInput(
            f"microbatch_scale: found times or activations that are no multiples of {parts} ticks or steps; allowed: a "
            f"tick and a resolution finer by that factor"
        )
