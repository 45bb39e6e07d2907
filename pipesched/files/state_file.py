"""State files for `solve --from-state`: passes of an iteration that have begun, with their start and end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from math import lcm
from pathlib import Path
from typing import Any

from pydantic import Field

from pipesched.errors import BadInput
from pipesched.files.features.catalogue import FEATURES
from pipesched.files.fields import field_types
from pipesched.files.fields.section import Section
from pipesched.files.problem_file import read_document
from pipesched.files.quantities import in_plain_numbers
from pipesched.files.quantity_forms import state_form
from pipesched.files.rounding import LARGEST
from pipesched.files.schedules.task_texts import TaskReader
from pipesched.files.schema_errors import parse_model
from pipesched.files.state_gathers import gather_mistakes
from pipesched.problem.formatting import amount, memory_text
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, RECOMPUTATIONS, B, F, Pass, PassKind, Task, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MicrobatchId, StageId, Ticks
from pipesched.problem.rescale import finer
from pipesched.problem.state import Ran, State


class BegunPass(Section):
    """A pass or task that has begun; one that still runs may leave out `end`: it takes what the problem says."""

    required = ("name", "start")

    name: field_types.Text | None = Field(
        None, description="as schedules name it: F2.0, with pieces F2.0.3, a task F2.0/attn"
    )
    start: field_types.Number | None = Field(None, description="in the problem's unit")
    end: field_types.Number | None = Field(None, description="in the problem's unit; after now where it still runs")
    recompute: field_types.Text | None = Field(
        None,
        description="of a forward: the way in which its activation is to be recomputed; default: that which has begun, "
        "or the only one where it is neither kept nor moved to the host, else it is not",
    )


class StateFile(Section):
    """The keys of a state file. Times count from the beginning of the iteration."""

    required = ("now", "passes")

    now: field_types.Number | None = Field(None, description="no other pass starts before")
    passes: list[BegunPass] | None = Field(None, description="those that have run or are running")


def json_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of the state file, with which editors check and complete keys."""
    return StateFile.model_json_schema()


def read_state(path: str | Path, problem: Problem) -> tuple[Problem, State]:
    """Return the problem and the state that a state file describes; `BadInput` lists every mistake.

    The tick of the returned problem is made finer until the state's times, which are in it, are multiples of it.
    """
    return state_from(read_document(path), problem, str(path))


def state_from(document: object, problem: Problem, source: str = "state") -> tuple[Problem, State]:
    """Return the problem and the state that a dictionary with the keys of a state file describes.

    The tick of the returned problem is made finer until the state's times, which are in it, are multiples of it.
    `BadInput` for mistakes, and for a problem with features that a state cannot describe. `source` names the dictionary
    in messages.
    """
    try:
        _refuse(problem)
        document = in_plain_numbers(document, state_form(problem))
        form, found, wrong = parse_model(StateFile, document, StateFile.required)
        if found or wrong:
            raise BadInput(*found)
        assert form.now is not None
        times = [form.now, *(time for one in form.passes or () for time in (one.start, one.end) if time is not None)]
        parts = lcm(*((time / problem.tick).denominator for time in times))
        if parts > LARGEST or max(times) / problem.tick * parts > LARGEST:
            raise BadInput("times: found more digits than exact sums allow; allowed: fewer, or a coarser unit")
        problem = finer(problem, parts)
        ran, found = _tasks(form, problem)
        recomputed = {} if found else _recomputed(form, problem, ran, found)
        state = State(_ticks(form.now, problem), ran, recomputed)
        found += [] if found else [*_mistakes(problem, state)]
        if found:
            raise BadInput(*found)
    except BadInput as error:
        raise BadInput(*(f"{source}: {mistake}" for mistake in error.mistakes)) from None
    return problem, state


def _refuse(problem: Problem) -> None:
    """Raise `BadInput` for problems with features or objectives that a state cannot describe."""
    without = [feature.name for feature in FEATURES if feature.present_in(problem) and not feature.has_state]
    for found in [*(["overlapped blocks"] if problem.network.blocks else []), *without]:
        raise BadInput(f"found {found} in the problem; allowed with a state: problems without it")
    if problem.objective.repeats:
        raise BadInput("found objective period; allowed with a state: makespan, span or iteration")


def _ticks(time: Fraction | int, problem: Problem) -> Ticks:
    return int(time / problem.tick)


def _tasks(form: StateFile, problem: Problem) -> tuple[dict[Task, Ran], list[str]]:
    """Return the begun tasks with their start and end in ticks, and the mistakes that each entry has by itself.

    A task without an end runs as long as the problem says, and at least until now.
    """
    ran: dict[Task, Ran] = {}
    found: list[str] = []
    now = _ticks(form.now or 0, problem)
    reader, numbers = TaskReader(problem), problem.network.numbers
    for at, one in enumerate(form.passes or ()):
        where = f"passes[{at}]"
        if one.name is None or one.start is None:
            found.append(f"{where}: found no {'name' if one.name is None else 'start'}; allowed: name, start and end")
            continue
        try:
            task = reader.task(one.name)
        except BadInput as error:
            found += [f"{where}.name: {mistake}" for mistake in error.mistakes]
            continue
        if task.of.microbatch not in numbers.get(task.of[:2], ()):
            found.append(f"{where}.name: found {one.name!r}; allowed: passes of the problem")
            continue
        start, ticks = _ticks(one.start, problem), problem.network.tasks[task.of[:2]][task.part].ticks
        end = max(now, start + ticks) if one.end is None else _ticks(one.end, problem)
        if task in ran:
            found.append(f"{where}.name: {one.name} appears twice")
        if start > now:
            found.append(f"{where}.start: found {amount(problem, start)}; allowed: up to now, {amount(problem, now)}")
        if end < start:
            found.append(f"{where}.end: found {amount(problem, end)}; allowed: from start, {amount(problem, start)}")
        ran[task] = Ran(start, end)
    return ran, found


