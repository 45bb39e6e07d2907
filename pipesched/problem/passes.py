"""A pass is one box in the papers' pictures: forward or backward of one micro-batch through one stage."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from pipesched.errors import BadInput


class PassKind(StrEnum):
    """The computation or copy that a pass is.

    A backward runs either split (`B`, later `W`) or in one go (`BW`): Zero Bubble, arXiv 2401.10241, section 1. What a
    forward has left for its backward stays where it is, moves to the host and back (`O`, `L`), or is computed again in
    one of the modes that the stage lists: `R` the first, `Rb` the second and so on. What a stage runs once an iteration
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


class KindRow(NamedTuple):
    """A kind of pass as charts show it, and whether it is for parameters of a stage.

    `shades` are its strongest and its palest colour, `traced` the nearest one of chrome://tracing's palette. Passes of
    a stage's parameters are of no micro-batch; those that run `once` an iteration follow its backwards.
    """

    name: str
    shades: tuple[str, str]
    traced: str
    of_parameters: bool = False
    once: bool = False


F, B, W, BW = PassKind.F, PassKind.B, PassKind.W, PassKind.BW
OFFLOAD, RELOAD = PassKind.OFFLOAD, PassKind.RELOAD
UNSHARD, RESHARD, REDUCE, STEP = PassKind.UNSHARD, PassKind.RESHARD, PassKind.REDUCE, PassKind.STEP
# The ways to recompute, in the order in which a stage lists them.
RECOMPUTATIONS = tuple(kind for kind in PassKind if kind.name.startswith("RECOMPUTE"))

# Every kind. The pale end of BW stays well away from the green of B: a reader must never take a shade for a kind.
KINDS: dict[PassKind, KindRow] = {
    F: KindRow("Forward", ("#f59a23", "#fcdcae"), "thread_state_iowait"),
    BW: KindRow("Backward", ("#17692f", "#5c9d74"), "good"),
    B: KindRow("Backward for input", ("#a4dc5f", "#dff5b4"), "thread_state_running"),
    W: KindRow("Backward for weights", ("#3f83d6", "#b5d3f5"), "thread_state_runnable"),
    OFFLOAD: KindRow("Copy to the host", ("#6b7f8c", "#b9c6ce"), "grey"),
    RELOAD: KindRow("Copy back", ("#26a3a0", "#a5dcda"), "rail_load"),
    **{
        kind: KindRow(f"Recomputation{f', way {n}' if n > 1 else ''}", ("#b3541e", "#dba57f"), "bad")
        for n, kind in enumerate(RECOMPUTATIONS, start=1)
    },
    UNSHARD: KindRow("Gathering of parameters", ("#c2185b", "#eba3bf"), "rail_response", of_parameters=True),
    RESHARD: KindRow("Parameters dropped", ("#7a7a7a", "#c4c4c4"), "grey", of_parameters=True),
    REDUCE: KindRow("Reduction of gradients", ("#8e3b8f", "#cf9fd0"), "rail_animation", of_parameters=True, once=True),
    STEP: KindRow("Optimizer step", ("#4a4a4a", "#a8a8a8"), "black", of_parameters=True, once=True),
}
# Passes for the parameters of a stage, not of a micro-batch, and those of them that run once an iteration.
OF_PARAMETERS = tuple(kind for kind, row in KINDS.items() if row.of_parameters)
ONCE = tuple(kind for kind, row in KINDS.items() if row.once)

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


def kinds_pattern(kinds: Iterable[PassKind]) -> str:
    """A pattern for the letters of one of these kinds."""
    return "|".join(sorted(kinds, key=len, reverse=True))


def letters_text(kinds: Iterable[PassKind]) -> str:
    """The letters of kinds in a sentence, one for all modes of recomputation: `F, B or W`."""
    *some, last = [kind.value for kind in PassKind if kind in kinds and kind not in RECOMPUTATIONS[1:]]
    return f"{', '.join(some)} or {last}"


_PASS = re.compile(rf"({kinds_pattern(PassKind)})(\d{{1,9}})\.(\d{{1,9}})")


def parse_pass(text: str) -> Pass:
    """Read `F2.0` back; raises `BadInput` on anything else."""
    match = _PASS.fullmatch(text)
    if match is None:
        raise BadInput(
            f"found {text!r}; a pass is written as kind ({letters_text(PassKind)}), stage, dot, micro-batch: F2.0"
        )
    return Pass(PassKind(match[1]), int(match[2]), int(match[3]))
