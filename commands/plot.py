"""`plot`: a schedule file as a picture, or both pictures on one HTML page."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from html import escape
from pathlib import Path

from commands.catalogue import COMMANDS, Command, Exit
from commands.files import add_json, caption, draw
from commands.output import files_written, note, write_json
from pipesched.errors import BadInput
from pipesched.schedule_file import ScheduleFile, read_schedule
from pipesched.timeline import Timeline
from pipesched.validator import validate
from pipesched.write_file import write_whole
from plots.catalogue import PLOTS
from plots.picture import render


def configure(parser: ArgumentParser) -> None:
    """What to draw and where."""
    parser.add_argument("schedule", metavar="SCHEDULE", help="schedule file (JSON)")
    parser.add_argument(
        "--kind", default="gantt", help=f"one of {', '.join(PLOTS.names())} (default: gantt); a page of HTML holds all"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help=".png, .svg or .html (default: KIND.png beside the schedule)"
    )
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Draw and say where."""
    kind = PLOTS[args.kind].name
    file = read_schedule(args.schedule)
    _warn(file.timeline, args.schedule)
    target = Path(args.output) if args.output else Path(args.schedule).with_name(f"{kind}.png")
    page = target.suffix.lower() in (".html", ".htm")
    path = write_whole(target, _page(file)) if page else draw(file.timeline, kind, target, file.metrics)
    if args.json:
        write_json({"files": [str(path)]})
    else:
        files_written([path])
    return Exit.DONE


def _warn(timeline: Timeline, path: str) -> None:
    """What is wrong with a schedule is said beside its picture; without proper times there can be none."""
    violations = validate(timeline)
    undrawable = [v.text for v in violations if v.rule in ("complete", "placement", "times")]
    if undrawable:
        raise BadInput(*(f"{path}: cannot be drawn: {text}" for text in undrawable[:5]))
    for violation in violations:
        note(f"note: not a valid schedule: {violation.text}")


def _page(file: ScheduleFile) -> str:
    """Every picture of a schedule on one page that needs no other file."""
    timeline, problem = file.timeline, file.timeline.problem
    title = escape(f"{problem.name} · {timeline.schedule.name}")
    pictures = "\n".join(_inline(render(timeline, plot.draw, "svg", plot.title)) for plot in PLOTS)
    style = "body{font-family:sans-serif;margin:2em}svg{max-width:100%;height:auto;display:block;margin-bottom:2em}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{style}</style></head>\n"
        f"<body><h1>{title}</h1><p>{escape(caption(file.metrics, problem))}</p>\n{pictures}\n</body></html>\n"
    )


def _inline(svg: bytes) -> str:
    """An SVG file without its XML prologue."""
    text = svg.decode()
    return text[text.index("<svg") :]


COMMANDS.register(Command("plot", "a schedule file as PNG, SVG or HTML", configure, run))
