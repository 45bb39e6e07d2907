"""Mistakes made by hand in crossings of steps with some whole weight passes, and in their check."""

from __future__ import annotations

from benchmarks.proofs.mutation.mutant import HandMade, of_file

_SOME = "crossings of steps with some whole weight passes, "
_PLAIN = (_SOME + "room after W", _SOME + "V", _SOME + "makespan", _SOME + "long weight passes, room after W")

SOME_WHOLE_MUTANTS: tuple[HandMade, ...] = (
    *of_file(
        "solver/bounds/crossing_some_whole/follow.py",
        (
            "what waits counts twice",
            "@ weights.ticks[kinds]",
            "@ (2 * weights.ticks[kinds])",
            _PLAIN,
        ),
        ("a step is counted twice", "begun=(Layer(*parts), many)", "begun=(Layer(*parts), many - 1)", _PLAIN),
        (
            "keys stay with other labels",
            "labels[order], steps, weights, _OF_A_STATE",
            "labels, steps, weights, 9999",
            _PLAIN,
        ),
    ),
    *of_file(
        "solver/bounds/crossing_some_whole/bound.py",
        ("blocks are left out", "if problem.overlaps or problem.network.options", "if problem.network.options", ()),
        ("tasks count as passes", " or not problem.network.one_task_each:", ":", ()),
    ),
    *of_file(
        "solver/bounds/crossing_whole/choices.py",
        (
            "an interrupted weight pass waits for all",
            "label[now] - pending * steps.longest[device]",
            "label[now]",
            _PLAIN,
        ),
        (
            "an interrupted weight pass counts twice",
            "steps.ticks[step] + steps.later[step]\n    else:",
            "steps.ticks[step] + 2 * steps.later[step]\n    else:",
            _PLAIN,
        ),
        ("none may be open without a limit", "    elif pending < 0:\n        start = ready\n", "", _PLAIN),
    ),
)
