"""A state of an iteration under way: which passes have begun, when, and from which moment the rest is ordered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem


class Ran(NamedTuple):
    """When a pass started and ended, or will end where it runs, in ticks."""

    start: int
    end: int


@dataclass(frozen=True)
class State:
    """Of `ran`, which have begun by `now`, nothing changes; all others start at `now` or later. In ticks."""

    now: int
    ran: Mapping[Pass, Ran]

    def remaining(self, problem: Problem) -> list[Pass]:
        """The passes that may still run: those of both modes where a backward has not begun."""
        found = []
        for stage, walked in enumerate(problem.microbatches_of):
            modes = (F, B, W, BW) if problem.splittable else (F, BW)
            for j in walked:
                begun = {p.kind for p in (Pass(kind, stage, j) for kind in modes) if p in self.ran}
                over = {B, W} if BW in begun else {BW} if B in begun else set()
                found += [Pass(kind, stage, j) for kind in modes if kind not in begun | over]
        return found
