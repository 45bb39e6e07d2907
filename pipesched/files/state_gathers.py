"""Checks of gathered parameters in a state: gathered out of order, too often, or missing while a pass runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from pipesched.problem.passes import RESHARD, UNSHARD, Pass, Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from pipesched.problem.state import State
from pipesched.schedule.gathered import uses_parameters


def gather_mistakes(problem: Problem, state: State) -> Iterator[str]:
    """Yield a line for each gather in a state that no schedule has: out of order, too often, or missing for a pass."""
    ran, text, times = state.ran, problem.task_text, 0
    there: Counter[int] = Counter()
    for stage, own in enumerate(problem.stages):
        if own.gather is None:
            continue
        line = [Task(Pass(kind, stage, k)) for k in range(own.gather.most) for kind in (UNSHARD, RESHARD)]
        for one, other in pairwise(line):
            if other in ran and (one not in ran or ran[one].end > ran[other].start):
                says = "has not begun" if one not in ran else "ends later"
                yield f"passes: {text(other)} needs {text(one)}, which {says}"
        begun = sum(task in ran for task in line[::2])
        times += begun
        there[problem.placement.stage_device[stage]] += begun - sum(task in ran for task in line[1::2])
    holder = problem.parameters.holder
    for p in sorted({task.of for task in ran if uses_parameters(problem, task.of.kind, task.of.stage)}):
        if problem.stages[holder(p.stage)].gather is not None and not _was_there(problem, state, p, holder(p.stage)):
            yield f"passes: {text(Task(p))} began where the parameters of its stage were not gathered"
    most, window = problem.parameters.most, problem.parameters.window
    if most is not None and times > most:
        yield f"passes: parameters are gathered {times} times by them; the limit is {most}"
    for device, stages in there.items():
        if window is not None and stages > window:
            yield f"passes: {stages} stages of device {device} are gathered by them; its window is {window}"


def _was_there(problem: Problem, state: State, p: Pass, stage: StageId) -> bool:
    """Return True if, by the state, a gathering of a stage's parameters covers all of the pass `p`.

    It has ended when the pass begins, and the parameters are dropped only after the pass has ended, or not yet.
    """
    own = [state.ran.get(Task(p, part)) for part in range(len(problem.stages[p.stage].tasks_of(p.kind)))]
    times = [one for one in own if one is not None]
    since = min((one.start for one in times), default=state.now)
    until = max((one.end for one in times), default=state.now) if len(times) == len(own) else None
    gather = problem.stages[stage].gather
    for k in range(gather.most if gather else 0):
        begun, dropped = (state.ran.get(Task(Pass(kind, stage, k))) for kind in (UNSHARD, RESHARD))
        ends = dropped is None or (until is not None and until <= dropped.start)
        if begun is not None and begun.end <= since and ends:
            return True
    return False
