"""What each rank runs, in order, read from the words that an exported module holds.

`F0.3` is the forward of micro-batch 3 on stage 0; `send1:F0.3` sends what it yields to pipeline rank 1, `recv0:F0.3`
receives it there from rank 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_WORD = re.compile(r"(?:(send|recv)(\d+):)?(F|BW|B|W)(\d+)\.(\d+)")


class Step(NamedTuple):
    """A pass; or, with `transfer`, the sending or receiving of what that pass yields, to or from rank `peer`."""

    kind: str
    stage: int
    microbatch: int
    transfer: str = ""
    peer: int = -1

    def __str__(self) -> str:
        where = f"{self.transfer}{self.peer}:" if self.transfer else ""
        return f"{where}{self.kind}{self.stage}.{self.microbatch}"

    @property
    def yields(self) -> tuple[str, int, int]:
        """The name of the tensor: that of the pass that yields it, a BW like a B."""
        return self.kind[0], self.stage, self.microbatch


class Program(NamedTuple):
    """A schedule as ranks run it: `rows[r]` is rank r's, and stage s is on rank `rank_of_stage[s]`."""

    schedule: str
    microbatches: int
    rank_of_stage: tuple[int, ...]
    rows: tuple[tuple[Step, ...], ...]

    @property
    def last_stage(self) -> int:
        return len(self.rank_of_stage) - 1

    @property
    def is_loop(self) -> bool:
        """Whether stages are where Megatron puts them by itself: stage s on rank s mod p."""
        return all(where == stage % len(self.rows) for stage, where in enumerate(self.rank_of_stage))

    def stages_of(self, rank: int) -> list[int]:
        """The stages of a rank, by the number of their model chunk."""
        return [stage for stage, where in enumerate(self.rank_of_stage) if where == rank]


def program_of(document: Mapping[str, Any]) -> Program:
    """The program of a document as the exporter writes it."""
    rows = tuple(tuple(map(_step, row.split())) for row in document["rows"])
    return Program(document["schedule"], document["microbatches"], tuple(document["rank_of_stage"]), rows)


def _step(word: str) -> Step:
    match = _WORD.fullmatch(word)
    if match is None:
        raise ValueError(f"pipesched: found {word!r} in a program; allowed: F0.3, send1:F0.3, recv0:F0.3")
    transfer, peer, kind, stage, microbatch = match.groups()
    return Step(kind, int(stage), int(microbatch), transfer or "", int(peer or -1))
