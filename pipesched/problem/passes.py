"""A pass is one box in the papers' pictures: forward or backward of one micro-batch through one stage."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from pipesched.errors import BadInput


class PassKind(StrEnum):
    """What a pass computes or copies.

    A backward runs either split (`B`, later `W`) or in one go (`BW`): Zero Bubble, arXiv 2401.10241, section 1. What a
    forward has left for its backward stays where it is, moves to the host and back (`O`, `L`), or is computed again by
    one of the ways that the stage lists: `R` the first, `Rb` the second and so on. What a stage runs once an iteration
    for its parameters has the number 0 in place of a micro-batch; gatherings of its parameters are counted from 0 on.
    """

    F = "F"  # forward
    B = "B"  # backward for the input
    W = "W"  # backward for the weights
    BW = "BW"  # full backward, B and W fused
    OFFLOAD = "O"  # copy of an activation to the host
    RELOAD = "L"  # its copy back
    RECOMPUTE = "R"  # forward again, for what its backward needs
    RECOMPUTE_B = "Rb"
    RECOMPUTE_C = "Rc"
    RECOMPUTE_D = "Rd"
    RECOMPUTE_E = "Re"
    RECOMPUTE_F = "Rf"
    UNSHARD = "U"  # the parameters of a stage are gathered
    RESHARD = "D"  # and dropped again
    REDUCE = "G"  # gradients of a stage's parameters are reduced, once an iteration
    STEP = "S"  # the optimizer's step of a stage, once an iteration


F, B, W, BW = PassKind.F, PassKind.B, PassKind.W, PassKind.BW
OFFLOAD, RELOAD = PassKind.OFFLOAD, PassKind.RELOAD
UNSHARD, RESHARD, REDUCE, STEP = PassKind.UNSHARD, PassKind.RESHARD, PassKind.REDUCE, PassKind.STEP
# Passes for the parameters of a stage, not of a micro-batch.
OF_PARAMETERS = (UNSHARD, RESHARD, REDUCE, STEP)
# The ways to recompute, in the order in which a stage lists them.
RECOMPUTATIONS = tuple(kind for kind in PassKind if kind.name.startswith("RECOMPUTE"))

# Passes by which a device holds less of an activation until its backward.
SAVING = frozenset((OFFLOAD, RELOAD, *RECOMPUTATIONS))


class Pass(NamedTuple):
    """One pass; prints as kind, stage, dot, micro-batch: `F2.0`."""

    kind: PassKind
    stage: int
    microbatch: int

    def __str__(self) -> str:
        return f"{self.kind.value}{self.stage}.{self.microbatch}"


# One pass, or an overlapped pair: a forward and a backward of two different micro-batches.
Slot = tuple[Pass] | tuple[Pass, Pass]


class Task(NamedTuple):
    """A piece of a pass on one stream of its device; `part` counts from 0 along the pass.

    A plain pass is the single task with part 0. With expert parallelism or offloading a pass is several tasks.
    `Problem.task_text` knows their names.
    """

    of: Pass
    part: int = 0

    def __str__(self) -> str:
        return f"{self.of}" if self.part == 0 else f"{self.of}/{self.part}"


_PASS = re.compile(r"(F|BW|B|W|O|L|R[b-f]?|U|D|G|S)(\d{1,9})\.(\d{1,9})")


def parse_pass(text: str) -> Pass:
    """Read `F2.0` back; raises `BadInput` on anything else."""
    match = _PASS.fullmatch(text)
    if match is None:
        raise BadInput(
            f"found {text!r}; a pass is written as kind (F, B, W, BW, O, L, R, U, D, G or S), stage, dot, micro-batch: "
            "F2.0"
        )
    return Pass(PassKind(match[1]), int(match[2]), int(match[3]))
