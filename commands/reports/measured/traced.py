"""Traces of other programs: `profile --from-trace`, and `compare --measured` for them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from commands.shared.catalogue import Exit
from commands.shared.output import complain, files_written, note, write_json
from commands.shared.tables import Column, table
from pipesched.errors import BadInput
from pipesched.files.atomic_write import make_folder, write_whole
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.file_names import stem_of
from pipesched.files.problem_file import problem_from
from pipesched.measurement.comparison import Comparison, compared
from pipesched.measurement.trace import FORMAT, Measured
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.formatting import plain
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from runtime.profiling.problem_text import MIB, time_and_spread
from runtime.traces.catalogue import Hints, head_of, read_traces
from runtime.traces.pipeline_trace import BlockTrace, PipelineTrace
from runtime.traces.problem_of_trace import fastest_quartile, measured_run, trace_text


def from_trace(args: Namespace) -> Exit:
    """Read a trace, write the problem that it shows if `-o` is given, and print what was found and what is missing.

    Exit code 1, and no file, if that problem is infeasible. `BadInput` for files that are no traces of one run.
    """
    trace = read_traces(args.from_trace, Hints(args.devices, args.microbatches))
    name = stem_of(args.output) if args.output else "traced"
    text = trace_text(trace, name, args.capacity, args.objective)
    problem = problem_from(read_yaml(text, name), name)
    reason = why_infeasible(problem)
    if args.output and reason is None:
        make_folder(Path(args.output).parent)
    files = [write_whole(args.output, text)] if args.output and reason is None else []
    if reason is not None:
        complain(f"infeasible, so nothing is written: {reason}")
    run = _comparison(trace, problem)
    if args.json:
        write_json(_document(trace, run) | {"files": list(map(str, files))})
    else:
        _show(trace, run)
        files_written(files)
        if not files and reason is None:
            note("note: nothing written; -o FILE writes the problem that `solve` reads")
    return Exit.DONE if reason is None else Exit.NO


def _comparison(trace: PipelineTrace | BlockTrace, problem: Problem) -> Comparison | None:
    """Compare the run with a simulation of its own order under its own median times; None for a trace of blocks."""
    run = None if isinstance(trace, BlockTrace) else measured_run(trace, problem)
    return None if run is None else compared(run, problem)


def is_foreign(paths: Sequence[str]) -> bool:
    """Return True if any path is a folder, or a file that a program other than `pipesched run` wrote."""
    return any(Path(path).is_dir() or (Path(path).is_file() and FORMAT not in head_of(Path(path))) for path in paths)


def foreign_run(paths: Sequence[str], problem: Problem | None, objective: str | None) -> tuple[Measured, PipelineTrace]:
    """Return the run in traces of another program, as measured passes, and the trace.

    The passes are those of `problem` or, if that is None, of the problem read from the trace, with `objective` (None:
    makespan). Raises `BadInput` for traces without single passes.
    """
    trace = read_traces(paths)
    if isinstance(trace, BlockTrace) or not trace.steps:
        raise BadInput(
            f"{', '.join(paths)}: found {trace.form} without single passes; allowed: with `profile --from-trace`"
        )
    if problem is None:
        text = trace_text(trace, "traced", None, objective or "makespan")
        problem = problem_from(read_yaml(text, "traced"), "traced")
    run = measured_run(trace, problem)
    assert run is not None
    return run, trace


def best_document(best: Solution | None) -> dict[str, object]:
    """Return the part `{"optimum": …}` of JSON output: the best order's time under the measured durations.

    It has `status`, `objective`, `unit`, `value` and `lower_bound`, floats in that unit, and the text `certificate`.
    Value and certificate may be None. The part is empty if no order was searched (`best` is None).
    """
    if best is None:
        return {}
    text = best.certificate.text if best.certificate else None
    value, bound = (None if x is None else float(x) for x in (best.value, best.lower_bound))
    problem = best.problem
    facts = {"status": best.status.value, "objective": problem.objective.name, "unit": problem.time_unit}
    return {"optimum": facts | {"value": value, "lower_bound": bound, "certificate": text}}


def best_sentences(run: Comparison, best: Solution) -> list[str]:
    """Return sentences on the measured time, the predicted time of this order, and the best order's value.

    One more has the lower bound and its argument, if there is a certificate.
    """
    unit = best.problem.time_unit
    found = "none was found" if best.value is None else f"{plain(float(best.value))} {unit}"
    sentences = [
        f"measured {1000 * run.measured:.3f} ms; this order with these times {1000 * run.predicted:.3f} ms",
        f"best order with these times ({best.status.value}): {best.problem.objective.name} {found}",
    ]
    if best.certificate is not None:
        bound = f"{plain(float(best.lower_bound))} {unit} ({best.certificate.name})"
        sentences.append(f"none is below {bound}: {best.certificate.text}")
    return sentences


def _document(trace: PipelineTrace | BlockTrace, run: Comparison | None) -> dict[str, object]:
    document: dict[str, object] = {"format": trace.form, "unit": "s", "not_read": list(trace.notes)}
    if isinstance(trace, BlockTrace):
        blocks = [
            {"pass": b.kind.value, "name": b.name, "stream": b.stream, "seconds": b.seconds} for b in trace.blocks
        ]
        return document | {"blocks": blocks}
    times = [
        {"pass": kind.value, "stage": stage, "median": one.median, "spread": one.spread, "samples": len(one.seconds)}
        for (kind, stage), one in sorted(trace.times.items(), key=lambda item: (item[0][1], item[0][0]))
    ]
    document |= {"device_of_stage": list(trace.stage_device), "microbatches": trace.microbatches, "times": times}
    document["transfers"] = {str(stage): fastest_quartile(one) for stage, one in trace.transfers.items()}
    document["peaks"] = None if trace.peaks is None else list(trace.peaks)
    return document | ({} if run is None else {"run": [asdict(run)]})


def _show(trace: PipelineTrace | BlockTrace, run: Comparison | None) -> None:
    if isinstance(trace, BlockTrace):
        rows = [[b.kind.value, b.name, b.stream, f"{1000 * b.seconds:.3f}"] for b in trace.blocks]
        table(f"blocks of {trace.form}", [Column("pass"), Column("block"), Column("stream"), Column("ms", True)], rows)
    else:
        rows = [
            [str(stage), kind.value, time_and_spread(one), str(len(one.seconds))]
            for (kind, stage), one in sorted(trace.times.items(), key=lambda item: (item[0][1], item[0][0]))
        ]
        columns = [Column("stage", True), Column("pass"), Column("median ± half the quartiles' distance", True)]
        table(f"passes of {trace.form}, without waiting", [*columns, Column("samples", True)], rows)
        for stage, one in sorted(trace.transfers.items()):
            quartile = f"{1000 * fastest_quartile(one):.3f} ms"
            print(f"transfer after stage {stage}: {quartile} (fastest quartile of {len(one.seconds)})")
        if trace.peaks is not None:
            print(f"peak of each device: {', '.join(f'{peak / MIB:.1f}' for peak in trace.peaks)} MiB")
    for text in trace.notes:
        print(text if text.startswith(("assumed: ", "used: ")) else f"not read: {text}")
    if run is not None:
        print(
            f"measured {1000 * run.measured:.3f} ms (median of {run.steps} steps); this order with median times "
            f"{1000 * run.predicted:.3f} ms, with each pass's own {1000 * run.replayed:.3f} ms"
        )
