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
    *of_file(
        "pipesched/checking/crossing_some_whole/argument.py",
        ("tasks count as passes", "not problem.network.one_task_each or", "False or", ()),
        ("blocks are not seen", "if any(stage.overlapped is not None for stage in problem.stages):", "if False:", ()),
        ("other devices are not seen", "if not set(evidence.whole) <= set(evidence.devices):", "if False:", ()),
        ("the last step is among them", "if not 0 <= evidence.steps <", "if not 0 <= evidence.steps <=", ()),
    ),
    *of_file(
        "pipesched/checking/crossing_some_whole/orders.py",
        ("what is open counts twice", "* opened.ticks[kind]", "* 2 * opened.ticks[kind]", _PLAIN),
        ("what is open is forgotten", "* opened.ticks[kind]", "* 0", _PLAIN),
        ("orders stay with other times", "first_ones(times[order],", "first_ones(times,", _PLAIN),
    ),
    *of_file(
        "pipesched/checking/crossing_whole/orders.py",
        ("work with breaks waits for all", "times[over] - may * way.weight[one]", "times[over]", _PLAIN),
        (
            "work with breaks is forgotten",
            "+ way.ticks[n] + way.after[n] if breaks",
            "+ way.ticks[n] if breaks",
            _PLAIN,
        ),
    ),
)
