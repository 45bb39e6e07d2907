"""`layouts`: how to spread a model over so many GPUs, each way with its best plan, and the plan of the best way."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

from commands.options.plan_progress import PlanLines
from commands.options.search import add_limits, interrupt_sets, limits_of, not_interrupted, progress_line
from commands.options.training import add_sizes, add_training, missing, wanted_of
from commands.options.values import whole
from commands.reports.html.plan import plan_report
from commands.reports.plans import layouts as table
from commands.reports.plans.plan import sentences, with_note
from commands.reports.plans.plan_files import plan_folder, write_plan
from commands.reports.timed_files import timed_files
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.for_runtime import add_plans_for
from commands.shared.output import complain, files_written, note, write_json
from commands.shared.output_folder import record_output
from commands.shared.partition_settings import chosen_formats, settings_document, settings_texts, show_settings
from commands.shared.watch import stop_event
from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole
from pipesched.files.model_configs.read_config import KINDS, read_config
from solver.limits import Limits
from solver.planning.progress import PlanProgress, Report
from solver.planning.time_shares import TimeShares
from targets.layouts import LayoutRace, best_layouts
from targets.plans import Planned, narrowed_sentences, planned

_SIZES = ("tensor", "context", "pipeline", "expert", "data")
# Of the time limit, the part for all layouts; the rest is for the plan of the best.
_RACE_SHARE = 0.6
_FILE = "model.yaml"
_SECONDS = 50  # to search; with reading, pictures and files the command takes a minute


def configure(parser: ArgumentParser) -> None:
    """The model, the devices, how long to search, where to write."""
    parser.add_argument("source", metavar="CONFIG", help=KINDS)
    parser.add_argument("--gpus", type=whole(1, 10**5), metavar="N", help="devices in all")
    add_training(parser, "micro-batches of one step, shared among the data parallel replicas")
    add_sizes(parser, _SIZES, "searched")
    add_limits(parser, _SECONDS)
    add_plans_for(parser)
    parser.add_argument(
        "-o", "--output", metavar="DIR", help=f"write the best layout's plan file {_FILE}, and what `plan` writes of it"
    )
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Race the layouts, plan the best, print, write."""
    absent = missing(args, "gpus", "microbatches", "hardware")
    if absent:
        raise BadInput(*(f"{option}: missing; it is required" for option in absent))
    config, folder = read_config(args.source), plan_folder(args.output)
    wanted = wanted_of(args, 1, None)
    stop, time = stop_event(args), TimeShares(limits_of(args))
    moments: list[PlanProgress] = []
    line = PlanLines("ms")
    with interrupt_sets(stop), progress_line() as say:

        def tell(moment: PlanProgress) -> None:
            say(line(moment))
            moments.append(moment)

        given = {name: getattr(args, name) for name in _SIZES}
        source, part = Path(args.source).name, time.part(_RACE_SHARE, 1)
        race = best_layouts(config, wanted, args.gpus, given, source, args.target, part, tell, stop)
        moments.clear()
        answer = None if race.rows[0].step is None else _plan(race, args, time.part(1, 1), tell, stop)
        if answer is not None:
            race.rows[0].take(answer.found)
    if not args.json:
        for text in config.notes:
            note(f"note: {text}")
        table.show(race, wanted, args.gpus, args.target)
    files: list[Path] = []
    try:
        if answer is not None:
            files = _answered(race, answer, moments, args, folder)
    finally:
        if args.json:
            found = {} if answer is None else answer.found.document() | settings_document(answer.settings)
            named = {"files": [str(path) for path in files]}
            write_json(table.document(race, wanted, args.gpus) | {"best": found} | named)
    files_written([] if args.json else files)
    if stop.is_set():
        return Exit.INTERRUPTED
    if answer is None:
        complain(table.lacking(race))
    return Exit.DONE if answer is not None else Exit.NOT_FOUND


def _plan(race: LayoutRace, args: Namespace, limits: Limits, tell: Report, stop: Event) -> Planned:
    """The best layout's plan, from the one that the race found."""
    best = race.rows[0]
    assert best.plan is not None
    problem = race.spread[best.key].problem
    forms = chosen_formats(args.target)
    answer = planned(problem, problem, args.target, forms, limits, tell, tell, stop, best.plan.best)
    return replace(answer, found=with_note(answer.found))


def _answered(
    race: LayoutRace, answer: Planned, moments: list[PlanProgress], args: Namespace, folder: Path | None
) -> list[Path]:
    """Say the plan of the best layout, and write its files; those are returned."""
    found, narrowed, text = answer.found, answer.narrowed, race.spread[race.rows[0].key].text
    if not args.json:
        print(f"plan of {race.rows[0].key}:")
        more = [] if narrowed is None else narrowed_sentences(found, narrowed)
        assert found.best is not None
        for sentence in (*sentences(found, found.best, "" if narrowed is None else narrowed.scope), *more):
            print(sentence)
        show_settings(answer.settings, args.target)
    if folder is None:
        return []
    assert found.best is not None
    page = partial(
        plan_report, found, [], settings_texts(answer.settings, args.target), moments, args, _FILE, text, narrowed
    )
    with timed_files(args, found.best.timeline, found.interrupted) as timed:
        timed.must(lambda: [write_whole(folder / _FILE, text)])
        write_plan(timed, found, answer.settings, folder, page)
    with not_interrupted():
        record_output(folder, "layouts", timed.paths)
    return timed.paths


COMMANDS.register(
    Command(
        "layouts",
        "for a model's configuration and a number of GPUs: sizes of TP, CP, PP, DP and EP, and the plan",
        configure,
        run,
        Group.FIND,
        "layouts config.json --gpus 16 --microbatches 64 --hardware h100-80gb --for megatron -o out",
    )
)
