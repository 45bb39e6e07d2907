"""The rules of a replanned iteration, stated independently: begun tasks are unchanged, all others obey all rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from pipesched.problem.pass_names import stage_text
from pipesched.problem.passes import (
    BW,
    OF_PARAMETERS,
    OFFLOAD,
    RECOMPUTATIONS,
    RELOAD,
    RESHARD,
    UNSHARD,
    B,
    F,
    Pass,
    Task,
    W,
)
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps, Ticks
from pipesched.problem.state import Ran, State
from pipesched.validation.gather_rules import needs_no_parameters
from pipesched.validation.pass_rules import (
    all_tasks,
    changes_elsewhere,
    dropped,
    memory_changes,
    moves_to_devices,
    needed,
    needed_of_others,
    needs_input,
    own_tasks,
    peer_of,
    run_once,
    saving_options,
    stream_owner,
    waited_for,
)
from pipesched.validation.violation import Violation


def validate_from_state(problem: Problem, state: State, tasks: Mapping[Task, Ran]) -> list[Violation]:
    """Return the rules that a replanned iteration breaks, empty if none; `tasks` has the times of all tasks, in ticks.

    `state` is the state from which it was replanned: tasks that had begun must be unchanged. Times and memory are
    checked only if exactly the right passes are there.
    """
    found = [*_complete(problem, state, tasks)]
    return found or [*_kept(problem, state, tasks), *_turns(problem, state, tasks), *_needs(problem, state, tasks),
                     *_gathered(problem, state, tasks), *_memory(problem, tasks)]  # fmt: skip


def _complete(problem: Problem, state: State, tasks: Mapping[Task, Ran]) -> Iterator[Violation]:
    """Yield violations unless each backward and each activation has one mode, each pass every task, and nothing more.

    A forward that has begun is recomputed if the state says so, and only then.
    """
    forwards = {task.of[1:] for task in state.ran if task.of.kind is F}
    passes = {task.of for task in tasks}
    expected = [p for stage in range(problem.placement.stages) for p in run_once(problem, stage)]
    for stage, walked in enumerate(problem.microbatches_of):
        for j in walked:
            kinds = [kind for kind in (F, B, W, BW) if Pass(kind, stage, j) in passes]
            expected += [Pass(kind, stage, j) for kind in kinds]
            if kinds != [F, BW] and not (W in problem.stages[stage].kinds and kinds == [F, B, W]):
                have = ", ".join(sorted(kinds)) or "nothing"
                yield Violation("complete", (Pass(F, stage, j),), f"{stage_text(problem, stage, j)} runs {have}")
            saving = frozenset(kind for kind in (OFFLOAD, RELOAD, *RECOMPUTATIONS) if Pass(kind, stage, j) in passes)
            expected += [Pass(kind, stage, j) for kind in saving]
            recomputed = state.recomputed.get((stage, j))
            again = next(iter(saving.intersection(RECOMPUTATIONS)), None)
            if saving not in saving_options(problem, stage) or ((stage, j) in forwards and again != recomputed):
                have = ", ".join(sorted(saving)) or "none of its copies and recomputations"
                yield Violation("complete", (Pass(F, stage, j),), f"{stage_text(problem, stage, j)} runs {have}")
    times = 0
    for stage, own in enumerate(problem.stages):
        if own.gather is not None:
            count = sum(p.kind is UNSHARD and p.stage == stage for p in passes)
            times += count
            expected += [Pass(kind, stage, k) for k in range(max(1, count)) for kind in (UNSHARD, RESHARD)]
            if count > own.gather.most:
                text = f"stage {stage} is gathered {count} times; its limit is {own.gather.most}"
                yield Violation("parameters", (), text)
    limit = problem.parameters.most
    if limit is not None and times > limit:
        yield Violation("parameters", (), f"parameters are gathered {times} times; the limit is {limit}")
    whole = {Task(p, part) for p in expected for part in range(len(all_tasks(problem, p.kind, p.stage)))}
    for task in sorted(whole ^ tasks.keys()):
        says = "is missing" if task in whole else "is none of the problem"
        yield Violation("complete", (task.of,), f"{problem.task_text(task)} {says}")


def _kept(problem: Problem, state: State, tasks: Mapping[Task, Ran]) -> Iterator[Violation]:
    """Yield violations unless begun tasks are unchanged, and others start after now with the problem's durations."""
    for task, was in state.ran.items():
        if tasks.get(task) != was:
            yield Violation("state", (task.of,), f"{problem.task_text(task)} has begun, and is not where it was")
    for task, (start, end) in tasks.items():
        ticks = all_tasks(problem, task.of.kind, task.of.stage)[task.part].ticks
        if task not in state.ran and (start < state.now or end - start != ticks):
            text = f"{problem.task_text(task)} starts before now, or lasts another time"
            yield Violation("state", (task.of,), text)


