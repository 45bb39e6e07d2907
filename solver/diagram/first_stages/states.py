"""How far each micro-batch has come along a line between two backwards, and which comes after which."""

from __future__ import annotations

import numpy as np

from solver.diagram.first_stages.line import Line, Numbers


def states(line: Line) -> Numbers:
    """Rows: by stage how many forwards have run there of micro-batches whose gradient has not come back.

    No stage has more than the one before. The first row has none anywhere.
    """
    found: list[tuple[int, ...]] = [()]
    for admitted in line.admitted:
        found = [(*row, n) for row in found for n in range(min(admitted - 1, row[-1] if row else admitted) + 1)]
    return np.array(found, np.int64)


def steps(rows: Numbers) -> tuple[Numbers, Numbers]:
    """From which state to which a round leads: all forwards that have run have run, and one gradient came back."""
    pairs = [(n, np.flatnonzero((rows >= row - 1).all(axis=1))) for n, row in enumerate(rows)]
    since = np.concatenate([np.full(len(after), n) for n, after in pairs])
    return since, np.concatenate([after for _, after in pairs])


def count(line: Line) -> int:
    """How many states there are, without listing them."""
    ways = np.ones(line.admitted[0], dtype=object)
    for n, admitted in enumerate(line.admitted):
        if n:
            ways = np.cumsum(ways[::-1])[::-1][: len(ways)].copy()
        ways[admitted:] = 0
    return int(sum(ways))
