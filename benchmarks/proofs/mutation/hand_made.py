"""Mistakes made by hand in the bounds below a value and with blocks, and in their checks: each claims or accepts more.

Every sentence of the two arguments has some: what may be next, what a step or block takes, what remains, what is left
out, and which orders are followed.
"""

from __future__ import annotations

from typing import NamedTuple

_BELOW = "crossings of steps below a value, "
_SPLIT, _SPAN, _V = _BELOW + "room after W", _BELOW + "span", _BELOW + "V"
_PAIRS = tuple(
    f"{_BELOW}blocks, {name}" for name in ("one backward", "one stage a device", "makespan", "split backwards")
)
_WITH_BLOCKS = "crossings with blocks, "
_BLOCKS = tuple(_WITH_BLOCKS + name for name in ("one backward", "span", "split backwards"))
_PLAIN = (_SPLIT, _SPAN, _BELOW + "makespan")


class HandMade(NamedTuple):
    """A text of a file, which is there once, and what it becomes; and the branches of an attack that must refute it."""

    file: str
    mistake: str
    before: str
    after: str
    branches: tuple[str, ...]


def _of(file: str, *rows: tuple[str, str, str, tuple[str, ...]]) -> tuple[HandMade, ...]:
    return tuple(HandMade(file, *row) for row in rows)


