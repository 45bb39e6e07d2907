"""The command `simulate`: one schedule on a problem, or a 1F1B pipeline given by the older visualiser's flags."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from commands.options import noise as noise_options
from commands.options.visualiser_flags import DEFAULT_PICTURE, add_flags, problem_and_picture
from commands.reports import figures, text_gantt
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json, add_objective, draw, write_schedule
from commands.shared.not_applicable import applicable, or_none
from commands.shared.output import files_written, in_file_units, note, write_json
from commands.shared.watch import add_watch
from heuristics.catalogue import HEURISTICS, schedule_named
from pipesched.errors import BadInput, Deadlock, DoesNotApply
from pipesched.files.problem_file import read_document, with_objective
from pipesched.files.schedule_file import FORMAT, ScheduleFile, read_schedule, schedule_from
from pipesched.problem.attainable_spans import Value
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.formatting import size
from pipesched.problem.objective import OBJECTIVES
from pipesched.problem.problem import Problem
from pipesched.results.schedule_figures import decisions_document, streams_document
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.schedule import slot_text
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.idle_causes import idle_times
from pipesched.simulation.noise import Noisy
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate, validate_schedule
from solver.bounds.saving.certificates import certificates


def timeline_of(problem: Problem, text: str) -> Timeline:
    """Return the timeline of a schedule on a problem, each pass as early as possible.

    `text` is the name of a published schedule, or else the path of a schedule file. `BadInput` if the schedule does not
    apply to the problem, or deadlocks; it may exceed the memory.
    """
    if text not in HEURISTICS.names() and Path(text).exists():
        schedule = read_schedule(text).timeline.schedule
        wrong = validate_schedule(problem, schedule)
        if wrong:
            raise BadInput(*(f"{text}: does not match {problem.name}: {violation.text}" for violation in wrong[:5]))
        try:
            return simulate(problem, schedule)
        except Deadlock as deadlock:
            raise BadInput(f"{text}: {deadlock}") from None
    try:
        return simulate(problem, schedule_named(text).order(problem))
    except DoesNotApply as reason:
        others = or_none(applicable(problem))
        raise BadInput(f"{text} does not apply to {problem.name}: {reason}; those that do: {others}") from None


def timeline_in(document: object, path: str) -> Timeline:
    """Return a schedule file's own timeline; `BadInput` if it breaks a rule other than the memory limit.

    `document` is the content of the file at `path`.
    """
    timeline = schedule_from(document, path).timeline
    broken = [violation for violation in validate(timeline) if violation.rule != "memory"]
    if broken:
        raise BadInput(*(f"{path}: not a valid schedule: {violation.text}" for violation in broken[:5]))
    return timeline


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: problem or schedule file, `--schedule`, objective, noise, `-o`, `--text`, `--watch`, `--json`.

    The older visualiser's flags replace the problem file. `-o` is a picture, or the schedule file if it ends in .json;
    `--no-visualization` draws none.
    """
    parser.add_argument("problem", metavar="PROBLEM", nargs="?", help="problem file, YAML or JSON; or a schedule file")
    parser.add_argument(
        "--schedule", help="name of the schedule, or a schedule file whose order to run (default: 1f1b)"
    )
    add_objective(parser)
    add_json(parser)
    add_watch(parser)
    noise_options.add_noise(parser, seed=True)
    add_flags(parser)
    parser.add_argument(
        "-o",
        "--output",
        help=f".png, .svg or .pdf: Gantt chart (with the flags above: {DEFAULT_PICTURE}); with --noise: samples; "
        "or .json: the schedule file",
    )
    text_gantt.add_text(parser)
    parser.add_argument("--no-visualization", action="store_true", help="draw no picture")


