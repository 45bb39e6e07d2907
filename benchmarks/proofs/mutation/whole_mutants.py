"""Mistakes made by hand in crossings of steps with whole weight passes, and in their check."""

from __future__ import annotations

from benchmarks.proofs.mutation.mutant import HandMade, of_file

_WHOLE = "crossings of steps with whole weight passes, "
_SPAN = (_WHOLE + "span",)
_LENGTHS = (_WHOLE + "weight passes of several lengths", _WHOLE + "long weight passes, room after W")
_PLAIN = (_WHOLE + "room after W", _WHOLE + "V", _WHOLE + "makespan")

WHOLE_MUTANTS: tuple[HandMade, ...] = (
    *of_file(
        "solver/bounds/crossing_whole/weights.py",
        (
            "weight passes count for every device",
            "on, np.arange(len(steps.room) + 1)",
            "on * 0, np.arange(len(steps.room) + 1)",
            _LENGTHS,
        ),
    ),
    *of_file(
        "solver/bounds/crossing_whole/choices.py",
        (
            "one fewer may wait",
            "if 0 <= pending < waiting:",
            "if 0 <= pending <= waiting and pending > 0:",
            _PLAIN + _LENGTHS,
        ),
        (
            "one more that ends late is as good",
            "ended + ticks <= ready:",
            "ended + ticks <= ready + 2:",
            _PLAIN + _LENGTHS,
        ),
        ("one fewer is as good though it helps", "ended - ticks >= ready and", "ended >= ready and", _PLAIN + _LENGTHS),
        (
            "one fewer is as good where memory needs it",
            "not 0 <= pending <= waiting:",
            "not 0 <= pending < waiting:",
            _PLAIN + _LENGTHS,
        ),
        (
            "a step starts after all that waits",
            "start = max(ready, label[now])",
            "start = max(ready, label[now] + label[at:].sum())",
            _PLAIN,
        ),
        (
            "others start after the step ends",
            "max(label[most + other], start)",
            "max(label[most + other], start + steps.ticks[step])",
            _PLAIN,
        ),
        ("no more micro-batches begin", "        if more:\n", "        if False and more:\n", _PLAIN),
        ("the oldest stays in its place", "    if through:\n", "    if False and through:\n", _PLAIN),
        (
            "what ends late runs in time",
            "if label[now] + work <= free:",
            "if label[now] + work <= free + 3:",
            _PLAIN + _LENGTHS,
        ),
        (
            "one more of a length runs in time",
            "// weights.ticks[last]\n",
            "// weights.ticks[last] + 1\n",
            _PLAIN + _LENGTHS,
        ),
        ("of several lengths one runs first", "elif kinds == 1 and", "elif kinds >= 1 and", _LENGTHS),
        (
            "what waits counts twice",
            "ended += label[at + kind] * weights.ticks[kind]\n    return",
            "ended += 2 * label[at + kind] * weights.ticks[kind]\n    return",
            _PLAIN,
        ),
    ),
    *of_file(
        "solver/bounds/crossing_whole/layers.py",
        ("the span counts every device", "    if steps.makespan:\n", "    if True:\n", _SPAN),
        (
            "what ends a tick below the value is left out",
            "follows[time] >= value:",
            "follows[time] >= value - 1:",
            _PLAIN,
        ),
        (
            "work that ends a tick below the value is left out",
            "follows[most + devices + device] >= value:",
            "follows[most + devices + device] >= value - 1:",
            _PLAIN,
        ),
        ("one fewer in flight", "flying < steps.in_flight", "flying < steps.in_flight - 1", _PLAIN),
        ("in turn with one between", "at[one - 1] > at[one]", "at[one - 1] > at[one] + 1", _PLAIN),
        (
            "the first choice alone",
            "                    again = next_choice(",
            "                    again = False and next_choice(",
            _PLAIN + _LENGTHS,
        ),
    ),
    *of_file(
        "solver/bounds/crossing_whole/stay.py",
        (
            "times of steps alone are compared",
            "return ended <= other[now] or (fewer and early)",
            "return True",
            _PLAIN + _LENGTHS,
        ),
        ("what waits is not compared", "ended += max(0, more) * weights.ticks[kind]", "ended += 0", _PLAIN + _LENGTHS),
        ("fewer that wait are as good", "(fewer and early)", "fewer", _PLAIN + _LENGTHS),
        ("as good if early", "(fewer and early)", "early", _PLAIN + _LENGTHS),
        (
            "micro-batches in flight are not compared",
            "for time in range(most + devices):",
            "for time in range(most, most + devices):",
            _PLAIN,
        ),
    ),
    *of_file(
        "solver/bounds/crossing_whole/follow.py",
        (
            "what is left out ends a tick later",
            "return Least(value, None, used) if",
            "return Least(value + 1, None, used) if",
            _PLAIN,
        ),
        ("rests of a layer too early", "enumerate(rest.layers[1:])", "enumerate(rest.layers[:-1])", _PLAIN),
        ("the last end", "ended = min(traces.ends, default", "ended = max(traces.ends, default", _PLAIN),
    ),
    *of_file(
        "solver/bounds/crossing_whole/bound.py",
        ("blocks are left out", "if problem.overlaps or problem.network.options", "if problem.network.options", ()),
        ("tasks count as passes", " or not problem.network.one_task_each:", ":", ()),
    ),
)