def _turns(problem: Problem, state: State, tasks: Mapping[Task, Ran]) -> Iterator[Violation]:
    """Yield violations for tasks that overlap on the stream of their own device; begun ones are assumed right.

    Further streams that a task occupies (`also`) are not looked at: with a state only the norm has them, and
    precedences order it.
    """
    lines: dict[tuple[int, str], list[Task]] = {}
    for task in sorted(tasks, key=tasks.__getitem__):
        stream = all_tasks(problem, task.of.kind, task.of.stage)[task.part].stream
        device = problem.placement.stage_device[task.of.stage]
        lines.setdefault((stream_owner(problem, device, stream), stream), []).append(task)
    for (device, _), line in lines.items():
        for one, other in pairwise(line):
            if tasks[other].start < tasks[one].end and not (one in state.ran and other in state.ran):
                text = f"{problem.task_text(other)} starts before {problem.task_text(one)} ends on device {device}"
                yield Violation("overlap", (one.of, other.of), text)


def _needs(problem: Problem, state: State, tasks: Mapping[Task, Ran]) -> Iterator[Violation]:
    """Yield violations for tasks that start before their tensors arrive; pairs of begun tasks are assumed right."""
    for task in tasks:
        for other, lag in _needed(problem, task):
            came = tasks[other].end + lag if other in tasks else 0
            if tasks[task].start < came and not (task in state.ran and other in state.ran):
                text = f"{problem.task_text(task)} starts before what {problem.task_text(other)} gives is there"
                yield Violation("precedence", (other.of, task.of), text)


def _needed(problem: Problem, task: Task) -> Iterator[tuple[Task, Ticks]]:
    """Yield the existing tasks that must have ended before a task starts, with the lag in ticks."""
    p, part = task
    if p.kind is W:
        backward, after = own_tasks(problem, B, p.stage), own_tasks(problem, W, p.stage)[part].after
        yield Task(p._replace(kind=B), len(backward) - 1 if after is None else after), 0
        return
    if part:
        yield Task(p, part - 1), 0
    if part == needs_input(problem, p.kind, p.stage):
        for kind, stage, lag in needed(problem, p.kind, p.stage):
            yield from _ends(problem, Pass(kind, stage, p.microbatch), lag, p)
    if part == 0:
        for other, lag in needed_of_others(problem, p):
            yield from _ends(problem, other, lag, p)


def _ends(problem: Problem, p: Pass, lag: Ticks, before: Pass) -> Iterator[tuple[Task, Ticks]]:
    """Yield the tasks of pass `p` that pass `before` waits for, each with the ticks until it may start.

    They are the last tasks of `p` with `lag`, or, where transfers occupy a stream and take time, the task that sends
    its tensor, with 0. Nothing is yielded if the stage never runs passes of this kind.
    """
    if p.kind not in problem.stages[p.stage].kinds:
        return
    own = len(own_tasks(problem, p.kind, p.stage))
    if lag and problem.resources.transfer_stream is not None:
        yield Task(p, own), 0
    else:
        yield from ((Task(p, part), lag) for part in waited_for(problem, before, p))


