"""The command `plot`: draws a schedule file as a picture, or as an HTML page with its pictures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from commands.reports import text_gantt
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json, caption, draw
from commands.shared.output import files_written, note, write_json
from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole
from pipesched.files.schedule_file import ScheduleFile, read_schedule
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from plots.catalogue import PLOTS
from plots.drawing.zoom import PERIOD, window_of
from plots.html.page import page


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: schedule file, `--kind` of picture, `--zoom`, the picture's path, `--text`, and `--json`."""
    parser.add_argument("schedule", metavar="SCHEDULE", help="schedule file (JSON)")
    parser.add_argument(
        "--kind", default="gantt", help=f"one of {', '.join(PLOTS.names())} (default: gantt); a page of HTML holds all"
    )
    parser.add_argument(
        "--zoom", metavar="PART", help=f"what to draw: FROM:TO in the file's unit, or {PERIOD}, one of the steady state"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help=".png, .svg, .pdf or .html (default: KIND.png beside the schedule)"
    )
    parser.add_argument(
        "--text",
        action="store_true",
        help="draw the Gantt chart with characters, on standard output, and no file without -o",
    )
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Draw the picture and print its path, or with `--text` print the chart in characters, and draw only with `-o`.

    Without `-o` the picture is next to the schedule file, named after its kind; the ending `.html` makes a page.
    `BadInput` for options that the kind or format of picture does not take.
    """
    text_gantt.refuse_with_json(args)
    kind = PLOTS[args.kind].name
    if args.text and kind != "gantt":
        raise BadInput(f"--text: found --kind {kind}; allowed: gantt, which is the one that characters draw")
    file = read_schedule(args.schedule)
    _warn(file.timeline, args.schedule)
    target = Path(args.output) if args.output else Path(args.schedule).with_name(f"{kind}.png")
    html = target.suffix.lower() in (".html", ".htm")
    if html and args.zoom:
        raise BadInput("--zoom: found with a page of HTML, which zooms by itself; allowed: with .png, .svg or .pdf")
    window = window_of(file.timeline, args.zoom) if args.zoom else None
    if args.text:
        text_gantt.show(file.timeline, window)
        if not args.output:
            return Exit.DONE
    path = (
        write_whole(target, _page(file)) if html else draw(file.timeline, kind, target, file.metrics, [".html"], window)
    )
    if args.json:
        write_json({"files": [str(path)]})
    else:
        files_written([path])
    return Exit.DONE


def _warn(timeline: Timeline, path: str) -> None:
    """Print the faults of a schedule that can be drawn anyway; `BadInput` for one without proper times."""
    violations = validate(timeline)
    undrawable = [v.text for v in violations if v.rule in ("complete", "placement", "times")]
    if undrawable:
        raise BadInput(*(f"{path}: cannot be drawn: {text}" for text in undrawable[:5]))
    for violation in violations:
        note(f"note: not a valid schedule: {violation.text}")


def _page(file: ScheduleFile) -> str:
    """Return the text of an HTML page with the schedule in the interactive chart, which needs no other file."""
    timeline, problem = file.timeline, file.timeline.problem
    return page(timeline, f"{problem.name} · {timeline.schedule.name}", caption(file.metrics, problem))


COMMANDS.register(
    Command(
        "plot",
        "a schedule file as PNG, SVG, PDF or HTML",
        configure,
        run,
        Group.USE,
        "plot results/schedule.json -o page.html",
    )
)
