"""A pass is one box in the papers' pictures: forward or backward of one micro-batch through one stage."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from pipesched.errors import BadInput


class PassKind(StrEnum):
    """What a pass computes.

    A backward runs either split (`B`, later `W`) or in one go (`BW`): Zero Bubble, arXiv 2401.10241, section 1.
    """

    F = "F"  # forward
    B = "B"  # backward for the input
    W = "W"  # backward for the weights
    BW = "BW"  # full backward, B and W fused


F, B, W, BW = PassKind.F, PassKind.B, PassKind.W, PassKind.BW


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

    A plain pass is the single task with part 0. With expert parallelism or offloading a pass is a chain of tasks.
    """

    of: Pass
    part: int = 0

    def __str__(self) -> str:
        return f"{self.of}" if self.part == 0 else f"{self.of}/{self.part}"


_PASS = re.compile(r"(F|BW|B|W)(\d{1,9})\.(\d{1,9})")


def parse_pass(text: str) -> Pass:
    """Read `F2.0` back; raises `BadInput` on anything else."""
    match = _PASS.fullmatch(text)
    if match is None:
        raise BadInput(f"found {text!r}; a pass is written as kind (F, B, W or BW), stage, dot, micro-batch: F2.0")
    return Pass(PassKind(match[1]), int(match[2]), int(match[3]))
