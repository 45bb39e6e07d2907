"""The Zero Bubble paper's profiles and figures (arXiv 2401.10241, table 5 and appendix) as data."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem


class Memory(NamedTuple):
    """The memory of one activation, in the paper's unit: F takes 34h+5as, B gives 2h+5as back, W the remainder."""

    activation: int
    freed: int


@dataclass(frozen=True, eq=False)
class Row:
    """One row of the paper's tables: the profile in ms, and the published bubble rate of the span by schedule."""

    model: str
    p: int
    m: int
    forward: str
    backward: str
    weight: str
    transfer: str
    bubbles: dict[str, float]

    def problem(self, cap: Fraction | int = 1, objective: str = "span", **changes: object) -> Problem:
        """Return the row's problem, with room for cap x p activations a device; `changes` replace keys of the file."""
        memory = MEMORY[self.model]
        times = {kind: Decimal(getattr(self, kind)) for kind in ("forward", "backward", "weight", "transfer")}
        document = {
            "devices": self.p,
            "microbatches": self.m,
            "time_unit": "ms",
            "times": times,
            "memory": {
                "unit": "34h+5as",
                "capacity": int(cap * self.p * memory.activation),
                "activation": memory.activation,
                "freed_by_backward": memory.freed,
            },
            "objective": objective,
        }
        return problem_from(document | changes, str(self))

    def __str__(self) -> str:
        return f"{self.model}-p{self.p}-m{self.m}"


MEMORY = {"1.5B": Memory(201216, 127488), "14.6B": Memory(378880, 215040)}

_SCHEDULES = ("1f1b", "1f1b-i", "zb-h1", "zb-h2", "zb-1p", "zb-2p")


def _row(model: str, p: int, m: int, times: str, *bubbles: float) -> Row:
    return Row(model, p, m, *times.split(), bubbles=dict(zip(_SCHEDULES, bubbles, strict=True)))


ROWS = (
    _row("1.5B", 8, 24, "18.522 18.086 9.337 0.601", 0.2431, 0.1055, 0.1585, 0.1083, 0.1585, 0.0433),
    _row("1.5B", 8, 32, "18.513 18.086 9.331 0.626", 0.1985, 0.0818, 0.1242, 0.0837, 0.1242, 0.0039),
    _row("1.5B", 8, 64, "18.546 18.097 9.321 0.762", 0.1240, 0.0443, 0.0674, 0.0444, 0.0674, 0.0026),
    _row("14.6B", 16, 48, "11.347 11.248 8.132 0.377", 0.2552, 0.1104, 0.1397, 0.0672, 0.1397, 0.0066),
    _row("14.6B", 16, 64, "11.307 11.254 8.101 0.379", 0.2082, 0.0852, 0.1088, 0.0516, 0.1088, 0.0054),
    _row("14.6B", 16, 128, "11.325 11.308 8.109 0.378", 0.1251, 0.0445, 0.0576, 0.0266, 0.0576, 0.0028),
)

# Span bubble of the published greedy by the room a device has, in units of p activations.
CAPS = tuple(map(Fraction, ("1/4", "1/2", "5/8", "3/4", "7/8", "1", "5/4", "3/2", "2")))
GREEDY = {
    ROWS[0]: dict(zip(CAPS, (0.827, 0.762, 0.707, 0.619, 0.455, 0.159, 0.107, 0.072, 0.043), strict=True)),
    ROWS[4]: dict(zip(CAPS, (0.899, 0.855, 0.815, 0.744, 0.586, 0.109, 0.064, 0.044, 0.005), strict=True)),
}

# Interleaved 1F1B with 3 chunks a device, by the exact rules; the paper's own figures are in the rows.
INTERLEAVED_EXACT = dict(zip(ROWS, (0.1090, 0.0847, 0.0461, 0.1136, 0.0878, 0.0459), strict=True))
