"""Kimi K2's offload: during each slot the previous forward's activation is copied out, the next backward's copied back.

On each device, k counting its slots (a forward, a backward, or a pair of both):

    computation   F_k and B_k
    copies        out: the activation of F_{k-1}     back: the activation that B_{k+1} needs

A pair begins when the copies of the previous slot have ended, and the copy back during slot k when slot k - 1 has
released its own activation. So a device never has more than four activations: of both passes of a slot, and of both
copies during it. In the warm-up there is nothing to copy back, in the cool-down nothing to copy out.
"""

from __future__ import annotations

from collections.abc import Sequence

from heuristics.building.requirements import all_may_offload
from pipesched.problem.passes import OFFLOAD, RELOAD, F, Pass, Slot
from pipesched.problem.problem import Problem

# A backward at most this many slots after its forward finds its activation among the four, without copies.
NEAR = 3


def with_copies(problem: Problem, orders: Sequence[Sequence[Slot]]) -> list[list[Slot]]:
    """Return each device's slots with copies inserted: an activation is copied out after a slot, and back before one.

    `orders` has the slots of each device, without copies; a copy is a slot of its own. An activation that is needed
    within three slots is kept, unless its stage may keep none. Raises `DoesNotApply` unless every stage may offload.
    """
    all_may_offload(problem)
    return [_with_copies(problem, order) for order in orders]


def _with_copies(problem: Problem, order: Sequence[Slot]) -> list[Slot]:
    """Return one device's slots in order, with OFFLOAD and RELOAD passes inserted as slots of their own.

    An activation that may be kept, and whose backward is at most `NEAR` slots after its forward, is not copied.
    """
    forward = {p[1:]: k for k, slot in enumerate(order) for p in slot if p.kind is F}
    backward = {p[1:]: k for k, slot in enumerate(order) for p in slot if p.kind is not F}
    out: dict[int, list[Slot]] = {}
    back: dict[int, list[Slot]] = {}
    for (stage, microbatch), needed in backward.items():
        begun = forward[stage, microbatch]
        if needed - begun <= NEAR and problem.stages[stage].may_keep:
            continue
        gone = min(begun + 1, needed - 1)
        out.setdefault(gone, []).append((Pass(OFFLOAD, stage, microbatch),))
        back.setdefault(max(needed - 1, gone + 1), []).append((Pass(RELOAD, stage, microbatch),))
    return [each for k, slot in enumerate(order) for each in (*back.get(k, ()), slot, *out.get(k, ()))]
