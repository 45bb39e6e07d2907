"""What a run of the list scheduler reads and notes: the columns of its arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

# Numpy arrays of int64; of Python's integers where these would not fit, which only a run that is not compiled can read.
Array = Any

FORWARD, BACKWARD, WEIGHT, WHOLE, NOTHING = 0, 1, 2, 3, -1
# Columns of `Shop.stages`: device, first and last micro-batch, chain, line (-1: none), the ticks of a block with a
# forward of it (-1: none), then for each kind its duration, what it takes at its start, and what it changes in all.
DEVICE, FIRST, STOP, CHAIN, LINE, BLOCK, TICKS, STARTS, TOTALS = *range(7), 10, 14
STAGE_COLUMNS = 18
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
# Columns of `State.now`, of a device while it runs: when it is free, what it holds, the first and the last micro-batch
# under way there and how many of them owe something, when it began; what it runs next: start, kind, stage, and the
# stage whose backward is in one block with it.
FREE, HELD, LOW, HIGH, OWING, OPENED, START, KIND, STAGE, MATE = range(10)
NOW_COLUMNS = 10
# What a micro-batch is on a device: not begun, under way with memory taken or owed, over.
NOT_BEGUN, UNDER_WAY, OVER = 0, 1, 2
# Columns of `State.batches`.
COUNT, HOLDS, OWES = range(3)
NEVER = 2**60


class Shop(NamedTuple):
    """A problem as the kernel reads it, with its backwards run in one way, but for those in blocks.

    `on` are the stages of every device in turn; `owed[d, chain]` is what the forwards of a micro-batch take there. What
    the forward and the backward of stage s wait for on other stages are the rows of `needs` from `needs_at[2 * s]` and
    `needs_at[2 * s + 1]` on. What stage s runs may let the devices `near` from `near_at[s]` on go on. Where the order
    of micro-batches is fixed, `lines` are those of the stages of each line, in turn, and -1 behind them. A row of
    `shares` is, for each micro-batch of a stage in turn, the last one of another that it waits for, -1 for none.
    """

    stages: Array
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
    """What a run prefers. `flags`: backwards split, later devices first, deepest stage first, passes by their ranks;
    how many hundredths of what a block saves a pass waits for its other one (-1: no blocks), and whether forwards alone
    leave memory for one in a block.

    For each stage how many of its micro-batches may be in flight, how long its weight passes wait for what is about to
    become ready, and how long its forwards wait for a gradient. Where passes are chosen by their ranks, the lowest goes
    first of all that start no later than that after the soonest, and `AHEAD` is how many micro-batches further on the
    weight passes of a stage may be run before those of others. `WARM_UP` is how many forwards a stage runs before its
    first backward, neither more nor fewer; 0 where that is open. It does not concern passes chosen by their ranks, nor
    do blocks.
    """

    flags: Array
    stages: Array


class State(NamedTuple):
    """How far a run has come.

    By device `now`, and of its micro-batches `batches`; by stage the next micro-batch of each kind, `turn`, the ends of
    forwards and backwards of each micro-batch, whether its backward was in a block, and when its next forward and
    backward may start (-1: not yet); by line how many of its forwards and backwards have run.
    """

    now: Array
    batches: Array
    turn: Array
    ends: Array
    in_block: Array
    able: Array
    line_turn: Array
