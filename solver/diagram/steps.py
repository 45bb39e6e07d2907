"""Relaxation to steps: the forwards and gradients of some stages, of one chain or several.

Micro-batches of a chain are identical. If their numbers are exchanged on each stage by the order in which they run
there, precedences still hold: the k-th forward of a stage ends before the k-th one of the next stage starts, and so do
the gradients. So on every stage they run in order, and an order of steps gives how many have done each, which leaves
the memory of a device, shared by its chains, as it was at every step; a block of a forward and a gradient, of one chain
or two, keeps its place. If a stage that is not modelled is put on a device of its own with unlimited memory, every
schedule stays feasible: such stages are delays, and so are the paths to a chain's first step and from its last.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.quantities import DeviceId, MemoryArray, StageId, TickArray, Ticks

Numbers = NDArray[np.int64]

# A step of a micro-batch along its chain: an index in arrays that have an entry for each step.
StepId: TypeAlias = int

# The gradient of a move without one, and in general an absent index.
NONE = -1
# `NEVER` is later than any time, and half of it may be added to any time; `NOTHING` is added to irrelevant times.
NEVER, NOTHING = 1 << 62, -(1 << 29)


class Steps(NamedTuple):
    """Steps of micro-batches along the modelled stages of their chain, forwards and back, chain by chain.

    By step: the number of its `device`, its `ticks` outside of blocks, the deferrable ticks of a backward after its
    gradient (`later`), the `lag` from the end of the previous step, or from time 0, and the memory it `takes`, negative
    if it is released; the `first` and the `last` step of its chain, the chain's last `forward` on the device, and the
    memory of a `whole` micro-batch of it there; the number of `microbatches` of the chain, the largest number
    `in_flight` between its first and last step, and where their times begin in a label (`slot`); the least time after
    the last step (`tail`). The weight pass of a gradient occupies memory from the gradient `holder` on, which is
    itself, or a later one of a chain whose stages are tasks. `reach[n, d]` is the least time from the end of the step
    before n to a step on device d, half of `NEVER` if none follows; `blocks[n, g]` are the ticks of a forward and a
    gradient in one block, or -1. In the key of a state a step has a digit of a `base`, and raises the key by `raises`.
    If `decoded` is not empty, several steps share a digit, and it has by the digit's value how many micro-batches have
    done each of them last.

    By device: its `room`, -1 without limit; the least memory of a `waiting` weight pass, the `longest` total of those
    that occupy memory together, and 1 if the end of its work `counts`.

    With an `owner`, else -1, times count from the first start on that device, which is 0, and passes before it may have
    ended at `past` or earlier. `slots` is the number of times in a label before those of devices. `early` if some
    weight passes occupy no memory at first.
    """

    device: Numbers
    ticks: TickArray
    later: TickArray
    lag: TickArray
    takes: MemoryArray
    first: Numbers
    last: Numbers
    forward: Numbers
    whole: MemoryArray
    microbatches: Numbers
    in_flight: Numbers
    slot: Numbers
    tail: TickArray
    holder: Numbers
    reach: TickArray
    blocks: TickArray
    base: Numbers
    raises: Numbers
    decoded: Numbers
    room: MemoryArray
    waiting: MemoryArray
    longest: TickArray
    counts: Numbers
    slots: int
    owner: int
    past: Ticks
    early: bool


class Step(NamedTuple):
    """A forward (`forward` True) or a gradient pass of a stage."""

    stage: StageId
    forward: bool


class ModelledSteps(NamedTuple):
    """The steps of a diagram's modelled `stages`; `device` is the one whose span counts, None for the makespan.

    It is also None for the span of a chain whose first stage is not modelled: time counts from the chain's first
    forward. `passes` has the stage and direction of each step. `ends` has the earliest end of each step, in ticks, if
    its micro-batch is alone, counted from the micro-batch's first forward. `joint`: weight passes of several stages
    occupy memory together.
    """

    stages: tuple[StageId, ...]
    device: DeviceId | None
    passes: tuple[Step, ...]
    steps: Steps
    ends: TickArray
    joint: bool = False


def longest_of(steps: Steps) -> Ticks:
    """Return the ticks of all passes and lags in sequence, which no time in the diagram exceeds.

    Each may be in a block.
    """
    return ticks_of_all(steps.ticks, steps.later, steps.lag, steps.blocks, steps.microbatches)


def ticks_of_all(ticks: TickArray, later: TickArray, lag: TickArray, blocks: TickArray, microbatches: Numbers) -> Ticks:
    """Return the ticks of all passes and lags of all micro-batches in sequence, each pass also in its longest block.

    Arrays are by step: ticks of the pass, of the part of a backward after its gradient (`later`) and of the `lag`
    before it, and the number of micro-batches; `blocks` by forward and gradient step, -1 for none.
    """
    return int(((ticks + later + lag + blocks.max(axis=1).clip(min=0)) * microbatches).sum())