HAND_MADE: tuple[HandMade, ...] = (
    *_of(
        "solver/bounds/crossing_below/moves.py",
        ("one fewer in flight", "ran[0] < steps.in_flight else", "ran[0] < steps.in_flight - 1 else", _PLAIN),
        (
            "steps only where two may be next",
            "ran[step - 1] > ran[step] else",
            "ran[step - 1] > ran[step] + 1 else",
            _PLAIN,
        ),
        ("room for one unit less", "if held > room or", "if held >= room or", _PLAIN),
        (
            "the oldest needs room though it is next",
            "(oldest < ran[step] and younger",
            "(oldest <= ran[step] and younger",
            (_V, _SPLIT),
        ),
        ("one unit less for the oldest", "> room):", ">= room):", (_V, _BELOW + "interleaved")),
        ("the oldest counts as younger", "ran[n] - oldest - 1)", "ran[n] - oldest)", (_V, _BELOW + "interleaved")),
        (
            "one weight pass fewer may wait",
            "(room - held) // steps",
            "(room - held) // steps.waiting[device] - 1 + 0 * steps",
            (*_PLAIN, _BELOW + "makespan"),
        ),
        ("the room of a step counts twice for what waits", "= (room - held) //", "= (room - held - takes) //", _PLAIN),
        (
            "no block at the chain's last stage",
            "range(step + 1, count):",
            "range(step + 2, count):",
            _PAIRS,
        ),
        (
            "a block only if nothing else may be next",
            "and pending[gradient] != _NOT_NEXT",
            "and pending[gradient] != _NOT_NEXT and found < 2",
            _PAIRS,
        ),
    ),
    *_of(
        "solver/bounds/crossing_below/remaining.py",
        ("the span counts every device", "slice(None) if steps.makespan else slice(1)", "slice(None)", (_SPAN,)),
        (
            "the longest rest of all steps",
            "min(np.int64(found[state, time]), row[time])",
            "max(np.int64(found[state, time]) % ENDLESS, row[time])",
            _PLAIN,
        ),
        ("a block takes a tick more", "else blocks[step, gradient]\n", "else blocks[step, gradient] + 1\n", _PAIRS),
        (
            "a weight pass is left of a block",
            "if gradient == NONE else ticks\n",
            "if gradient == NONE else ticks + steps.later[gradient]\n",
            _PAIRS,
        ),
        (
            "micro-batches stay in their places when one is through",
            "shift = 1 if max(step, gradient) == len(ran) - 1 else 0",
            "shift = 0",
            _PLAIN,
        ),
        ("the one that is through still waits", "if ran[step] >= shift:", "if ran[step] >= 0:", _PLAIN),
        (
            "the gradient that is through still waits",
            "and ran[gradient] >= shift:",
            "and ran[gradient] >= 0:",
            _PAIRS,
        ),
        (
            "others start after this step ends",
            "max(started, np.int64(rest[other]))  #",
            "max(started, ticks + np.int64(rest[other]))  #",
            _PLAIN,
        ),
        (
            "the way there takes a tick more",
            "row[ran[step]] = started + steps.lag[step]",
            "row[ran[step]] = started + steps.lag[step] + 1",
            _PLAIN,
        ),
        (
            "the way of a block's gradient takes a tick more",
            "= started + steps.lag[gradient]",
            "= started + steps.lag[gradient] + 1",
            _PAIRS,
        ),
        (
            "weight passes count twice",
            "row[whole + device] += work",
            "row[whole + device] += work + steps.later[step]",
            _PLAIN,
        ),
        ("no weight pass may wait", "started - pending * steps.longest[device])", "started)", _PLAIN),
        ("one weight pass fewer may wait", "started - pending *", "started - max(0, pending - 1) *", _PLAIN),
        ("what ends a tick below the value is left out", "+ row[time] < value", "+ row[time] < value - 1", _PLAIN),
        ("rests are too large for their numbers", "or longest >= ENDLESS", "or longest < 0", _PLAIN),
        ("blocks do not count for how large numbers become", "lag.sum() + in_blocks)", "lag.sum())", _PAIRS),
    ),
    *_of(
        "solver/bounds/crossing_below/follow.py",
        ("what is left out ends never", "return Least(min(best, value), used)", "return Least(best, used)", _PLAIN),
        ("what is left out ends a tick later", "min(best, value), used)", "min(best, value + 1), used)", _PLAIN),
        ("the last end, not the least", "min(best, found.ended), used", "found.ended, used", _PLAIN),
        (
            "what blocks lead to is forgotten",
            "_joined([further, *found.near])",
            "_joined([none, *found.near])",
            _PAIRS,
        ),
        (
            "over when only blocks lead on",
            "while len(layer.keys) or len(further.keys):",
            "while len(layer.keys):",
            _PAIRS,
        ),
        (
            "rests of a layer too early",
            "_below(keys, labels, rest.layers[done + 1], value)",
            "_below(keys, labels, rest.layers[done], value)",
            _PLAIN,
        ),
        (
            "labels beyond the first are left out",
            "merged(now.keys[order], now.labels[order], width)[:3]",
            "merged(now.keys[order][::2], now.labels[order][::2], width)[:3]",
            _PLAIN,
        ),
    ),
    *_of(
        "solver/bounds/crossing_below/bound.py",
        ("tasks count as passes", "not problem.network.one_task_each:", "False:", _PLAIN),
        ("ways to save memory are not seen", "if problem.network.options or not", "if not", _PLAIN),
        ("another value in the evidence", "devices, width, value)", "devices, width, value - 1)", ()),
        ("fewer labels in the evidence", "devices, width, value)", "devices, 1, value)", ()),
    ),
    *_of(
        "solver/bounds/crossing_blocks/blocks.py",
        (
            "blocks of one stage alone",
            "where[forward] == where[backward]",
            "forward == backward",
            (_WITH_BLOCKS + "V",),
        ),
        ("blocks take a tick more", "is None else ticks", "is None else ticks + 1", _BLOCKS),
    ),
    *_of(
        "solver/bounds/crossing_blocks/layers.py",
        ("blocks not of neighbours", "for other in range(one):", "for other in range(one - 1):", _BLOCKS),
        (
            "a weight pass is left of a block",
            "    done[device] += ticks",
            "    done[device] += ticks + steps.later[at[other]]",
            _BLOCKS,
        ),
        ("no more micro-batches begin", "now_begun < steps.microbatches, steps)", "False, steps)", _BLOCKS),
        (
            "the span counts every device",
            "ends.max() if steps.makespan else ends[0]",
            "ends.max()",
            (_WITH_BLOCKS + "span", _WITH_BLOCKS + "V"),
        ),
        ("one fewer in flight", "flying == steps.in_flight)", "flying == steps.in_flight - 1)", _BLOCKS),
        ("in turn with one between", "at[one - 1] > at[one])", "at[one - 1] > at[one] + 1)", _BLOCKS),
        (
            "a block starts after its forward's way twice",
            "label[one] + steps.lag[step])",
            "label[one] + 2 * steps.lag[step])",
            (_WITH_BLOCKS + "V", *_BLOCKS),
        ),
        (
            "a gradient's way takes a tick more",
            "label[other] + steps.lag[at[other]])",
            "label[other] + steps.lag[at[other]] + 1)",
            _BLOCKS,
        ),
        (
            "no weight pass may wait before a block",
            "done[device] - pending * steps.longest[device])",
            "done[device])",
            (_WITH_BLOCKS + "room after W", *_BLOCKS),
        ),
        ("the oldest stays in its place", "if through:", "if through and flying > 1:", _BLOCKS),
        ("ends of some orders alone", "ended = min(ended,", "ended = max(ended % NEVER,", _BLOCKS),
    ),
    *_of(
        "solver/bounds/crossing_blocks/bound.py",
        ("what blocks lead to is forgotten", "_joined([further, *one_more])", "_joined([none, *one_more])", _BLOCKS),
        (
            "over when only blocks lead on",
            "while len(layer.keys) or len(further.keys):",
            "while len(layer.keys):",
            _BLOCKS,
        ),
        ("a layer that is broken off", "len(near.keys) + len(further.keys) > _LAYER", "len(near.keys) > _LAYER", ()),
        ("tasks count as passes", "or not problem.network.one_task_each:", "or False:", _BLOCKS),
        ("ways to save memory are not seen", "or problem.network.options or", "or False or", _BLOCKS),
    ),
    *_of(
        "pipesched/checking/crossing_below/argument.py",
        ("tasks count as passes", "not problem.network.one_task_each or", "False or", ()),
        ("ways to save memory are not seen", "one_task_each or problem.network.options:", "one_task_each:", ()),
        (
            "the span counts every device",
            "makespan = problem.objective is Objective.MAKESPAN",
            "makespan = True",
            (_SPAN,),
        ),
    ),
    *_of(
        "pipesched/checking/crossing_below/orders.py",
        ("numbers of any size", ">= FOREVER:", "< 0:", ()),
        ("what is left out ends later", "return min(below, int(", "return min(below + 1, int(", _PLAIN),
        ("nothing left ends later", "            return below", "            return below + 1", _PLAIN),
        (
            "over when only blocks lead on",
            "if not len(run) and not len(waits[0]):",
            "if not len(run):",
            _PAIRS,
        ),
        (
            "what blocks lead to is forgotten",
            "zip(after, waits, strict=True))",
            "zip(after, (waits[0][:0], waits[1][:0]), strict=True))",
            _PAIRS,
        ),
        ("what ends a tick below the value is left out", ">= value:", ">= value - 1:", _PLAIN),
        ("the span counts every device", "ends.max(axis=1) if makespan else ends[:, 0]", "ends.max(axis=1)", (_SPAN,)),
        ("the last end", ").min(initial=below)", ").max(initial=0)", _PLAIN),
    ),
    *_of(
        "pipesched/checking/crossing_below/rest.py",
        ("the span counts every device", "None if makespan else counted + 1", "None", (_SPAN,)),
        (
            "the longest rest of all steps",
            "min(np.int64(found[time]), now[time])",
            "max(np.int64(found[time]) % FOREVER, now[time])",
            _PLAIN,
        ),
        (
            "a weight pass is left of a block",
            "    now[whole + device] += ticks\n",
            "    now[whole + device] += ticks + way.after[g]\n",
            _PAIRS,
        ),
        (
            "a block's gradient ends later",
            "start = max(ticks + ends, now[free:].max())",
            "start = max(ticks + ends + 1, now[free:].max())",
            _PAIRS,
        ),
        (
            "the way there takes a tick more",
            "now[which] = start + way.before[n]",
            "now[which] = start + way.before[n] + 1",
            _PLAIN,
        ),
        (
            "the way of a block's gradient takes a tick more",
            "= start + way.before[g]",
            "= start + way.before[g] + 1",
            _PAIRS,
        ),
        ("the one that is back still waits", "if back else max(", "if back > 1 else max(", _PLAIN),
        (
            "the gradient that is back still waits",
            "    if not back:\n",
            "    if back >= 0:\n",
            _PAIRS,
        ),
        (
            "others start after this step ends",
            "start = max(start, now[free:].max())  #",
            "start = max(start, way.ticks[n] + now[free:].max())  #",
            _PLAIN,
        ),
        (
            "weight passes count twice",
            "now[whole + device] += way.ticks[n] + way.after[n]",
            "now[whole + device] += way.ticks[n] + 2 * way.after[n]",
            _PLAIN,
        ),
    ),
    *_of(
        "pipesched/checking/crossing_blocks/argument.py",
        (
            "blocks of one stage alone",
            "where[forward] == where[gradient]",
            "forward == gradient",
            (_WITH_BLOCKS + "V",),
        ),
        ("blocks take a tick more", "found[n, len(down) + g] = ticks", "found[n, len(down) + g] = ticks + 1", _BLOCKS),
        ("tasks count as passes", "not problem.network.one_task_each or", "False or", ()),
        ("ways to save memory are not seen", "one_task_each or problem.network.options:", "one_task_each:", ()),
    ),
    *_of(
        "pipesched/checking/crossing_blocks/orders.py",
        ("what blocks lead to is forgotten", "waits = behind", "waits = behind[0][:0], behind[1][:0]", _BLOCKS),
        (
            "the span counts every device",
            "ends.max(axis=1) if makespan else ends[:, 0]",
            "ends.max(axis=1)",
            (_WITH_BLOCKS + "span", _WITH_BLOCKS + "V"),
        ),
        (
            "a weight pass is left of a block",
            "times[whole + one] += ticks",
            "times[whole + one] += ticks + way.after[g]",
            _BLOCKS,
        ),
        ("no more micro-batches begin", "reached[0] < way.microbatches, way)", "False, way)", _BLOCKS),
        (
            "a gradient's way takes a tick more",
            "times[gradient] + way.before[g])",
            "times[gradient] + way.before[g] + 1)",
            _BLOCKS,
        ),
        (
            "a forward's way takes twice as long",
            "times[forward] + way.before[n])",
            "times[forward] + 2 * way.before[n])",
            (_WITH_BLOCKS + "V", *_BLOCKS),
        ),
        (
            "no weight pass may wait before a block",
            "times[whole + one] - may * way.weight[one])",
            "times[whole + one])",
            (_WITH_BLOCKS + "room after W", *_BLOCKS),
        ),
        (
            "others start after the block ends",
            "times[place] = max(times[place], start)",
            "times[place] = max(times[place], start + ticks)",
            _BLOCKS,
        ),
    ),
)
