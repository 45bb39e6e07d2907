"""The command `layouts`: plans a model's layouts on a number of GPUs, and recommends one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

from commands.options.plan_progress import PlanLines
from commands.options.search import add_limits, interrupt_sets, limits_of, not_interrupted, progress_line
from commands.options.training import add_sizes, add_training, missing, wanted_of
from commands.options.values import whole
from commands.reports.html.layouts import layouts_report
from commands.reports.plans import layouts as table
from commands.reports.plans.plan import sentences
from commands.reports.plans.plan_files import plan_folder, write_plan
from commands.reports.timed_files import timed_files
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.console import redraws
from commands.shared.file_arguments import add_json
from commands.shared.for_runtime import add_plans_for
from commands.shared.output import complain, files_written, note, write_json
from commands.shared.output_folder import record_output
from commands.shared.partition_settings import settings_document, settings_texts, show_settings
from commands.shared.watch import stop_event
from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole
from pipesched.files.model_configs.read_config import KINDS, read_config
from pipesched.problem.formatting import with_unit
from solver.planning.progress import PlanProgress
from targets.layout_answer import LayoutAnswer, answered
from targets.layout_race import MICROBATCH_SIZES, Batch
from targets.plans import narrowed_sentences
from targets.step_document import step_document

_SIZES = ("tensor", "context", "pipeline", "expert", "data")
_FILE, _TABLE = "model.yaml", "layouts.csv"
_SECONDS = 50  # to search; with reading, pictures and files the command takes a minute


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: model configuration, number of GPUs, training, sizes to fix, and options of the search.

    These are limits and `--for`, a runtime. The output is a folder (`-o`) and `--json`.
    """
    parser.add_argument("source", metavar="CONFIG", help=KINDS)
    parser.add_argument("--gpus", type=whole(1, 10**5), metavar="N", help="devices in all; required")
    add_training(parser, "micro-batches of one step, shared among the data parallel replicas", several=True)
    parser.add_argument(
        "--batch", type=whole(1, 10**9), metavar="SEQUENCES", help="sequences of one step, instead of --microbatches"
    )
    add_sizes(parser, _SIZES, "searched")
    add_limits(parser, _SECONDS)
    add_plans_for(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help=f"write all layouts as {_TABLE}, the recommended one's plan file {_FILE}, and what `plan` writes of it",
    )
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Search plans for the layouts, print the table, and write the recommended plan if `-o` names a folder.

    Exit code 3 if no layout with a plan was found, 130 if the user interrupted the search. `BadInput` if a size that is
    needed is given nowhere.
    """
    absent = [f"{option}: missing; it is required" for option in missing(args, "gpus", "hardware")]
    if args.batch is None and args.microbatches is None:
        absent.append("--batch, --microbatches: found neither; allowed: one of them")
    if absent:
        raise BadInput(*absent)
    config, folder = read_config(args.source, args.vocabulary), plan_folder(args.output)
    sizes = args.microbatch_size or (
        MICROBATCH_SIZES if args.batch is not None else (config.settings.get("microbatch_size", 1),)
    )
    batch = Batch(args.microbatches, args.batch, sizes)
    wanted = wanted_of(Namespace(**vars(args) | {"microbatch_size": None, "microbatches": 1}), 1, None)
    stop = stop_event(args)
    moments: list[PlanProgress] = []
    with interrupt_sets(stop), progress_line() as say:
        line = PlanLines("ms", say)

        def tell(moment: PlanProgress) -> None:
            line(moment)
            moments.append(moment)

        given = {name: getattr(args, name) for name in _SIZES}
        answer = answered(
            config, wanted, args.gpus, batch, given, Path(args.source).name, args.target, limits_of(args), _Seen(say),
            tell, stop, moments.clear,
        )  # fmt: skip
    if not args.json:
        for text in config.notes:
            note(f"note: {text}")
        table.show(answer.layouts, answer.capacity, args.target)
    files: list[Path] = []
    try:
        if answer.plan is not None:
            files = _written(answer, moments, args, folder)
    finally:
        if args.json:
            own = answer.plan
            found = (
                {} if own is None else own.found.document() | step_document(own.found) | settings_document(own.settings)
            )
            named = {"files": [str(path) for path in files]}
            given_batch = {"microbatches": args.microbatches} if args.microbatches is not None else {}
            write_json(given_batch | answer.layouts.document() | {"best": found} | named)
    files_written([] if args.json else files)
    if stop.is_set():
        return Exit.INTERRUPTED
    if answer.plan is None:
        complain(table.lacking(answer.race, args.gpus))
    return Exit.DONE if answer.plan is not None else Exit.NOT_FOUND


class _Seen:
    """Progress of the search over layouts, on standard error: the layout under way and the best step time.

    It is called with the number of the layout, from 1, how many there are, and the best time in ms, None without a
    plan. On a terminal one line changes in place; elsewhere a line is printed only when the best changes, and at the
    end.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._last: Fraction | None = None

    def __call__(self, number: int, of: int, best: Fraction | None) -> None:
        if redraws() or best != self._last or number == of:
            self._last = best
            known = "no plan yet" if best is None else f"best {with_unit(round(best, 3), 'ms')}"
            self._say(f"layout {number} of {of}, {known}")


def _written(answer: LayoutAnswer, moments: list[PlanProgress], args: Namespace, folder: Path | None) -> list[Path]:
    """Print the plan of the recommended layout and write its files to `folder`, if there is one; return their paths.

    Without a folder there are no paths.
    """
    chosen, row = answer.plan, answer.layouts.recommended
    assert chosen is not None and row is not None
    found, narrowed = chosen.found, chosen.narrowed
    if not args.json:
        print(f"plan of {table.name_of(row)}:")
        more = [] if narrowed is None else narrowed_sentences(found, narrowed)
        assert found.best is not None
        for sentence in (*sentences(found, found.best, "" if narrowed is None else narrowed.scope), *more):
            print(sentence)
        show_settings(chosen.settings, args.target)
    if folder is None:
        return []
    assert found.best is not None
    page = partial(layouts_report, answer, settings_texts(chosen.settings, args.target), moments, args, _FILE)
    with timed_files(args, found.best.timeline, found.interrupted) as timed:
        timed.must(lambda: [write_whole(folder / _TABLE, table.csv_text(answer.layouts))])
        timed.must(lambda: [write_whole(folder / _FILE, answer.text)])
        write_plan(timed, found, chosen.settings, folder, page)
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