def run(args: Namespace) -> Exit:
    """Simulate the schedule, print its figures, and draw it if a picture was asked for.

    Rules that the schedule breaks are noted on stderr; the exit code is 0 all the same.
    """
    text_gantt.refuse_with_json(args)
    timeline, picture = _schedule_and_picture(args)
    problem = timeline.problem
    violations = validate(timeline)
    metrics, lower_bound = measure(timeline), _lower_bound(problem)
    sampled = None if args.noise is None else noise_options.noisy(timeline, args)
    files = [_draw(timeline, sampled, args, picture)] if picture else []
    if args.json:
        document = _document(timeline, metrics, not violations, lower_bound)
        if sampled:
            both = {"makespan": sampled.makespan, "span": sampled.span}
            results = {name: noise_options.figures(problem, one) for name, one in both.items()}
            document["noise"] = noise_options.document(args, results)
        write_json(document)
        for path in files:
            note(f"wrote {path}")
    else:
        _print(timeline, metrics, not violations, lower_bound)
        if sampled:
            rows = [("makespan", sampled.makespan), ("span", sampled.span)]
            noise_options.show(problem, f"the same under noise: {noise_options.settings(args)}", rows)
        text_gantt.show_if_wanted(timeline, args)
        files_written(files)
    for violation in violations:
        note(f"note: {violation.text}")
    return Exit.DONE


def _schedule_and_picture(args: Namespace) -> tuple[Timeline, Path | None]:
    """Return the timeline to show, and the path of its picture (None: no picture).

    `BadInput` for a schedule file together with options that a problem file takes.
    """
    document = read_document(args.problem) if args.problem is not None else None
    if isinstance(document, dict) and document.get("format") == FORMAT:
        if args.schedule or args.objective:
            found = "--schedule" if args.schedule else "--objective"
            raise BadInput(f"found a schedule file and {found}; allowed: a schedule file alone, whose problem is in it")
        picture = Path(args.output) if args.output and not args.no_visualization else None
        return timeline_in(document, args.problem), picture
    problem, picture = problem_and_picture(args, document)
    if args.objective:
        problem = with_objective(problem, OBJECTIVES[args.objective])
    return timeline_of(problem, args.schedule or "1f1b"), picture


def _draw(timeline: Timeline, sampled: Noisy | None, args: Namespace, path: Path) -> Path:
    """Write the schedule file, or the picture: of the noise samples if there are some, else the Gantt chart."""
    if path.suffix == ".json":
        write_schedule(path, ScheduleFile(timeline, None, None))
        return path
    if sampled is None:
        return draw(timeline, "gantt", path, others=[".json"])
    title = f"{timeline.problem.name} · {timeline.schedule.name}\n{noise_options.settings(args)}"
    rows = [("makespan", sampled.makespan), ("span", sampled.span)]
    return noise_options.draw(timeline.problem, "Time", title, rows, path, [".json"])


def _document(timeline: Timeline, metrics: Metrics, fits: bool, lower_bound: Value | None) -> dict[str, object]:
    problem = timeline.problem
    return {
        "name": problem.name,
        "schedule": timeline.schedule.name,
        "makespan": in_file_units(problem, metrics.makespan_ticks),
        "span": in_file_units(problem, metrics.span_ticks),
        "bubble": metrics.bubbles,
        "idle": metrics.idles,
        "idle_ratio": metrics.idle_ratio,
        "idle_causes": idle_times(timeline).shares(),
        "peak_memory": metrics.peak_memory,
        "streams": streams_document(timeline),
        **decisions_document(timeline.problem, timeline.schedule),
        "fits": fits,
        "lower_bound": in_file_units(problem, lower_bound),
        "gap": figures.share_open(figures.known(metrics, problem.objective), lower_bound) if fits else None,
        "orders": [[slot_text(slot, timeline.problem) for slot in order] for order in timeline.schedule.orders],
    }


def _print(timeline: Timeline, metrics: Metrics, fits: bool, lower_bound: Value | None) -> None:
    title = f"{timeline.schedule.name} on {timeline.problem.name}: {size(timeline.problem)}"
    figures.show(title, timeline, metrics, fits, lower_bound)


def _lower_bound(problem: Problem) -> Value | None:
    """Return the best analytic lower bound in ticks; None if no schedule fits, or for a period."""
    if problem.objective.repeats or why_infeasible(problem):
        return None
    return certificates(problem, problem.objective)[0].value_ticks


COMMANDS.register(
    Command(
        "simulate",
        "how one published schedule runs on your times, with its picture",
        configure,
        run,
        Group.ASK,
        "simulate examples/gpt-1.5b-pp8.yaml --schedule zb-h1",
    )
)
