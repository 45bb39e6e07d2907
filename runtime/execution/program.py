"""The program of each rank, in order, parsed from the text of an exported module.

`F0.3` is the forward of micro-batch 3 on stage 0; `send1:F0.3` sends its output to pipeline rank 1, `recv0:F0.3`
receives it there from rank 0. `O0.3@1!F0.3` runs on stream 1 once `F0.3` has ended on another stream of this rank.
Other kinds are B, W, BW, the copies O (to the host) and L (back), and R, Rb, Rc, ..., recomputation in the first,
second, third mode.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_WORD = re.compile(r"(?:(send|recv)(\d+):)?(F|BW|B|W|O|L|R[b-f]?)(\d+)\.(\d+)(?:@(\d+))?((?:![A-Z]\w*\.\d+)*)")


class Step(NamedTuple):
    """One step of a rank's program: a pass, or the sending or receipt of the tensor that a pass yields.

    `kind`, `stage` and `microbatch` name the pass. `transfer` is "send" or "recv", and `peer` the other rank of the
    transfer; for a pass they are "" and -1. `stream` 0 is the compute stream. `waits` are names of passes, such as
    `F0.3`, on other streams of the rank that must have ended before.
    """

    kind: str
    stage: int
    microbatch: int
    transfer: str = ""
    peer: int = -1
    stream: int = 0
    waits: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"{self.transfer}{self.peer}:" if self.transfer else ""
        stream = f"@{self.stream}" if self.stream else ""
        return f"{where}{self.name}{stream}{''.join(f'!{one}' for one in self.waits)}"

    @property
    def name(self) -> str:
        return f"{self.kind}{self.stage}.{self.microbatch}"

    @property
    def yields(self) -> tuple[str, int, int]:
        """Name of the tensor that the pass yields: (kind, stage, micro-batch).

        The kind is B for the gradient of the input, whether B or BW computes it.
        """
        return self.kind[0], self.stage, self.microbatch


class Program(NamedTuple):
    """A schedule, of which `schedule` is the name, as ranks run it for `microbatches` micro-batches an iteration.

    `rows[r]` are the steps of rank r in order, and stage s is on rank `rank_of_stage[s]`. `offloaded[s]` is the
    fraction, 0 to 1, of the bytes saved by a forward of stage s that its offload copies to the host.
    """

    schedule: str
    microbatches: int
    rank_of_stage: tuple[int, ...]
    rows: tuple[tuple[Step, ...], ...]
    offloaded: tuple[float, ...]

    @property
    def last_stage(self) -> int:
        return len(self.rank_of_stage) - 1

    @property
    def is_loop(self) -> bool:
        """True if stages are placed as Megatron places them: of p ranks, stage s is on rank s mod p."""
        return all(where == stage % len(self.rows) for stage, where in enumerate(self.rank_of_stage))

    def stages_of(self, rank: int) -> list[int]:
        """Return the stages of a rank, ascending: model chunk i of the rank is entry i."""
        return [stage for stage, where in enumerate(self.rank_of_stage) if where == rank]


def program_of(document: Mapping[str, Any]) -> Program:
    """Return the program in the document of an exported module: `rows` are texts, one a rank, of steps between blanks.

    Its other keys are `schedule` (the name), `microbatches`, `rank_of_stage` and `offloaded` (lists by stage).
    ValueError for an unknown step, KeyError without one of the keys.
    """
    rows = tuple(tuple(map(_step, row.split())) for row in document["rows"])
    where, offloaded = tuple(document["rank_of_stage"]), tuple(document["offloaded"])
    return Program(document["schedule"], document["microbatches"], where, rows, offloaded)


def _step(word: str) -> Step:
    match = _WORD.fullmatch(word)
    if match is None:
        raise ValueError(f"pipesched: found {word!r} in a program; allowed: F0.3, send1:F0.3, recv0:F0.3")
    transfer, peer, kind, stage, microbatch, stream, waits = match.groups()
    names = tuple(waits.split("!")[1:])
    return Step(kind, int(stage), int(microbatch), transfer or "", int(peer or -1), int(stream or 0), names)
