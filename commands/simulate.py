"""`simulate`: one schedule on a problem, or a 1F1B pipeline described by the older visualiser's flags."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from commands import noisy
from commands.catalogue import COMMANDS, Command, Exit
from commands.files import add_json, add_objective, draw, write_schedule
from commands.older_flags import DEFAULT_PICTURE, add_flags, problem_and_picture
from commands.orders import timeline_in, timeline_of
from commands.output import files_written, in_file_units, memory_amounts, memory_range, note, rate, table, write_json
from commands.output import time as time_text
from pipesched.amounts import size
from pipesched.errors import BadInput
from pipesched.metrics import Metrics, measure
from pipesched.noise import Noisy
from pipesched.problem import Objective
from pipesched.problem_file import read_document, with_objective
from pipesched.schedule import slot_text
from pipesched.schedule_file import FORMAT, ScheduleFile
from pipesched.timeline import Timeline
from pipesched.validator import validate


def configure(parser: ArgumentParser) -> None:
    """The contract's flags and, with no file, those of the older visualiser."""
    parser.add_argument("problem", metavar="PROBLEM", nargs="?", help="problem file, YAML or JSON; or a schedule file")
    parser.add_argument(
        "--schedule", help="name of the schedule, or a schedule file whose order to run (default: 1f1b)"
    )
    add_objective(parser)
    add_json(parser)
    noisy.add_noise(parser, seed=True)
    add_flags(parser)
    parser.add_argument(
        "-o",
        "--output",
        help=f"picture, .png or .svg: Gantt chart (with the flags above: {DEFAULT_PICTURE}); with --noise: samples; "
        "or .json: the schedule file",
    )
    parser.add_argument("--no-visualization", action="store_true", help="draw no picture")


def run(args: Namespace) -> Exit:
    """Simulate, print, draw."""
    timeline, picture = _schedule_and_picture(args)
    problem = timeline.problem
    violations = validate(timeline)
    metrics = measure(timeline)
    sampled = None if args.noise is None else noisy.noisy(timeline, args)
    files = [_draw(timeline, sampled, args, picture)] if picture else []
    if args.json:
        document = _document(timeline, metrics)
        if sampled:
            both = {"makespan": sampled.makespan, "span": sampled.span}
            results = {name: noisy.figures(problem, one) for name, one in both.items()}
            document["noise"] = noisy.document(args, results)
        write_json(document)
        for path in files:
            note(f"wrote {path}")
    else:
        _print(timeline, metrics)
        if sampled:
            rows = [("makespan", sampled.makespan), ("span", sampled.span)]
            noisy.show(problem, f"the same under noise: {noisy.settings(args)}", rows)
        files_written(files)
    for violation in violations:
        note(f"note: {violation.text}")
    return Exit.DONE


def _schedule_and_picture(args: Namespace) -> tuple[Timeline, Path | None]:
    """What to show, and where its picture goes."""
    document = read_document(args.problem) if args.problem is not None else None
    if isinstance(document, dict) and document.get("format") == FORMAT:
        if args.schedule or args.objective:
            found = "--schedule" if args.schedule else "--objective"
            raise BadInput(f"found a schedule file and {found}; allowed: a schedule file alone, whose problem is in it")
        picture = Path(args.output) if args.output and not args.no_visualization else None
        return timeline_in(args.problem), picture
    problem, picture = problem_and_picture(args)
    if args.objective:
        problem = with_objective(problem, Objective(args.objective))
    return timeline_of(problem, args.schedule or "1f1b"), picture


def _draw(timeline: Timeline, sampled: Noisy | None, args: Namespace, path: Path) -> Path:
    """The schedule file; or a picture: of the samples where there are some, else the Gantt chart."""
    if path.suffix == ".json":
        write_schedule(path, ScheduleFile(timeline, None, None))
        return path
    if sampled is None:
        return draw(timeline, "gantt", path)
    title = f"{timeline.problem.name} · {timeline.schedule.name}\n{noisy.settings(args)}"
    rows = [("makespan", sampled.makespan), ("span", sampled.span)]
    return noisy.draw(timeline.problem, "Time", title, rows, path)


def _document(timeline: Timeline, metrics: Metrics) -> dict[str, object]:
    problem = timeline.problem
    return {
        "name": problem.name,
        "schedule": timeline.schedule.name,
        "makespan": in_file_units(problem, metrics.makespan),
        "span": in_file_units(problem, metrics.span),
        "bubble": metrics.bubbles,
        "idle_ratio": metrics.idle_ratio,
        "peak_memory": memory_amounts(problem, metrics),
        "orders": [[slot_text(slot) for slot in order] for order in timeline.schedule.orders],
    }


def _print(timeline: Timeline, metrics: Metrics) -> None:
    problem, bubbles = timeline.problem, metrics.bubbles
    rows = [
        ("makespan", time_text(problem, metrics.makespan)),
        ("span", time_text(problem, metrics.span)),
        ("bubble(makespan)", rate(bubbles["makespan"])),
        ("bubble(span)", rate(bubbles["span"])),
        ("idle ratio", rate(metrics.idle_ratio)),
        (f"peak memory ({problem.memory.unit})", memory_range(problem, metrics)),
    ]
    title = f"{timeline.schedule.name} on {problem.name}: {size(problem)}"
    table(title, [("figure", False), ("value", True)], rows)


COMMANDS.register(Command("simulate", "one schedule on a problem, with its picture", configure, run))
