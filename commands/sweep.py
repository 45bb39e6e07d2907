"""The command `sweep`: solves a problem or plan for lists and ranges of fields, every cell certified, in one store."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import perf_counter

from commands.options.search import (
    add_limits,
    interrupt_sets,
    limits_of,
    not_interrupted,
    progress_line,
    seconds_to_search,
)
from commands.options.values import seconds, whole
from commands.reports.html.origin import typed
from commands.reports.html.sweep import sweep_report
from commands.reports.sweep import progress_text, show
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json, add_objective
from commands.shared.output import complain, files_written, note, write_json
from commands.shared.output_folder import record_output
from pipesched.errors import BadInput
from pipesched.files.atomic_write import make_folder, write_whole
from pipesched.sweeps.cells import Sweep, read_sweep
from pipesched.sweeps.exports import cell_texts, refuse_without_parquet, to_csv, to_parquet
from pipesched.sweeps.same_model import uneven_stages
from pipesched.sweeps.store import Store
from pipesched.sweeps.table import State, Table
from plots.sweeps.pictures import pictures
from solver.limits import Limits
from solver.sweeps.executor import Executor, InTurn
from solver.sweeps.run_sweep import Moment, Options, run_sweep

_STORE = "sweep.sqlite"


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: problem or plan file, fields (`--set`), objective, limits, jobs or cluster, store, output."""
    parser.add_argument("file", metavar="FILE", help="problem file or plan file, YAML or JSON")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUES",
        help="values of a field, as memory.capacity=4..16:2 or placement=linear,v-shape; several make a product "
        "(besides the file's `sweep` section)",
    )
    parser.add_argument(
        "--same-model",
        action="store_true",
        help="where a cell has other stages than the file, divide the file's costs among them",
    )
    add_objective(parser)
    add_limits(parser, what="seconds to search each cell")
    parser.add_argument(
        "--total-time",
        type=seconds,
        metavar="S",
        help="seconds for all cells; each gets a share of what is left",
    )
    parser.add_argument(
        "--again", action="store_true", help="solve on what was not solved to its end, where there is more time now"
    )
    parser.add_argument("--jobs", type=whole(1, 1024), metavar="N", help="cells at a time (default: one for each core)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="solve on the Dask cluster of this scheduler")
    parser.add_argument("--store", metavar="FILE", help="where results are kept (default: sweep.sqlite in -o's DIR)")
    parser.add_argument("--parquet", action="store_true", help="with -o, also results.parquet")
    parser.add_argument(
        "--write", action="append", default=[], type=whole(0, 10**9), metavar="CELL", help="write this cell's schedule"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="write sweep.sqlite, results.csv, pictures and report.html"
    )
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Solve the cells not yet in the sweep's store, print the table, and write the files if `-o` names a folder.

    The exit code is 0 if some cell has a value, else 1 if no cell is open, else 3; 130 after Ctrl-C. Open are cells
    that failed, or whose schedule was not found in time. It is 2 if the store or a file cannot be written, and the
    table is printed nevertheless.
    """
    sweep = read_sweep(args.file, args.set, args.same_model, args.objective)
    _refuse_options(sweep, args)
    for text in _notes(sweep):
        note(f"note: {args.file}: {text}")
    folder = None if args.output is None else make_folder(_folder(args.output))
    store_path = Path(args.store) if args.store else (folder or Path()) / (
        _STORE if folder else f"{Path(args.file).stem}.{_STORE}"
    )  # fmt: skip
    as_typed, since = typed(args.file), perf_counter()
    with Store(store_path) as store:
        found = _solved(sweep, store, args)
    if not args.json:
        show(found)
    if found.not_stored:
        complain(
            f"{found.not_stored}; the store has the cells that ended before, and the same command goes on from there"
        )
    files: list[Path] = [store_path]
    try:
        with not_interrupted():
            for path in _written(found, folder, args, perf_counter() - since, as_typed):
                files.append(path)
            if folder:
                record_output(folder, "sweep", files[1:])
    finally:
        # What was found is told even where the disk is full.
        if args.json:
            write_json(found.document() | {"files": [str(path) for path in files]})
    if not args.json:
        files_written(files)
    if found.not_stored:
        return Exit.BAD_INPUT
    if found.interrupted:
        complain("interrupted: all cells solved until then are kept; the same command goes on from there")
        return Exit.INTERRUPTED
    if any(row.value is not None for row in found.rows):
        return Exit.DONE
    return Exit.NO if found.count(State.UNKNOWN, State.FAILED, State.WAITING) == 0 else Exit.NOT_FOUND


def _solved(sweep: Sweep, store: Store, args: Namespace) -> Table:
    stop = Event()
    limits, jobs = _shared_cores(replace(limits_of(args), seconds=args.time_limit), args, len(sweep.cells))
    total = None if args.total_time is None else seconds_to_search(args, args.total_time)
    options = Options(limits, total, args.again)
    with interrupt_sets(stop), _executor(args.cluster, jobs, stop) as executor, progress_line() as say:

        def report(moment: Moment) -> None:
            say(progress_text(moment))

        return run_sweep(sweep, store, executor, options, report, stop)


def _shared_cores(limits: Limits, args: Namespace, cells: int) -> tuple[Limits, int]:
    """Return the limits of one cell's search, and how many cells are searched at a time, from this machine's cores.

    On a cluster each cell gets one core unless `--workers` says otherwise.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = args.jobs or min(cores, cells)
    workers = args.workers or (1 if args.cluster else max(1, cores // jobs))
    return Limits(limits.seconds, workers, limits.seed, limits.gap), jobs


@contextmanager
def _executor(cluster: str | None, jobs: int, stop: Event) -> Iterator[Executor]:
    """Context that yields the executor for the cells, and shuts it down at the end.

    Cells are solved on the cluster at the address `cluster`, else one after another (`jobs` = 1), else by `jobs`
    processes.
    """
    executor: Executor
    if cluster is not None:
        from solver.sweeps.cluster import Cluster

        executor = Cluster(cluster)
    elif jobs == 1:
        executor = InTurn(stop)
    else:
        from solver.sweeps.process_pool import ProcessPool

        executor = ProcessPool(jobs)
    try:
        yield executor
    finally:
        executor.close()


def _refuse_options(sweep: Sweep, args: Namespace) -> None:
    if args.jobs and args.cluster:
        raise BadInput(
            "found --jobs with --cluster; allowed: one of them (a cluster runs a cell for each thread it has)"
        )
    if args.parquet:
        if args.output is None:
            raise BadInput("found --parquet without -o; allowed: with -o DIR, where results.parquet is written")
        refuse_without_parquet()
    wrong = [number for number in args.write if number >= len(sweep.cells)]
    if wrong:
        raise BadInput(f"--write: found {wrong[0]}; allowed: the number of a cell, 0 to {len(sweep.cells) - 1}")


def _folder(output: str) -> str:
    if not output or (Path(output).exists() and not Path(output).is_dir()):
        raise BadInput(
            f"--output: found {output!r}, which is no directory; allowed: a directory, made if it is missing"
        )
    return output


def _notes(sweep: Sweep) -> list[str]:
    """Return warnings on the file's numbers, cells of different models, and stages that --same-model cuts badly."""
    notes = [text for cell in sweep.cells if not cell.refused for text in cell.problem.notes]
    stages = sweep.chain_lengths()
    if len(stages) > 1 and not sweep.axes.same_model:
        listed = " and ".join(map(str, stages))
        notes.append(
            f"cells have {listed} stages in a chain, each with the times of the file, so that they are different "
            "models; --same-model divides the file's costs among the stages"
        )
    if sweep.axes.same_model and not sweep.of_plans and len(stages) > 1:
        heavy = uneven_stages(sweep.document)
        if heavy:
            notes.append(
                f"--same-model cuts every stage in equal parts, also stage {', '.join(map(str, heavy))}, which takes "
                "more than half as long again as most; a head or another layer that cannot be cut needs a plan file"
            )
    return list(dict.fromkeys(notes))


def _written(
    found: Table, folder: Path | None, args: Namespace, seconds: float, as_typed: str | None
) -> Iterator[Path]:
    """Write the files of a sweep that took `seconds`, one each time a path is asked for; `as_typed` is the input text.

    It prints a line for each cell of `--write` that has no schedule. Without a folder only those cells are written.
    """
    if folder is not None:
        yield write_whole(folder / "results.csv", to_csv(found))
        if args.parquet:
            yield write_whole(folder / "results.parquet", to_parquet(found))
        for name, image in pictures(found).items():
            yield write_whole(folder / name, image)
    for number in args.write:
        outcome = found.rows[number].outcome
        if outcome is None or outcome.schedule is None:
            complain(f"--write {number}: the cell has no schedule ({found.rows[number].reason or 'not solved'})")
            continue
        for name, text in cell_texts(found.rows[number].cell, outcome).items():
            yield write_whole((folder or Path()) / name, text)
    if folder is not None:
        yield write_whole(folder / "report.html", sweep_report(found, seconds, args, as_typed))


COMMANDS.register(
    Command(
        "sweep",
        "what if: any field of a problem or plan over lists and ranges, each case solved",
        configure,
        run,
        Group.ASK,
        "sweep examples/gpt-1.5b-pp8.yaml --set microbatches=8..32:8",
    )
)
