"""The command `plan`: the best partition, placement, recomputation and order of a model of layers, with a proof."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import NamedTuple

from commands.options.plan_progress import PlanLines
from commands.options.search import add_limits, interrupt_sets, limits_of, not_interrupted, progress_line
from commands.reports.html.origin import typed
from commands.reports.html.plan import plan_report
from commands.reports.plans.plan import show, with_note
from commands.reports.plans.plan_files import plan_folder, write_plan
from commands.reports.timed_files import timed_files
from commands.shared.batch_sizes import best_of_sizes, refuse_for_several
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.for_runtime import add_plans_for
from commands.shared.output import complain, files_written, next_step, note_plan, write_json
from commands.shared.output_folder import record_output
from commands.shared.partition_settings import (
    add_settings,
    chosen_formats,
    settings_document,
    settings_texts,
    show_settings,
    with_partition,
)
from commands.shared.watch import add_watch, stop_event
from pipesched.errors import BadInput
from pipesched.files.plan_file import read_plan_sizes
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import counted
from pipesched.results.batch_sizes import SizeResult
from pipesched.results.plan import Plan
from pipesched.results.plan_figures import time_parts
from pipesched.results.solution import Status
from runtime.partitions.catalogue import PartitionFormat
from runtime.partitions.plan_settings import PlanSettings
from solver.planning.progress import PlanProgress
from solver.planning.sensitivity import ChangeResult, sensitivity
from targets.plans import Narrowed, narrowed_document, narrowed_sentences, planned
from targets.step_document import step_document


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: plan file, limits, `--for`, output folder, `--explain`, settings, `--watch`, `--json`."""
    parser.add_argument("plan", metavar="FILE", help="plan file, YAML or JSON")
    add_watch(parser)
    add_limits(parser)
    add_plans_for(parser)
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="write problem.yaml, schedule.json, pictures and report.html"
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="also what a faster last layer, more memory and slower links would change (half the time limit more)",
    )
    add_settings(parser)
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Search the best plan, print it, and write its files if `-o` names a folder.

    The exit code is 0 if a plan was found, 1 if none fits, 3 if none was found in time, 130 after Ctrl-C.
    """
    forms, sizes = chosen_formats(args.settings or args.target), read_plan_sizes(args.plan)
    if len(sizes) > 1:
        refuse_for_several(args, {"explain": "--explain", "partition": "--partition"})
    folder, as_typed = plan_folder(args.output), typed(args.plan)
    stop = stop_event(args)
    with interrupt_sets(stop), progress_line() as say:

        def search(problem: PlanProblem, own: Namespace) -> _Answer:
            prefix = f"{counted(problem.microbatches, 'micro-batch')}: " if len(sizes) > 1 else ""
            return _searched(problem, own, forms, stop, lambda line: say(prefix + line))

        best, results, interrupted = best_of_sizes(sizes, args, search, _result, lambda one: one.found.interrupted)
    found, narrowed, settings, changes, moments = best
    found = replace(found, interrupted=interrupted)
    if not args.json:
        more = [] if narrowed is None else narrowed_sentences(found, narrowed)
        more += results.sentences()
        show(found, changes, more, scope="" if narrowed is None else narrowed.scope)
        show_settings(settings, args.target)
    if found.best is None:
        verdict = "infeasible" if found.status is Status.INFEASIBLE else "no plan found in the time given"
        complain(f"{verdict}: {found.reason}" if found.reason else verdict)
    files: list[Path] = []
    late = False
    try:
        if folder and found.best:
            with timed_files(args, found.best.timeline, found.interrupted) as timed:
                page = partial(
                    plan_report, found, changes, settings_texts(settings, args.target), moments, args, args.plan,
                    as_typed, narrowed, sizes=[*results.sentences()],
                )  # fmt: skip
                write_plan(timed, found, settings, folder, page)
            files, late = timed.paths, timed.interrupted
        if args.output:
            with not_interrupted():
                record_output(args.output, "plan", files)
    finally:
        # What was found is told even where the disk is full.
        if args.json:
            named = {"files": [str(path) for path in files]}
            of_sizes = {"sizes": results.document()} if results.results else {}
            write_json(_document(found, changes, narrowed) | of_sizes | settings_document(settings) | named)
    if not args.json:
        files_written(files)
        if not args.output and found.best is not None and not found.interrupted:
            next_step([*args.words, "-o", "out"], "writes the plan's problem, schedule, settings and report")
    if found.interrupted or late:
        return Exit.INTERRUPTED
    return {Status.INFEASIBLE: Exit.NO, Status.UNKNOWN: Exit.NOT_FOUND}.get(found.status, Exit.DONE)


class _Answer(NamedTuple):
    """The plan found for one micro-batch size.

    `narrowed` is its restriction to a runtime or a given partition (None: none), `settings` are those of runtimes,
    `changes` the changes tried, `moments` the progress of its search.
    """

    found: Plan
    narrowed: Narrowed | None
    settings: Sequence[PlanSettings]
    changes: list[ChangeResult]
    moments: list[PlanProgress]


def _searched(
    whole: PlanProblem, args: Namespace, forms: list[PartitionFormat], stop: Event, say: Callable[[str], None]
) -> _Answer:
    """Search the best plan, and those for the runtimes in `forms`, after printing the file's assumptions.

    `say` prints progress. With `--explain` changes of the problem are then tried for half the time limit more.
    `BadInput` for `--explain` with free memory as the objective.
    """
    problem = with_partition(whole, args.partition)
    if args.explain and problem.leaves is not None:
        raise BadInput(f"--explain: found objective {problem.leaves}; allowed: the objective of a time")
    note_plan(args.plan, problem)
    moments: list[PlanProgress] = []
    line, limits = PlanLines(problem.time_unit, say), limits_of(args)

    def tell(moment: PlanProgress) -> None:
        line(moment)
        if not moments or (moments[-1].value, moments[-1].lower_bound) != (moment.value, moment.lower_bound):
            moments.append(moment)

    answer = planned(whole, problem, args.target, forms, limits, tell, line, stop)
    found = with_note(answer.found)
    half = replace(limits, seconds=limits.seconds / 2)
    changes = sensitivity(found, half, stop) if args.explain and found.best and not stop.is_set() else []
    return _Answer(found, answer.narrowed, answer.settings, changes, moments)


def _result(problem: PlanProblem, sequences: int | None, one: _Answer) -> SizeResult:
    """Return an answer as the result for its micro-batch size; `sequences` are those of a micro-batch."""
    found = one.found
    return SizeResult(
        problem.microbatches, sequences, found.status, found.value, found.lower_bound, found.reason, found.free
    )


def _document(found: Plan, changes: list[ChangeResult], narrowed: Narrowed | None) -> dict[str, object]:
    parts = None if found.best is None else time_parts(found.problem, found.best).document()
    document = (
        found.document()
        | step_document(found)
        | {"time": parts}
        | ({} if narrowed is None else narrowed_document(narrowed))
    )
    if changes:
        document["changes"] = [
            {
                "change": one.text,
                "value": None if one.plan.value is None else float(one.plan.value),
                "lower_bound": float(one.lower_bound),
                "between": [float(share) for share in one.brings(found) or ()],
            }
            for one in changes
        ]
    return document


COMMANDS.register(
    Command(
        "plan",
        "for a model, or times per layer: the best partition, placement, recomputation and order",
        configure,
        run,
        Group.FIND,
        "plan examples/plans/llama3-70b-80gb.yaml --for megatron -o out",
    )
)