def _gathered(problem: Problem, state: State, tasks: Mapping[Task, Ran]) -> Iterator[Violation]:
    """Yield violations unless gatherings and drops of a stage alternate, with every pass between two.

    Begun ones are right.
    """
    spans: dict[int, list[tuple[int, int]]] = {}
    for stage, own in enumerate(problem.stages):
        most = own.gather.most if own.gather else 0
        line = [Task(Pass(kind, stage, k)) for k in range(most) for kind in (UNSHARD, RESHARD)]
        line = [task for task in line if task in tasks]
        for one, other in pairwise(line):
            if tasks[other].start < tasks[one].end and other not in state.ran:
                text = f"{problem.task_text(other)} starts before {problem.task_text(one)} ends"
                yield Violation("precedence", (one.of, other.of), text)
        spans[stage] = [(tasks[a].end, tasks[b].start) for a, b in zip(line[::2], line[1::2], strict=True)]
    for p in dict.fromkeys(task.of for task in tasks):
        holder = problem.parameters.holder(p.stage)
        if p.kind in OF_PARAMETERS or needs_no_parameters(problem, p) or not spans[holder]:
            continue
        own_parts = [Task(p, part) for part in range(len(own_tasks(problem, p.kind, p.stage)))]
        begin, end = min(tasks[one].start for one in own_parts), max(tasks[one].end for one in own_parts)
        if not any(since <= begin and end <= until for since, until in spans[holder]):
            text = f"{problem.task_text(Task(p))} runs while the parameters of its stage are not gathered"
            yield Violation("parameters", (p,), text)


def _memory(problem: Problem, tasks: Mapping[Task, Ran]) -> Iterator[Violation]:
    """Yield memory violations.

    A pass takes memory at its first task, and frees it when all but its sending task have ended.
    """
    several, passes = len(problem.streams) > 1 or moves_to_devices(problem), {task.of for task in tasks}
    copies = [p for p in passes if p.kind in (OFFLOAD, RELOAD)]
    for device, room in enumerate(problem.room):
        events: list[tuple[int, bool, int, int, Pass]] = []
        order = [task for task in sorted(tasks, key=tasks.__getitem__) if problem.device(task.of) == device]
        for turn, p in enumerate(dict.fromkeys(task.of for task in order)):
            own = [tasks[Task(p, part)] for part in range(len(own_tasks(problem, p.kind, p.stage)))]
            begin, end = min(one.start for one in own), max(one.end for one in own)
            takes, gives = memory_changes(problem, p.kind, p.stage)
            # On one stream what takes no time gives back in its turn.
            events.append((begin, True, 2 * turn, takes, p))
            again = [kind for kind in RECOMPUTATIONS if p.kind is F and p._replace(kind=kind) in passes]
            gives -= sum(dropped(problem, kind, p.stage) for kind in again)
            events.append((end, begin == end or not several, 2 * turn + 1, gives, p))
        events += _of_copies(problem, tasks, [p for p in copies if peer_of(problem, p.stage) == device], len(tasks))
        yield from _over(problem, events, room, f"device {device}")
        if problem.parameters.window is not None:
            windows = [(tasks[Task(p)].start if p.kind is UNSHARD else tasks[Task(p)].end, True, turn,
                        1 if p.kind is UNSHARD else -1, p)
                       for turn, p in enumerate(dict.fromkeys(task.of for task in order))
                       if p.kind in (UNSHARD, RESHARD)]  # fmt: skip
            yield from _over(problem, windows, problem.parameters.window, f"the window of device {device}")
    for number, (room, devices) in enumerate(problem.resources.hosts):
        here = [p for p in copies if problem.device(p) in devices and peer_of(problem, p.stage) is None]
        yield from _over(problem, _of_copies(problem, tasks, here, 0), room, f"host {number}")


def _of_copies(
    problem: Problem, tasks: Mapping[Task, Ran], copies: list[Pass], turn: int
) -> list[tuple[Ticks, bool, int, MemorySteps, Pass]]:
    """Return the changes of a memory by copies, as (tick, True if taken, place among changes of a tick, amount, copy).

    At a tick memory is freed before it is taken. `turn` is the place, among the other passes that the caller counts, of
    memory taken at the same tick.
    """
    found = []
    for p in copies:
        takes, gives = changes_elsewhere(problem, p.kind, p.stage)
        found += [(tasks[Task(p)].start, True, 2 * turn, takes, p), (tasks[Task(p)].end, False, 0, gives, p)]
    return found


def _over(
    problem: Problem, events: list[tuple[Ticks, bool, int, int, Pass]], room: int | None, where: str
) -> Iterator[Violation]:
    """Yield the violation of the first change that raises a level above `room`; none where that is None.

    A change is (tick, True if taken, place among changes of a tick, amount, pass). The level is of a memory, or of the
    stages gathered at once; `where` is its name for the message.
    """
    level = 0
    for _, _, _, change, p in sorted(events):
        level += change
        if room is not None and change > 0 and level > room:
            yield Violation("memory", (p,), f"{where} has no room for {problem.task_text(Task(p))}")
            break
