"""Data of a list scheduling run: the columns of its arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

# Numpy arrays of int64, or of Python's integers if these would not fit, which only an interpreted run can read.
Array = Any

FORWARD, BACKWARD, WEIGHT, WHOLE, NOTHING = 0, 1, 2, 3, -1
# Columns of `Shop.stages`: device, first micro-batch and the one after the last, chain, line (-1: none), then for each
# kind its duration, what it takes at its start, and what it changes in all.
DEVICE, FIRST, STOP, CHAIN, LINE, TICKS = range(6)
_KINDS = len((FORWARD, BACKWARD, WEIGHT, WHOLE))
STARTS, TOTALS, STAGE_COLUMNS = TICKS + _KINDS, TICKS + 2 * _KINDS, TICKS + 3 * _KINDS
# Columns of `Shop.devices`: whether memory is limited, the room, and where its stages begin and end in `Shop.on`.
LIMITED, ROOM, AT, END = range(4)
DEVICE_COLUMNS = 4
# Columns of `Shop.needs`: the stage waited for, whether its backward, the lag, and the row of `Shop.shares` for which
# micro-batches (-1: the same).
NEEDED, ROLE, LAG, SHARE = range(4)
# Columns of `Rules.stages`; the ranks are of its forwards and of its gradients.
MOST, PATIENCE, YIELDS, RANKS, AHEAD, WARM_UP = 0, 1, 2, 3, 5, 6
RULE_COLUMNS = 7
# Places of `Rules.flags`.
SPLIT, LATER, DEEPEST, RANKED, BLOCKS = range(5)
# Columns of `State.now`, of a device while it runs: when it is free, its memory in use, the first and the last
# micro-batch under way there and how many of them owe something, when it began; what it runs next: start, kind, stage,
# and the stage whose backward is in one block with it.
FREE, IN_USE, LOW, HIGH, OWING, OPENED, START, KIND, STAGE, MATE = range(10)
NOW_COLUMNS = 10
# States of a micro-batch on a device: not begun, in flight with memory taken or still to be freed, over.
NOT_BEGUN, IN_FLIGHT, OVER = 0, 1, 2
# Columns of `State.batches`.
COUNT, HOLDS, OWES = range(3)
NEVER = 2**60


class Shop(NamedTuple):
    """A problem as arrays for the kernel, with its backwards run in one mode, except in blocks; times are in ticks.

    Columns are named in this module. Those of `stages` are device, first micro-batch and the one after the last, chain
    and queue, then by kind of pass the ticks, the memory taken at the start and the change in all; of `devices` 1 if
    memory is limited, the memory, and where its stages begin and end in `on`; of `needs` the stage waited for, its
    kind, the lag, and the row of `shares` (-1: the same micro-batch). `blocks[f, b]` are the ticks of a block of a
    forward of stage f and a backward of stage b (-1: none). `on` are the stages of every device in order; `owed[d,
    chain]` is the memory that the forwards of a micro-batch take there. The predecessors on other stages of the forward
    and backward of stage s are the rows of `needs` from `needs_at[2 * s]` and `needs_at[2 * s + 1]` on. Devices that a
    pass of stage s may enable are those of `near` from `near_at[s]` on. Where the order of micro-batches is fixed,
    `lines` are those of the stages of each queue in order, padded with -1. A row of `shares` is, for each micro-batch
    of a stage in order, the last one of another stage that it waits for, -1 for none.
    """

    stages: Array
    blocks: Array
    devices: Array
    on: Array
    owed: Array
    needs_at: Array
    needs: Array
    near_at: Array
    near: Array
    lines: Array
    shares: Array


class Rules(NamedTuple):
    """Preferences of a run.

    `flags`: 1 for split backwards, later devices first, deepest stage first, passes by their ranks; and the percentage
    of a block's saving that a pass waits for its partner (-1: no blocks).

    `stages` has a row for each stage. `MOST` is the limit of micro-batches in flight, `PATIENCE` the ticks that a
    weight pass waits for a pass about to become ready, `YIELDS` the ticks that a forward waits for a gradient. If
    passes are chosen by ranks, the one of lowest rank is next among all that start at most `YIELDS` ticks after the
    earliest, and `AHEAD` is the number of micro-batches that the weight passes of a stage may be ahead of those of
    others. `WARM_UP` is the exact number of forwards of a stage before its first backward; 0 if that is open. It
    applies neither to passes chosen by their ranks nor to blocks.
    """

    flags: Array
    stages: Array


class State(NamedTuple):
    """Progress of a run; times are in ticks.

    By device: the columns `now`, and in `batches`, for each micro-batch, its state there, the memory it occupies and
    that its forwards still have to take. By stage: the next micro-batch of each kind (`turn`), the ends of the forward
    and backward of each micro-batch (`ends`), True for those whose backward ran in a block (`in_block`), and when the
    next forward and backward may start (`able`, -1: not yet). By queue: the numbers of forwards and backwards that have
    run (`line_turn`).
    """

    now: Array
    batches: Array
    turn: Array
    ends: Array
    in_block: Array
    able: Array
    line_turn: Array
