"""`solve --from-state`: finds the best order of the passes that an iteration under way still has to run."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from itertools import islice
from pathlib import Path

from commands.options.search import interrupt_sets, limits_of
from commands.shared.catalogue import Exit
from commands.shared.file_arguments import write_schedule
from commands.shared.output import files_written, note, write_json
from commands.shared.output_folder import record_output
from commands.shared.watch import stop_event
from pipesched.errors import BadInput
from pipesched.files.atomic_write import make_folder, write_whole
from pipesched.files.exact_numbers import write_json as json_text
from pipesched.files.schedule_file import ScheduleFile
from pipesched.files.state_file import read_state
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.results.replanned import Replanned
from pipesched.results.solution import Status
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.replanning.replan import replan

# Of each device, the tasks that come next.
_SHOWN = 6
# Options that are about whole iterations.
_ALONE = {
    "start": "--start", "measured": "--measured", "explain": "--explain", "robust": "--robust", "target": "--for",
    "memory_within": "--memory-within", "text": "--text", "watch": "--watch",
}  # fmt: skip


def run_from_state(args: Namespace, problem: Problem) -> Exit:
    """Search the best continuation, print it, and write the answer, its picture and its order.

    The exit code is 0 if a continuation was found, 1 if none fits, 3 if none was found in time, 130 after Ctrl-C.
    `BadInput` for options that do not go with `--from-state`.
    """
    for key, option in _ALONE.items():
        if getattr(args, key, None) not in (None, False):
            raise BadInput(f"found {option} with --from-state; allowed: one of them")
    problem, state = read_state(args.from_state, problem)
    folder = make_folder(args.output) if args.output else None
    begun, stop = time.monotonic(), stop_event(args)

    def report(better: Replanned) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {better.text()}", file=sys.stderr, flush=True)

    with interrupt_sets(stop):
        found = replan(problem, state, limits_of(args), report, stop)
    files: list[Path] = []
    if folder is not None:
        files = _written(found, folder)
        record_output(folder, "solve", files)
    if args.json:
        write_json(found.document() | {"files": list(map(str, files))})
    else:
        print(found.text())
        for text in found.notes:
            note(f"note: {text}")
        for device, order in enumerate(found.orders() if found.tasks else []):
            coming = [one for one in order if one not in state.ran]
            texts = [f"{problem.task_text(one)} at {amount(found.problem, (found.tasks or {})[one].start)}"
                     for one in islice(coming, _SHOWN)]  # fmt: skip
            more = f", and {len(coming) - _SHOWN} more" if len(coming) > _SHOWN else ""
            print(f"device {device}: {', '.join(texts) or 'nothing is left'}{more}")
        files_written(files)
    if stop.is_set():
        return Exit.INTERRUPTED
    return {Status.INFEASIBLE: Exit.NO, Status.UNKNOWN: Exit.NOT_FOUND}.get(found.status, Exit.DONE)


def _written(found: Replanned, folder: Path) -> list[Path]:
    """Write the answer, and if a schedule was found its picture and schedule file; returns their paths."""
    files = [write_whole(folder / "replanned.json", json_text(found.document()))]
    schedule = found.schedule()
    if schedule is not None:
        from plots.replanned import render_replanned

        files.append(write_whole(folder / "replanned.png", render_replanned(found)))
        timeline = simulate(found.problem, schedule)
        if wrong := validate(timeline):
            # What has begun may have kept its memory by times that are not those of the file.
            note(f"note: no schedule.json, whose times are those of the file from the beginning on: {wrong[0].text}")
        else:
            files.append(write_schedule(folder / "schedule.json", ScheduleFile(timeline)))
    return files
