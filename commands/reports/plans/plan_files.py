"""The output files of a plan: problem, schedule, proof, pictures, report, and settings of runtimes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from commands.reports.timed_files import COSTS, TimedFiles
from commands.shared.file_arguments import draw, write_schedule
from commands.shared.partition_settings import write_settings
from pipesched.errors import BadInput
from pipesched.files.atomic_write import make_folder, write_whole
from pipesched.files.plan_answer import plan_text
from pipesched.files.problem_text import problem_text
from pipesched.files.schedule_file import ScheduleFile
from pipesched.results.plan import Plan
from plots.plan import render_plan
from runtime.partitions.plan_settings import PlanSettings


def plan_folder(output: str | None) -> Path | None:
    """Create and return the output folder (None without one); `BadInput` if it cannot be created."""
    if output is None:
        return None
    if not output or (Path(output).exists() and not Path(output).is_dir()):
        raise BadInput(
            f"--output: found {output!r}, which is no directory; allowed: a directory, made if it is missing"
        )
    return make_folder(output)


def write_plan(
    timed: TimedFiles, found: Plan, settings: Sequence[PlanSettings], folder: Path, page: Callable[[], str]
) -> None:
    """Write the files of the best plan, which there must be, to `folder`.

    They are problem.yaml, schedule.json, plan.json, plan.png, gantt.png, memory.png, report.html with the text that
    `page` returns, and the `settings` of runtimes. Pictures and report are left out if no time is left for them
    (`timed`). `BadInput` if a file cannot be written.
    """
    best = found.best
    assert best is not None
    timeline = best.timeline
    timed.must(lambda: [write_whole(folder / "problem.yaml", problem_text(timeline.problem))])
    timed.must(
        lambda: [write_schedule(folder / "schedule.json", ScheduleFile(timeline, value_ticks=best.period_ticks))]
    )
    timed.must(lambda: [write_whole(folder / "plan.json", plan_text(found))])
    timed.may("plan.png", lambda: [write_whole(folder / "plan.png", render_plan(found.problem, best))])
    timed.may("gantt.png", lambda: [draw(timeline, "gantt", folder / "gantt.png")], COSTS.gantt)
    timed.may("memory.png", lambda: [draw(timeline, "memory", folder / "memory.png")], COSTS.memory)
    timed.may("report.html", lambda: [write_whole(folder / "report.html", page())], COSTS.report)
    timed.must(lambda: write_settings(settings, folder))
