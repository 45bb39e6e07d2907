"""Passes and tasks.

A pass is the forward or backward of one micro-batch through one stage, a box in papers' figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from pipesched.errors import BadInput
from pipesched.problem.quantities import MicrobatchId, StageId, TaskPart


class PassKind(StrEnum):
    """The kind of a pass: the computation, copy or collective that it runs; the value is its letter in names of passes.

    A backward runs either split (`B`, later `W`) or fused (`BW`): Zero Bubble, arXiv 2401.10241, section 1. Between
    forward (`F`) and backward an activation stays on the device, moves elsewhere and back (`OFFLOAD`, `RELOAD`), or is
    recomputed in one of the modes that the stage lists (`RECOMPUTE` the first, `RECOMPUTE_B` the second, `RECOMPUTE_C`,
    `RECOMPUTE_D`, `RECOMPUTE_E`, `RECOMPUTE_F`). Passes that a stage runs for its parameters have a number from 0 in
    place of a micro-batch: gatherings (`UNSHARD`) and drops (`RESHARD`) of parameters in their order, reductions of
    gradients (`REDUCE`) by bucket or micro-batch; the norm of all gradients (`NORM`) and the optimizer step (`STEP`)
    have 0.
    """

    F = "F"  # forward
    B = "B"  # backward for the input
    W = "W"  # backward for the weights
    BW = "BW"  # full backward, B and W fused
    OFFLOAD = "O"  # copy of an activation to the host or another device
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
    NORM = "N"  # the norm of all gradients, of all stages at once
    STEP = "S"  # the optimizer's step of a stage, once an iteration


class KindRow(NamedTuple):
    """The name and colours of a kind of pass in charts, and flags that say what kind of work it is.

    `shades` are its strongest and its palest colour, as `#rrggbb`, `traced` the nearest colour in the palette of
    chrome://tracing. A pass `of_parameters` belongs to no micro-batch. A pass of a kind with `once` follows backwards
    of its stage (`Stage.once`); a stage runs these kinds in the order of `PassKind`. A `collective` is communication
    between devices or replicas other than a transfer of a tensor from stage to stage.
    """

    name: str
    shades: tuple[str, str]
    traced: str
    of_parameters: bool = False
    once: bool = False
    collective: bool = False


F, B, W, BW = PassKind.F, PassKind.B, PassKind.W, PassKind.BW
OFFLOAD, RELOAD = PassKind.OFFLOAD, PassKind.RELOAD
UNSHARD, RESHARD = PassKind.UNSHARD, PassKind.RESHARD
REDUCE, NORM, STEP = PassKind.REDUCE, PassKind.NORM, PassKind.STEP
# The ways to recompute, in the order in which a stage lists them.
RECOMPUTATIONS = tuple(kind for kind in PassKind if kind.name.startswith("RECOMPUTE"))

# Every kind. The pale end of BW stays well away from the green of B: a reader must never take a shade for a kind.
KINDS: dict[PassKind, KindRow] = {
    F: KindRow("Forward", ("#f59a23", "#fcdcae"), "thread_state_iowait"),
    BW: KindRow("Backward", ("#17692f", "#5c9d74"), "good"),
    B: KindRow("Backward for input", ("#a4dc5f", "#dff5b4"), "thread_state_running"),
    W: KindRow("Backward for weights", ("#3f83d6", "#b5d3f5"), "thread_state_runnable"),
    OFFLOAD: KindRow("Copy out", ("#6b7f8c", "#b9c6ce"), "grey"),
    RELOAD: KindRow("Copy back", ("#26a3a0", "#a5dcda"), "rail_load"),
    **{
        kind: KindRow(f"Recomputation{f', way {n}' if n > 1 else ''}", ("#b3541e", "#dba57f"), "bad")
        for n, kind in enumerate(RECOMPUTATIONS, start=1)
    },
    UNSHARD: KindRow(
        "Gathering of parameters", ("#c2185b", "#eba3bf"), "rail_response", of_parameters=True, collective=True
    ),
    RESHARD: KindRow("Parameters dropped", ("#7a7a7a", "#c4c4c4"), "grey", of_parameters=True),
    REDUCE: KindRow(
        "Reduction of gradients", ("#8e3b8f", "#cf9fd0"), "rail_animation", True, once=True, collective=True
    ),
    NORM: KindRow("Norm of gradients", ("#d4b106", "#efe0a0"), "yellow", True, once=True, collective=True),
    STEP: KindRow("Optimizer step", ("#4a4a4a", "#a8a8a8"), "black", of_parameters=True, once=True),
}
# Passes for the parameters of a stage, not of a micro-batch, and those of them that run once an iteration.
OF_PARAMETERS = tuple(kind for kind, row in KINDS.items() if row.of_parameters)
ONCE = tuple(kind for kind, row in KINDS.items() if row.once)

# Passes by which a device holds less of an activation until its backward.
SAVING = frozenset((OFFLOAD, RELOAD, *RECOMPUTATIONS))


class Pass(NamedTuple):
    """A pass: its kind, stage and micro-batch (for passes for parameters a number from 0); as text `F2.0`."""

    kind: PassKind
    stage: StageId
    microbatch: MicrobatchId

    def __str__(self) -> str:
        return f"{self.kind.value}{self.stage}.{self.microbatch}"


def may_send_tensor(one: Pass, other: Pass) -> bool:
    """Return True if pass `one` may yield a tensor that pass `other` uses.

    False for passes for parameters, which exchange data by collectives.
    """
    return one.kind not in OF_PARAMETERS and other.kind not in OF_PARAMETERS


# One pass, or an overlapped pair: a forward and a backward of two different micro-batches.
Slot = tuple[Pass] | tuple[Pass, Pass]


class Task(NamedTuple):
    """A part of a pass on one stream of its device; `part` counts from 0 along the pass.

    A plain pass is the single task with part 0. With expert parallelism or offloading a pass has several tasks.
    `Problem.task_text` returns their names.
    """

    of: Pass
    part: TaskPart = 0

    def __str__(self) -> str:
        return f"{self.of}" if self.part == 0 else f"{self.of}/{self.part}"


def kinds_pattern(kinds: Iterable[PassKind]) -> str:
    """Return a regular expression for the letters of one of these kinds, the longest first (`BW` before `B`).

    Its alternatives are in no group.
    """
    return "|".join(sorted(kinds, key=len, reverse=True))


def letters_text(kinds: Iterable[PassKind]) -> str:
    """Return the letters of two or more kinds for a sentence, in the order of `PassKind`: `F, B or W`.

    Of the modes of recomputation only the first one is named.
    """
    *some, last = [kind.value for kind in PassKind if kind in kinds and kind not in RECOMPUTATIONS[1:]]
    return f"{', '.join(some)} or {last}"


_PASS = re.compile(rf"({kinds_pattern(PassKind)})(\d{{1,9}})\.(\d{{1,9}})")


def parse_pass(text: str) -> Pass:
    """Return the pass of a text such as `F2.0`; raises `BadInput` for anything else."""
    match = _PASS.fullmatch(text)
    if match is None:
        raise BadInput(
            f"found {text!r}; a pass is written as kind ({letters_text(PassKind)}), stage, dot, micro-batch: F2.0"
        )
    return Pass(PassKind(match[1]), int(match[2]), int(match[3]))
