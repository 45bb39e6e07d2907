"""Modes of a stage that keep less of an activation between forward and backward: offload to the host, or recompute.

Offload as in PipeOffload (arXiv 2503.01328), recomputation as in Chen et al. (arXiv 1604.06174), each decided per stage
and micro-batch. Of one micro-batch an activation is kept, offloaded, or recomputed in one mode.
"""

from __future__ import annotations

from typing import NamedTuple


class Offload(NamedTuple):
    """The copies of an activation to the host and back: ticks and stream of each, and how much of it moves.

    Device memory is free when the copy out ends and taken again when the copy in starts; host memory is taken when the
    copy out starts and free when the copy in ends.
    """

    out_ticks: int
    in_ticks: int
    out_stream: str
    in_stream: str
    amount: int


class Recomputation(NamedTuple):
    """A recomputation: a forward again of so many ticks, of whose activation `keeps` stays from F to it."""

    name: str
    ticks: int
    keeps: int
