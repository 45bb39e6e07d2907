"""Output for people: results on standard output, errors and progress on standard error."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import simplejson

from pipesched.deadline import Deadline, within
from pipesched.files.atomic_write import is_device
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.attainable_spans import Value
from pipesched.problem.formatting import amount, plain, visible
from pipesched.problem.objective import objectives
from pipesched.problem.problem import Objective, Problem
from pipesched.results.schedule_figures import static_memory
from pipesched.schedule.metrics import BUBBLE, IDLE, Metrics
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.idle_causes import IdleCause, idle_times

PROGRAM = "PIPESCHED_PROGRAM"  # the variable by which `go.py` says how it was called


def complain(line: str) -> None:
    """Print one error line on standard error, after `pipesched: `, never wrapped or coloured."""
    print(f"pipesched: {visible(with_program(line))}", file=sys.stderr)


def note(line: str) -> None:
    """Print one line for the user on standard error, in addition to the result."""
    print(visible(with_program(line)), file=sys.stderr)


def note_plan(path: str, problem: PlanProblem) -> None:
    """Print the notes of a plan file, and the assumptions if its layers were derived from the model's shape."""
    for text in problem.notes:
        note(f"note: {path}: {text}")
    if problem.assumptions:
        note(f"assumed of the model of {path}; `pipesched layers` shows the costs that follow:")
    for text in problem.assumptions:
        note(f"  {text}")


def write_json(document: object) -> None:
    """Print a document on standard output as the JSON object of `--json`; NaN and infinite numbers become null."""
    print(simplejson.dumps(document, ignore_nan=True, indent=1))


def next_step(words: Sequence[str], does: str) -> None:
    """Print a command that the user may run next, as the user would type it, and what it does (`does`).

    `words` are its arguments, beginning with the command's name.
    """
    print(f"next: {_program()} {shlex.join(words)}\n      {does}")


def with_program(text: str) -> str:
    """Return the text with commands in backticks as this user types them: `python3 go.py solve` from a checkout."""
    return text.replace("`pipesched ", f"`{_program()} ")


def _program() -> str:
    return os.environ.get(PROGRAM, "pipesched")


def files_written(paths: Sequence[Path]) -> None:
    """Print the paths of the files that a command wrote.

    Pipes and devices are left out, so that nothing follows what was written to `/dev/stdout`.
    """
    paths = [path for path in paths if not is_device(path)]
    if paths:
        print("wrote " + "\n      ".join(map(str, paths)))


def times_shown(problem: Problem) -> tuple[Objective, ...]:
    """Return the objectives that tables show: the times of one iteration, such as makespan and span.

    The period is shown, first, only where it is the objective, since a timeline does not have one.
    """
    ends = tuple(one for one in objectives() if one.of_one_iteration)
    return (problem.objective, *ends) if problem.objective.repeats else ends


def idle_shown(problem: Problem, metrics: Metrics) -> list[tuple[str, float | None]]:
    """Return (name, share) pairs of mean idle time and bubble rate, as shares (of 1) of the objective's value.

    A share is None for a period that the timeline does not have.
    """
    aim = problem.objective
    return [(IDLE, metrics.idle(aim)), (BUBBLE, metrics.bubble(aim))]


def idle_sentence(problem: Problem, metrics: Metrics) -> str:
    """Return a phrase that gives mean idle time and bubble rate in per cent of the objective's value."""
    idle, bubble = (percent(share) for _, share in idle_shown(problem, metrics))
    return f"devices idle {idle} of it on average, the busiest one {bubble} (bubble rate)"


def percent(share: float | None) -> str:
    """Return a share of 1 as text in per cent with two decimals; empty for None."""
    return "" if share is None else f"{100 * share:z.2f} %"


def time(problem: Problem, ticks: Value | None) -> str:
    """Return ticks as text in the file's unit; empty for None."""
    return "" if ticks is None else amount(problem, ticks)


def in_file_units(problem: Problem, ticks: Value | None) -> float | None:
    """Return ticks as a JSON number in the file's unit; None for None."""
    return None if ticks is None else problem.in_units(ticks)


# So few passes take a part of a second.
_FEW_PASSES = 20_000


def idle_shares(timeline: Timeline, seconds: float) -> dict[IdleCause, float] | None:
    """Return the idle time by cause, as shares (of 1) of the makespan times devices.

    None if that takes longer than `seconds`. For up to 20,000 passes it is computed in any case.
    """
    if len(timeline.schedule.columns) <= _FEW_PASSES:
        return idle_times(timeline).shares()
    return within(Deadline.after(seconds), lambda: idle_times(timeline).shares())


WHY_IDLE = "why devices idle, in shares of the makespan (mean over devices)"


def idle_lines(shares: dict[IdleCause, float]) -> list[str]:
    """Return a line for each cause of idle time, in the order of `shares`: its share, and its meaning.

    `shares` are those of `idle_shares`, of 1; the lines have per cent.
    """
    width = max((len(percent(share)) for share in shares.values()), default=0)
    return [f"{percent(share):>{width}}  {cause}: {cause.meaning}" for cause, share in shares.items()]


def memory_line(problem: Problem, metrics: Metrics) -> str:
    """Return a line with the peak memory of each device, in the file's unit and device by device, and its static part.

    The static part is left out if there is none.
    """
    line = f"peak memory of each device ({problem.memory_unit}): "
    line += ", ".join(map(plain, metrics.peak_memory))
    static = static_memory(problem).get("static_memory")
    return line if static is None else f"{line}; of which static: {', '.join(map(plain, static))}"


def memory_range(metrics: Metrics) -> str:
    """Return the peak memory over the devices in short: one value, or least to most."""
    amounts = metrics.peak_memory
    least, most = min(amounts), max(amounts)
    return plain(most) if least == most else f"{plain(least)} – {plain(most)}"
