"""Mistakes made by hand in the bounds below a value and with blocks: each claims more.

Every sentence of the two arguments has some: what may be next, what a step or block takes, what remains, what is left
out, and which orders are followed.
"""

from __future__ import annotations

from benchmarks.proofs.mutation.mutant import (
    BELOW,
    BLOCKS,
    PAIRS,
    PLAIN,
    SPAN,
    SPLIT,
    WITH_BLOCKS,
    HandMade,
    V,
    of_file,
)

BOUND_MUTANTS: tuple[HandMade, ...] = (
    *of_file(
        "solver/bounds/crossing_below/moves.py",
        ("one fewer in flight", "ran[0] < steps.in_flight else", "ran[0] < steps.in_flight - 1 else", PLAIN),
        (
            "steps only where two may be next",
            "ran[step - 1] > ran[step] else",
            "ran[step - 1] > ran[step] + 1 else",
            PLAIN,
        ),
        ("room for one unit less", "if held > room or", "if held >= room or", PLAIN),
        (
            "the oldest needs room though it is next",
            "(oldest < ran[step] and younger",
            "(oldest <= ran[step] and younger",
            (V, SPLIT),
        ),
        ("one unit less for the oldest", "> room):", ">= room):", (V, BELOW + "interleaved")),
        ("the oldest counts as younger", "ran[n] - oldest - 1)", "ran[n] - oldest)", (V, BELOW + "interleaved")),
        (
            "one weight pass fewer may wait",
            "(room - held) // steps",
            "(room - held) // steps.waiting[device] - 1 + 0 * steps",
            (*PLAIN, BELOW + "makespan"),
        ),
        ("the room of a step counts twice for what waits", "= (room - held) //", "= (room - held - takes) //", PLAIN),
        (
            "no block at the chain's last stage",
            "range(step + 1, count):",
            "range(step + 2, count):",
            PAIRS,
        ),
        (
            "a block only if nothing else may be next",
            "and pending[gradient] != _NOT_NEXT",
            "and pending[gradient] != _NOT_NEXT and found < 2",
            PAIRS,
        ),
    ),
    *of_file(
        "solver/bounds/crossing_below/remaining.py",
        ("the span counts every device", "slice(None) if steps.makespan else slice(1)", "slice(None)", (SPAN,)),
        (
            "the longest rest of all steps",
            "min(np.int64(found[state, time]), row[time])",
            "max(np.int64(found[state, time]) % ENDLESS, row[time])",
            PLAIN,
        ),
        ("a block takes a tick more", "else blocks[step, gradient]\n", "else blocks[step, gradient] + 1\n", PAIRS),
        (
            "a weight pass is left of a block",
            "if gradient == NONE else ticks\n",
            "if gradient == NONE else ticks + steps.later[gradient]\n",
            PAIRS,
        ),
        (
            "micro-batches stay in their places when one is through",
            "shift = 1 if max(step, gradient) == len(ran) - 1 else 0",
            "shift = 0",
            PLAIN,
        ),
        ("the one that is through still waits", "if ran[step] >= shift:", "if ran[step] >= 0:", PLAIN),
        (
            "the gradient that is through still waits",
            "and ran[gradient] >= shift:",
            "and ran[gradient] >= 0:",
            PAIRS,
        ),
        (
            "others start after this step ends",
            "max(started, np.int64(rest[other]))  #",
            "max(started, ticks + np.int64(rest[other]))  #",
            PLAIN,
        ),
        (
            "the way there takes a tick more",
            "row[ran[step]] = started + steps.lag[step]",
            "row[ran[step]] = started + steps.lag[step] + 1",
            PLAIN,
        ),
        (
            "the way of a block's gradient takes a tick more",
            "= started + steps.lag[gradient]",
            "= started + steps.lag[gradient] + 1",
            PAIRS,
        ),
        (
            "weight passes count twice",
            "row[whole + device] += work",
            "row[whole + device] += work + steps.later[step]",
            PLAIN,
        ),
        ("no weight pass may wait", "started - pending * steps.longest[device])", "started)", PLAIN),
        ("one weight pass fewer may wait", "started - pending *", "started - max(0, pending - 1) *", PLAIN),
        ("what ends a tick below the value is left out", "+ row[time] < value", "+ row[time] < value - 1", PLAIN),
        ("rests are too large for their numbers", "or longest >= ENDLESS", "or longest < 0", PLAIN),
        ("blocks do not count for how large numbers become", "lag.sum() + in_blocks)", "lag.sum())", PAIRS),
    ),
    *of_file(
        "solver/bounds/crossing_below/follow.py",
        ("what is left out ends never", "return Least(min(best, value), used)", "return Least(best, used)", PLAIN),
        ("what is left out ends a tick later", "min(best, value), used)", "min(best, value + 1), used)", PLAIN),
        ("the last end, not the least", "min(best, found.ended), used", "found.ended, used", PLAIN),
        (
            "what blocks lead to is forgotten",
            "_joined([further, *found.near])",
            "_joined([none, *found.near])",
            PAIRS,
        ),
        (
            "over when only blocks lead on",
            "while len(layer.keys) or len(further.keys):",
            "while len(layer.keys):",
            PAIRS,
        ),
        (
            "rests of a layer too early",
            "_below(keys, labels, rest.layers[done + 1], value)",
            "_below(keys, labels, rest.layers[done], value)",
            PLAIN,
        ),
        (
            "labels beyond the first are left out",
            "merged(now.keys[order], now.labels[order], width)[:3]",
            "merged(now.keys[order][::2], now.labels[order][::2], width)[:3]",
            PLAIN,
        ),
    ),
    *of_file(
        "solver/bounds/crossing_below/bound.py",
        ("tasks count as passes", "not problem.network.one_task_each:", "False:", PLAIN),
        ("ways to save memory are not seen", "if problem.network.options or not", "if not", PLAIN),
        ("another value in the evidence", "devices, width, value)", "devices, width, value - 1)", ()),
        ("fewer labels in the evidence", "devices, width, value)", "devices, 1, value)", ()),
    ),
    *of_file(
        "solver/bounds/crossing_blocks/blocks.py",
        (
            "blocks of one stage alone",
            "where[forward] == where[backward]",
            "forward == backward",
            (WITH_BLOCKS + "V",),
        ),
        ("blocks take a tick more", "is None else ticks", "is None else ticks + 1", BLOCKS),
    ),
    *of_file(
        "solver/bounds/crossing_blocks/layers.py",
        ("blocks not of neighbours", "for other in range(one):", "for other in range(one - 1):", BLOCKS),
        (
            "a weight pass is left of a block",
            "    done[device] += ticks",
            "    done[device] += ticks + steps.later[at[other]]",
            BLOCKS,
        ),
        ("no more micro-batches begin", "now_begun < steps.microbatches, steps)", "False, steps)", BLOCKS),
        (
            "the span counts every device",
            "ends.max() if steps.makespan else ends[0]",
            "ends.max()",
            (WITH_BLOCKS + "span", WITH_BLOCKS + "V"),
        ),
        ("one fewer in flight", "flying == steps.in_flight)", "flying == steps.in_flight - 1)", BLOCKS),
        ("in turn with one between", "at[one - 1] > at[one])", "at[one - 1] > at[one] + 1)", BLOCKS),
        (
            "a block starts after its forward's way twice",
            "label[one] + steps.lag[step])",
            "label[one] + 2 * steps.lag[step])",
            (WITH_BLOCKS + "V", *BLOCKS),
        ),
        (
            "a gradient's way takes a tick more",
            "label[other] + steps.lag[at[other]])",
            "label[other] + steps.lag[at[other]] + 1)",
            BLOCKS,
        ),
        (
            "no weight pass may wait before a block",
            "done[device] - pending * steps.longest[device])",
            "done[device])",
            (WITH_BLOCKS + "room after W", *BLOCKS),
        ),
        ("the oldest stays in its place", "if through:", "if through and flying > 1:", BLOCKS),
        ("ends of some orders alone", "ended = min(ended,", "ended = max(ended % NEVER,", BLOCKS),
    ),
    *of_file(
        "solver/bounds/crossing_blocks/bound.py",
        ("what blocks lead to is forgotten", "_joined([further, *one_more])", "_joined([none, *one_more])", BLOCKS),
        (
            "over when only blocks lead on",
            "while len(layer.keys) or len(further.keys):",
            "while len(layer.keys):",
            BLOCKS,
        ),
        ("a layer that is broken off", "len(near.keys) + len(further.keys) > _LAYER", "len(near.keys) > _LAYER", ()),
        ("tasks count as passes", "or not problem.network.one_task_each:", "or False:", BLOCKS),
        ("ways to save memory are not seen", "or problem.network.options or", "or False or", BLOCKS),
    ),
)
