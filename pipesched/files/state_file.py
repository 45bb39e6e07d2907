"""The state file: which passes of a problem have begun, with start and end, for `solve --from-state`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from math import lcm
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from pipesched.errors import BadInput
from pipesched.files.fields import field_types
from pipesched.files.problem_file import read_document
from pipesched.files.rounding import LARGEST
from pipesched.files.schema_errors import parse_model
from pipesched.problem.formatting import amount, memory_text
from pipesched.problem.pass_names import pass_from, pass_text
from pipesched.problem.passes import BW, REDUCE, STEP, B, Pass, W
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rescale import finer
from pipesched.problem.state import Ran, State


class BegunPass(BaseModel):
    """A pass that has begun; one that still runs may leave out `end`: it takes what the problem says."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    name: field_types.Text | None = Field(None, description="as schedules name it: F2.0, with pieces F2.0.3")
    start: field_types.Number | None = Field(None, description="in the problem's unit")
    end: field_types.Number | None = Field(None, description="in the problem's unit; after now where it still runs")


class StateFile(BaseModel):
    """Times count from the beginning of the iteration."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    now: field_types.Number | None = Field(None, description="no other pass starts before")
    passes: list[BegunPass] | None = Field(None, description="those that have run or are running")


def json_schema() -> Mapping[str, Any]:
    """The JSON Schema of the state file, for editors."""
    schema = StateFile.model_json_schema()
    for section, keys in ((schema, ("now", "passes")), (schema["$defs"]["BegunPass"], ("name", "start"))):
        section["required"] = list(keys)
        for key in keys:
            given = section["properties"][key]
            given["anyOf"] = [one for one in given["anyOf"] if one != {"type": "null"}]
            del given["default"]
    return schema


def read_state(path: str | Path, problem: Problem) -> tuple[Problem, State]:
    """The state of a file, and the problem in ticks that its times are multiples of; `BadInput` lists every mistake."""
    return state_from(read_document(path), problem, str(path))


def state_from(document: object, problem: Problem, source: str = "state") -> tuple[Problem, State]:
    """The same from a dictionary."""
    try:
        _refuse(problem)
        form, found, wrong = parse_model(StateFile, document, ("now", "passes"))
        if found or wrong:
            raise BadInput(*found)
        assert form.now is not None
        times = [form.now, *(time for one in form.passes or () for time in (one.start, one.end) if time is not None)]
        parts = lcm(*((time / problem.tick).denominator for time in times))
        if parts > LARGEST or max(times) / problem.tick * parts > LARGEST:
            raise BadInput("times: found more digits than exact sums allow; allowed: fewer, or a coarser unit")
        problem = finer(problem, parts)
        ran, found = _passes(form, problem)
        state = State(_ticks(form.now, problem), ran)
        found += [] if found else [*_mistakes(problem, state)]
        if found:
            raise BadInput(*found)
    except BadInput as error:
        raise BadInput(*(f"{source}: {mistake}" for mistake in error.mistakes)) from None
    return problem, state


def _refuse(problem: Problem) -> None:
    """Problems whose passes a state does not tell enough of."""
    network = problem.network
    several = any(len(tasks) > 1 for tasks in network.tasks.values()) or len(network.resources) > problem.devices
    if several or network.options or problem.overlaps:
        options = "offload or recomputation" if network.options else "passes of several tasks"
        what = "overlapped blocks" if problem.overlaps else options
        raise BadInput(f"found {what} in the problem; allowed with a state: passes that are single tasks")
    if problem.microbatch_scale or any(kind in (REDUCE, STEP) for kind, _ in network.tasks):
        what = "microbatch_scale" if problem.microbatch_scale else "parameters"
        raise BadInput(f"found {what} in the problem; allowed with a state: problems without it")
    if problem.objective is not Objective.MAKESPAN:
        raise BadInput(f"found objective {problem.objective.value}; allowed with a state: makespan")


def _ticks(time: Fraction | int, problem: Problem) -> int:
    return int(time / problem.tick)


def _passes(form: StateFile, problem: Problem) -> tuple[dict[Pass, Ran], list[str]]:
    """The passes with their times, and what is wrong with each by itself."""
    ran: dict[Pass, Ran] = {}
    found: list[str] = []
    now = _ticks(form.now or 0, problem)
    for at, one in enumerate(form.passes or ()):
        where = f"passes[{at}]"
        if one.name is None or one.start is None:
            found.append(f"{where}: found no {'name' if one.name is None else 'start'}; allowed: name, start and end")
            continue
        try:
            p = pass_from(problem, one.name)
        except BadInput as error:
            found += [f"{where}.name: {mistake}" for mistake in error.mistakes]
            continue
        start = _ticks(one.start, problem)
        known = p.stage < problem.placement.stages and p.microbatch in problem.microbatches_of[p.stage]
        if not known or p.kind not in problem.stages[p.stage].kinds:
            found.append(f"{where}.name: found {one.name!r}; allowed: passes of the problem")
            continue
        end = max(now, start + problem.duration(p)) if one.end is None else _ticks(one.end, problem)
        if p in ran:
            found.append(f"{where}.name: {one.name} appears twice")
        if start > now:
            found.append(f"{where}.start: found {amount(problem, start)}; allowed: up to now, {amount(problem, now)}")
        if end < start:
            found.append(f"{where}.end: found {amount(problem, end)}; allowed: from start, {amount(problem, start)}")
        ran[p] = Ran(start, end)
    return ran, found


def _mistakes(problem: Problem, state: State) -> Iterator[str]:
    """What cannot have been: two passes of a device at once, or a pass before what it needs."""
    ran = state.ran
    for device in range(problem.devices):
        own = sorted((times, p) for p, times in ran.items() if problem.device(p) == device)
        for (one, p), (other, q) in pairwise(own):
            if other.start < one.end:
                yield f"passes: {pass_text(problem, q)} starts before {pass_text(problem, p)} ends on device {device}"
    for p in ran:
        if p.kind is BW and any(p._replace(kind=kind) in ran for kind in (B, W)):
            yield f"passes: found {pass_text(problem, p)} beside B or W; allowed: the backward fused or split"
        for before, _ in problem.network.predecessors(p, ran):
            if before not in ran or ran[before].end > ran[p].start:
                says = "has not begun" if before not in ran else "ends later"
                yield f"passes: {pass_text(problem, p)} needs {pass_text(problem, before)}, which {says}"
    for device, room in enumerate(problem.room):
        held = sum(_held(problem, p, times.end > state.now) for p, times in ran.items() if problem.device(p) == device)
        if room is not None and held > room:
            more, most = (memory_text(problem, level + problem.static[device]) for level in (held, room))
            yield f"passes: device {device} holds {more} by them; its capacity is {most}"


def _held(problem: Problem, p: Pass, runs: bool) -> int:
    """What a pass changes of its device's memory by having begun, or ended."""
    change = problem.network.change[p.kind, p.stage]
    return change.at_start + (0 if runs else change.at_end)


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))  # noqa: T201 - docs/state.schema.json is this output
