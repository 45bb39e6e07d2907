"""Arrays of the compiled local search, and the record of one move.

Arrays are by unit (a pass or a block, by number) unless noted: `order[d, k]` is the k-th unit of device d, of which
there are `count[d]`, and `place` its inverse; `opening[d]` is the tick before which device d does not start. Functions
get `modes` as None if the modes of passes are fixed; otherwise the arcs of an operation joined to a unit are arcs of
that unit too. Where the units are jobs, ticks stand for steps, and each stream counts as a device.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pipesched.int64_arrays import IntArray

Array = Any  # numpy arrays of int64, one dimension unless said


class Shop(NamedTuple):
    """Data of a search over orders that moves leave unchanged.

    Only durations and arcs follow the modes, if these are open. By unit: duration in ticks (in steps where units are
    jobs, as all times here), device, line (units of one line keep their order), and memory taken at the start and given
    back at the end. Its predecessors are `waits_for[k]`, each with the lag `waits_lag[k]` in ticks, for k from
    `waits_at[n]` to `waits_at[n + 1]` (exclusive); its successors are given by `feeds_at`, `feeds_to` and `feeds_lag`
    likewise. By device: memory `capacity`, -1 without a limit.
    """

    ticks: Array
    device: Array
    line: Array
    takes: Array
    gives: Array
    capacity: Array
    waits_at: Array
    waits_for: Array
    waits_lag: Array
    feeds_at: Array
    feeds_to: Array
    feeds_lag: Array


class Move(NamedTuple):
    """A move made in the orders; `fits` is True if memory suffices on its device, after an exchange on all devices.

    The unit at place `source` of device `d` went to place `target`. If `d` is `EXCHANGE`, rows `source` and `target` of
    `groups` changed places, and `high` is -1; if it is `NOTHING`, no move was made. The move changed places `low` to
    `high` of the device and units of rank `first` to `last`, all included; a rank is a place in the topological
    sequence. Units that had no place before are at the end of the sequence, up to `end` (exclusive).
    """

    d: int
    source: int
    target: int
    low: int
    high: int
    first: int
    last: int
    end: int
    fits: bool


class Modes(NamedTuple):
    """Costs and memory of operations by mode, and the edits of the current move.

    `of[n]` has for operation n the columns that `modes.py` names, `mate[n]` the F joined to it (-1: none). A line is a
    role (F, B or W) on a stage. `block[l, m]` is the duration in ticks of a block of a forward of line l and a backward
    of line m, -1 if there is none, and `gains[l, m]` is 1 if that is shorter than the two in turn. `twin[0, a]` is the
    index in `feeds_to` of arc a of `waits_for`, `twin[1, a]` that in `waits_for` of arc a of `feeds_to`. `log` has the
    edits of the current move, `touched` the places and ranks that they extend over (`mode_edits.py`).
    """

    of: Array
    mate: Array
    block: Array
    gains: Array
    twin: Array
    log: Array
    touched: Array


class Rows(NamedTuple):
    """The order of every device, and the rank of every operation in the topological sequence last simulated.

    `order[d, k]` is the unit at place k of device d, which has `count[d]`; `place[n]` is the place of unit n (-1:
    none), `rank[n]` its index in the sequence, from 0 over all devices (`ABSENT`, 2**62, if it has no place).
    """

    order: Array
    count: Array
    place: Array
    rank: Array


class Times(NamedTuple):
    """Starts and tails of the current schedule, its topological sequence, and working arrays, by unit.

    `tail` is the longest path from a unit's end to the end of a device, less the opening of that device. `new_start`
    equals `start` except while a move is simulated; `changed` has the units for which it may differ, `marked[k]` the
    number of the last simulation that reached rank k. `fresh` is the part of the sequence being simulated, each unit of
    which still waits for `missing` others. `clock` has the number of the last simulation, the number of changed units,
    and the lengths of the sequence and of its new part.
    """

    start: IntArray
    new_start: IntArray
    tail: IntArray
    sequence: IntArray
    fresh: IntArray
    missing: IntArray
    changed: IntArray
    marked: IntArray
    clock: IntArray
