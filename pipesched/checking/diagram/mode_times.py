"""Times of labels after moves of modelled stages with activation modes."""

from __future__ import annotations

from pipesched.checking.diagram.mode_steps import ANY, COPIED, END, FORWARD, FREE, RUN, Move, Orders, Times, sum_over


def run(orders: Orders, times: Times, move: Move, over: int | None) -> Times | None:
    """Return the times after a move; None if an offload, the first of which ends at `over`, ends before the move.

    That offload's end is a move of its own, taken before this one.
    """
    way, new = move.way, [one[:] for one in times]
    if way.waits and move.phase == COPIED:
        end = new[way.ran].pop(0)
        new[FREE] = [max(one, end) for one in new[FREE]]
        return new if end == over else None
    if move.phase == FORWARD:
        start = _forward(orders, new, move)
    elif move.phase == len(way.holds) - 1:
        start = _gradient(orders, new, move)
    else:
        start = _save(orders, new, move)
    return None if over is not None and start >= over else new


def _forward(orders: Orders, new: Times, move: Move) -> int:
    one = orders.kept[move.way.stage]
    soonest = new[one.comes].pop(0) if one.before is not None else 0 if orders.owner is not None else one.times.begins
    start, end = _step(orders, new, one.device, one.device, (soonest, one.times.forward, 0), move.open_)
    if one.after is not None:
        after = orders.kept[one.after]
        new[after.comes].append(end + after.times.begins - one.times.begins - one.times.forward)
    new[move.way.ready].append(end + one.times.turns - one.times.begins - one.times.forward)
    if move.way.waits:
        new[move.way.waits].append(end)
    return start


def _gradient(orders: Orders, new: Times, move: Move) -> int:
    one = orders.kept[move.way.stage]
    soonest = max(new[move.way.ready].pop(0), new[one.turns].pop(0) if one.after is not None else 0)
    start, end = _step(orders, new, one.device, one.device, (soonest, one.times.gradient, one.later), move.open_)
    if one.before is not None:
        before = orders.kept[one.before]
        new[before.turns].append(end + before.times.turns - one.times.returned)
    elif orders.owner is None and sum_over(one.left, move.state) == 0:
        new[END][0] = max(new[END][0], end + one.back)
    return start


def _save(orders: Orders, new: Times, move: Move) -> int:
    """Run a copy or recomputation of the mode's first waiting micro-batch; changes `new` and returns the start."""
    way, one = move.way, orders.kept[move.way.stage]
    if way.waits and move.phase == 0:
        start, end = _step(orders, new, way.out[0], one.device, (new[way.waits].pop(0), way.out[1], 0), move.open_)
        new[way.ran].append(end)
        return start
    stream, ticks = way.back if way.waits else (one.device, way.work[0])
    others = _others(orders, new, one.device, move.open_)
    soonest = max(others, new[FREE][one.device]) if move.behind else 0
    start, end = _step(orders, new, stream, one.device, (soonest, ticks, 0), move.open_)
    if stream != one.device and not move.behind:
        new[FREE][one.device] = max(new[FREE][one.device], others - move.later)
    nth = move.state[way.slots[-1]] - 1
    new[way.ready][nth] = max(new[way.ready][nth], end)
    return start


def _step(
    orders: Orders, new: Times, stream: int, device: int, what: tuple[int, int, int], open_: int
) -> tuple[int, int]:
    """Run a step on a stream; changes `new` and returns its start and end.

    `what` is the earliest start, the ticks, and the weight work added; `open_` is the number of weight passes that may
    be pending.
    """
    soonest, ticks, later = what
    start = max(new[FREE][stream], soonest)
    if stream == device:
        start = max(start, _others(orders, new, device, open_))
        new[RUN][device] = max(new[RUN][device], start) + ticks + later
    new[FREE] = [max(one, start) for one in new[FREE]]
    new[FREE][stream] = start + ticks
    return start, start + ticks


def _others(orders: Orders, times: Times, device: int, open_: int) -> int:
    """Return the end of all weight passes but `open_` pending ones; 0 if any number may be pending."""
    return 0 if open_ == ANY else times[RUN][device] - open_ * orders.longest[device]