def _recomputed(
    form: StateFile, problem: Problem, ran: Mapping[Task, Ran], found: list[str]
) -> dict[tuple[StageId, MicrobatchId], PassKind]:
    """Return the recomputation mode of activations by (stage, micro-batch); mistakes are added to `found`.

    Where a begun forward's entry does not say, it is the recomputation that has begun, or the stage's only mode. It is
    a mistake if a stage has several modes and may neither keep nor offload its activation.
    """
    modes: dict[tuple[int, int], PassKind] = {}
    reader = TaskReader(problem)
    for at, one in enumerate(form.passes or ()):
        if one.recompute is not None:
            p = reader.task(one.name or "").of
            known = {
                mode.name: kind for kind, mode in zip(RECOMPUTATIONS, problem.stages[p.stage].recompute, strict=False)
            }
            if p.kind is not F or one.recompute not in known:
                allowed = ", ".join(known) or "none, since the stage recomputes nothing"
                allowed = allowed if p.kind is F else "with a forward"
                found.append(f"passes[{at}].recompute: found {one.recompute!r}; allowed: {allowed}")
            else:
                modes[p[1:]] = known[one.recompute]
    for p in sorted({task.of for task in ran}):
        own = problem.stages[p.stage]
        if p.kind in RECOMPUTATIONS:
            modes.setdefault(p[1:], p.kind)
        elif p.kind is F and p[1:] not in modes and not own.may_keep and own.offload is None:
            begun = [kind for kind in RECOMPUTATIONS if any(task.of == p._replace(kind=kind) for task in ran)]
            kinds = begun or RECOMPUTATIONS[: len(own.recompute)]
            modes[p[1:]] = kinds[0]
            if len(kinds) > 1:
                allowed = ", ".join(mode.name for mode in own.recompute)
                found.append(f"passes: found no recompute of {problem.task_text(Task(p))}; allowed: {allowed}")
    return modes


def _mistakes(problem: Problem, state: State) -> Iterator[str]:
    """Yield mistakes of states that no schedule reaches.

    Such as two tasks on one stream at once, a task that began before a predecessor had ended, a backward both fused and
    split, or more memory in use than there is.
    """
    ran, network, text = state.ran, problem.network, problem.task_text
    streams: dict[Resource, list[Task]] = {}
    for task in sorted(ran, key=lambda task: (ran[task], task)):
        for where in network.tasks[task.of[:2]][task.part].resources:
            streams.setdefault(where, []).append(task)
    for where, line in sorted(streams.items()):
        for one, other in pairwise(line):
            if ran[other].start < ran[one].end:
                yield f"passes: {text(other)} starts before {text(one)} ends on device {where.device}"
    begun: dict[Pass, None] = dict.fromkeys(task.of for task in ran)
    for p in begun:
        if p.kind is BW and any(p._replace(kind=kind) in begun for kind in (B, W)):
            yield f"passes: found {text(Task(p))} beside B or W; allowed: the backward fused or split"
    for task in ran:
        for before in _needed(problem, task, state):
            if before not in ran or ran[before].end > ran[task].start:
                says = "has not begun" if before not in ran else "ends later"
                yield f"passes: {text(task)} needs {text(before)}, which {says}"
    for (stage, j), options in state.saving_options(problem).items():
        if not options:
            name = text(Task(Pass(F, stage, j)))
            yield f"passes: the activation of {name} can no longer be held, copied or recomputed as the problem says"
    yield from gather_mistakes(problem, state)
    yield from _too_much_memory(problem, state)


def _too_much_memory(problem: Problem, state: State) -> Iterator[str]:
    """Yield mistakes for devices and hosts whose memory the begun passes exceed."""
    network = problem.network
    levels = [0] * len(network.reservoirs)
    for p in dict.fromkeys(task.of for task in state.ran):
        ends = (state.ran.get(Task(p, part)) for part in network.ends[p.kind, p.stage])
        ended = all(one is not None and one.end <= state.now for one in ends)
        for reservoir, change in network.changes(p[:2]):
            levels[reservoir] += change.total if ended else change.at_start
        mode = state.recomputed.get(p[1:]) if p.kind is F and ended else None
        levels[problem.device(p)] -= network.given_up.get((mode, p.stage), 0) if mode else 0
    names = [f"device {n}" for n in range(problem.devices)] + [f"host {n}" for n in range(len(network.hosts))]
    statics = [*problem.static, *[0] * len(network.hosts)]
    for where, (room, _), there, static in zip(names, network.reservoirs, levels, statics, strict=True):
        if room is not None and there > room:
            more, most = (memory_text(problem, level + static) for level in (there, room))
            yield f"passes: {where} holds {more} by them; its capacity is {most}"


def _needed(problem: Problem, task: Task, state: State) -> Iterator[Task]:
    """Yield the tasks that a task waits for; of alternatives the one that has begun, or else the first.

    Of optional predecessors only one that has begun or must still run; which modes of saving memory remain possible is
    checked elsewhere.
    """
    for arc in problem.network.arcs_into[task.of[:2]]:
        if arc.after.part == task.part:
            own = task.of.microbatch
            for j in (own,) if arc.share is None else arc.share.numbers(own):
                named = [Task(Pass(one.kind, one.stage, j), one.part) for one in arc.alternatives]
                there = (one for one in named if one in state.ran or state.recomputed.get(one.of[1:]) is one.of.kind)
                found = next(there, None if arc.optional else named[0])
                if found is not None:
                    yield found


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))  # noqa: T201 - docs/state.schema.json is this output
