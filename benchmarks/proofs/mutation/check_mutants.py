"""Mistakes made by hand in the checks of these bounds: each accepts more, or refuses what is right."""

from __future__ import annotations

from benchmarks.proofs.mutation.mutant import BLOCKS, PAIRS, PLAIN, SPAN, WITH_BLOCKS, HandMade, of_file

CHECK_MUTANTS: tuple[HandMade, ...] = (
    *of_file(
        "pipesched/checking/crossing_below/argument.py",
        ("tasks count as passes", "not problem.network.one_task_each or", "False or", ()),
        ("ways to save memory are not seen", "one_task_each or problem.network.options:", "one_task_each:", ()),
        (
            "the span counts every device",
            "makespan = problem.objective is Objective.MAKESPAN",
            "makespan = True",
            (SPAN,),
        ),
    ),
    *of_file(
        "pipesched/checking/crossing_below/orders.py",
        ("numbers of any size", ">= FOREVER:", "< 0:", ()),
        ("what is left out ends later", "return min(below, int(", "return min(below + 1, int(", PLAIN),
        ("nothing left ends later", "            return below", "            return below + 1", PLAIN),
        (
            "over when only blocks lead on",
            "if not len(keys) and not len(waits[0]):",
            "if not len(keys):",
            PAIRS,
        ),
        (
            "what blocks lead to is forgotten",
            "[after[0], waits[0]]), np.concatenate([after[1], waits[1]])",
            "[after[0]]), np.concatenate([after[1]])",
            PAIRS,
        ),
        (
            "what ends a tick below the value is left out",
            "+ follows[time] >= below:",
            "+ follows[time] >= below - 1:",
            PLAIN,
        ),
        ("all steps have run as often", "(done - run.sum(axis=1, keepdims=True))", "(done + 0 * run[:, :1])", PLAIN),
        ("the span counts every device", "ends.max(axis=1) if makespan else ends[:, 0]", "ends.max(axis=1)", (SPAN,)),
        ("the last end", ").min(initial=below)", ").max(initial=0)", PLAIN),
    ),
    *of_file(
        "pipesched/checking/crossing_below/apart.py",
        ("digits alone decide", "tops and _no_later(kept[one], times)", "tops", PLAIN),
        ("others become the latest", "= min(times[nearest, time],", "= max(times[nearest, time],", PLAIN),
        ("others are left out", "_make_earlier(rest, width)", "pass", PLAIN),
        ("sums count as orders", "sums * size + np.arange(size)", "sums * size", PLAIN),
        ("one order of each group", "at[group] : at[group + 1]]]", "at[group] : at[group] + 1]]", PLAIN),
    ),
    *of_file(
        "pipesched/checking/crossing_below/rest.py",
        ("the span counts every device", "None if makespan else counted + 1", "None", (SPAN,)),
        (
            "the longest rest of all steps",
            "min(np.int64(found[time]), now[time])",
            "max(np.int64(found[time]) % FOREVER, now[time])",
            PLAIN,
        ),
        (
            "a weight pass is left of a block",
            "    now[whole + device] += ticks\n",
            "    now[whole + device] += ticks + way.after[g]\n",
            PAIRS,
        ),
        (
            "a block's gradient ends later",
            "start = max(ticks + ends, now[free:].max())",
            "start = max(ticks + ends + 1, now[free:].max())",
            PAIRS,
        ),
        (
            "the way there takes a tick more",
            "now[which] = start + way.before[n]",
            "now[which] = start + way.before[n] + 1",
            PLAIN,
        ),
        (
            "the way of a block's gradient takes a tick more",
            "= start + way.before[g]",
            "= start + way.before[g] + 1",
            PAIRS,
        ),
        ("the one that is back still waits", "if back else max(", "if back > 1 else max(", PLAIN),
        (
            "the gradient that is back still waits",
            "    if not back:\n",
            "    if back >= 0:\n",
            PAIRS,
        ),
        (
            "others start after this step ends",
            "start = max(start, now[free:].max())  #",
            "start = max(start, way.ticks[n] + now[free:].max())  #",
            PLAIN,
        ),
        (
            "weight passes count twice",
            "now[whole + device] += way.ticks[n] + way.after[n]",
            "now[whole + device] += way.ticks[n] + 2 * way.after[n]",
            PLAIN,
        ),
    ),
    *of_file(
        "pipesched/checking/crossing_blocks/argument.py",
        (
            "blocks of one stage alone",
            "where[forward] == where[gradient]",
            "forward == gradient",
            (WITH_BLOCKS + "V",),
        ),
        ("blocks take a tick more", "found[n, len(down) + g] = ticks", "found[n, len(down) + g] = ticks + 1", BLOCKS),
        ("tasks count as passes", "not problem.network.one_task_each or", "False or", ()),
        ("ways to save memory are not seen", "one_task_each or problem.network.options:", "one_task_each:", ()),
    ),
    *of_file(
        "pipesched/checking/crossing_blocks/orders.py",
        ("what blocks lead to is forgotten", "waits = behind", "waits = behind[0][:0], behind[1][:0]", BLOCKS),
        (
            "the span counts every device",
            "ends.max(axis=1) if makespan else ends[:, 0]",
            "ends.max(axis=1)",
            (WITH_BLOCKS + "span", WITH_BLOCKS + "V"),
        ),
        (
            "a weight pass is left of a block",
            "times[whole + one] += ticks",
            "times[whole + one] += ticks + way.after[g]",
            BLOCKS,
        ),
        ("no more micro-batches begin", "reached[0] < way.microbatches, way)", "False, way)", BLOCKS),
        (
            "a gradient's way takes a tick more",
            "times[gradient] + way.before[g])",
            "times[gradient] + way.before[g] + 1)",
            BLOCKS,
        ),
        (
            "a forward's way takes twice as long",
            "times[forward] + way.before[n])",
            "times[forward] + 2 * way.before[n])",
            (WITH_BLOCKS + "V", *BLOCKS),
        ),
        (
            "no weight pass may wait before a block",
            "times[whole + one] - may * way.weight[one])",
            "times[whole + one])",
            (WITH_BLOCKS + "room after W", *BLOCKS),
        ),
        (
            "others start after the block ends",
            "times[place] = max(times[place], start)",
            "times[place] = max(times[place], start + ticks)",
            BLOCKS,
        ),
    ),
)
