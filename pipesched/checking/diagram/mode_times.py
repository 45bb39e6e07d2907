"""Times of labels after moves of modelled stages with activation modes."""

from __future__ import annotations

from pipesched.checking.diagram.mode_steps import (
    ANY,
    COPIED,
    END,
    FORWARD,
    FREE,
    RUN,
    ModelledDeviceId,
    Move,
    Orders,
    StreamId,
    Times,
    sum_over,
)
from pipesched.problem.quantities import Ticks


def run(orders: Orders, times: Times, move: Move, over: Ticks | None) -> Times | None:
    """Return the times after a move, as new lists.

    None if the first offload to end, at tick `over`, ends no later than the move starts. An offload's end is a move of
    its own, taken before others: for such a move the result is None unless its end is `over`. `over` None: no offload
    is running.
    """
    mode, new = move.mode, [one[:] for one in times]
    if mode.waits and move.phase == COPIED:
        end = new[mode.ran].pop(0)
        new[FREE] = [max(one, end) for one in new[FREE]]
        return new if end == over else None
    if move.phase == FORWARD:
        start = _forward(orders, new, move)
    elif move.phase == len(mode.holds) - 1:
        start = _gradient(orders, new, move)
    else:
        start = _save(orders, new, move)
    return None if over is not None and start >= over else new


def _forward(orders: Orders, new: Times, move: Move) -> Ticks:
    stage = orders.stages[move.mode.stage]
    soonest = 0 if orders.owner is not None else stage.times.begins
    if stage.before is not None:
        soonest = new[stage.forward_queue].pop(0)
    start, end = _step(orders, new, stage.device, stage.device, (soonest, stage.times.forward, 0), move.open_)
    if stage.after is not None:
        after = orders.stages[stage.after]
        new[after.forward_queue].append(end + after.times.begins - stage.times.begins - stage.times.forward)
    new[move.mode.ready].append(end + stage.times.gradient_begins - stage.times.begins - stage.times.forward)
    if move.mode.waits:
        new[move.mode.waits].append(end)
    return start


def _gradient(orders: Orders, new: Times, move: Move) -> Ticks:
    stage = orders.stages[move.mode.stage]
    soonest = max(new[move.mode.ready].pop(0), new[stage.gradient_queue].pop(0) if stage.after is not None else 0)
    start, end = _step(
        orders, new, stage.device, stage.device, (soonest, stage.times.gradient, stage.later), move.open_
    )
    if stage.before is not None:
        before = orders.stages[stage.before]
        new[before.gradient_queue].append(end + before.times.gradient_begins - stage.times.returned)
    elif orders.owner is None and sum_over(stage.left, move.state) == 0:
        new[END][0] = max(new[END][0], end + stage.back)
    return start


def _save(orders: Orders, new: Times, move: Move) -> Ticks:
    """Run a copy or recomputation of the mode's first waiting micro-batch; changes `new` and returns the start."""
    mode, stage = move.mode, orders.stages[move.mode.stage]
    if mode.waits and move.phase == 0:
        start, end = _step(orders, new, mode.out[0], stage.device, (new[mode.waits].pop(0), mode.out[1], 0), move.open_)
        new[mode.ran].append(end)
        return start
    stream, ticks = mode.back if mode.waits else (stage.device, mode.work[0])
    others = _others(orders, new, stage.device, move.open_)
    soonest = max(others, new[FREE][stage.device]) if move.after_last_step else 0
    start, end = _step(orders, new, stream, stage.device, (soonest, ticks, 0), move.open_)
    if stream != stage.device and not move.after_last_step:
        new[FREE][stage.device] = max(new[FREE][stage.device], others - move.later)
    nth = move.state[mode.slots[-1]] - 1
    new[mode.ready][nth] = max(new[mode.ready][nth], end)
    return start


def _step(
    orders: Orders,
    new: Times,
    stream: StreamId,
    device: ModelledDeviceId,
    what: tuple[Ticks, Ticks, Ticks],
    open_: int,
) -> tuple[Ticks, Ticks]:
    """Run a step on a stream; changes `new` and returns its start and end.

    `stream` equals `device` if it is that device's compute stream. `what` is the earliest start, the ticks, and the
    ticks of weight work added; `open_` is the number of weight passes that may be pending (`ANY`: any number).
    """
    soonest, ticks, later = what
    start = max(new[FREE][stream], soonest)
    if stream == device:
        start = max(start, _others(orders, new, device, open_))
        new[RUN][device] = max(new[RUN][device], start) + ticks + later
    new[FREE] = [max(one, start) for one in new[FREE]]
    new[FREE][stream] = start + ticks
    return start, start + ticks


def _others(orders: Orders, times: Times, device: ModelledDeviceId, open_: int) -> Ticks:
    """Return the tick by which all weight passes of a device but `open_` pending ones have ended.

    0 if any number may be pending (`ANY`).
    """
    return 0 if open_ == ANY else times[RUN][device] - open_ * orders.longest[device]
