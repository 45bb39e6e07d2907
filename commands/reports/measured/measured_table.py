"""Report of `compare --measured`: measured traces against their predictions, three numbers for each schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal, NamedTuple

from commands.reports.measured import late_starts as late
from commands.reports.measured.late_starts_html import late_starts_report
from commands.shared.file_arguments import picture_kind
from commands.shared.tables import Column, table
from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole
from pipesched.measurement.calibration import with_measured_times
from pipesched.measurement.comparison import Comparison, compared, executed
from pipesched.measurement.late_starts import LateStarts, late_starts
from pipesched.measurement.trace import Measured, read_measured
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from pipesched.simulation.simulator import simulate
from plots.render import Format
from runtime.running.torch_timing import SPLITS, as_run


class Explained(NamedTuple):
    """A measured schedule, its problem, its times compared with the prediction, and why they differ.

    `late` says why, None for passes of several tasks. `run` is the measured run.
    """

    run: Measured
    problem: Problem
    times: Comparison
    late: LateStarts | None

    @property
    def recalibrated(self) -> Problem | None:
        """The problem with the run's measured times; None for passes of several tasks, or unequal micro-batches."""
        determined = self.late is not None and not self.problem.walks.scale
        return with_measured_times(self.problem, self.run) if determined else None


def explained(measured: Measured, problem: Problem) -> Explained:
    """Compare the times of a trace with a problem of the same passes, and find why passes started late.

    `BadInput` if they do not match.
    """
    return Explained(measured, problem, compared(measured, problem), late_starts(measured, problem))


def comparisons(paths: Sequence[str], problem: Problem | None) -> list[Explained]:
    """Compare the trace in each of the files `paths` with `problem`.

    If `problem` is None, each with the problem that it was run for. `BadInput` names the trace.
    """
    found = []
    for path in paths:
        measured = read_measured(path)
        try:
            found.append(explained(measured, _as_run(problem or measured.problem, measured)))
        except BadInput as error:
            raise BadInput(*(f"{path}: {mistake}" for mistake in error.mistakes)) from None
    return found


def _as_run(problem: Problem, measured: Measured) -> Problem:
    """Return the problem with its times changed as the runtime changes them for the trace's split of backwards."""
    return as_run(problem, measured.split) if measured.split in SPLITS else problem


def document(found: Sequence[Explained]) -> dict[str, object]:
    """Return the object of `compare --measured --json`: predicted and measured times of each schedule.

    It has `unit`, "s", and `rows` in the order of `found`. Of a row the keys are the fields of `Comparison`, and
    `late_starts`, None for passes of several tasks.
    """
    return {
        "unit": "s",
        "rows": [asdict(times) | {"late_starts": late.document(why)} for _, _, times, why in found],
    }


def show(found: Sequence[Explained]) -> None:
    """Print a table with a row for each schedule, makespans in ms; then for each its devices and late starts."""
    columns = [
        Column("schedule"),
        Column("predicted", True),
        Column("replayed", True, 2),
        Column("measured\n(median)", True),
        Column("measured\n(best)", True, 3),
        Column("measured to\npredicted", True),
        Column("measured to\nreplayed", True, 1),
        Column("steps", True, 4),
    ]
    rows = [
        [
            one.schedule,
            *map(_ms, (one.predicted, one.replayed, one.measured, one.best)),
            _difference(one.measured, one.predicted),
            _difference(one.measured, one.replayed),
            str(one.steps),
        ]
        for _, _, one, _ in found
    ]
    table("makespan (ms): predicted from the problem, replayed with each pass's measured time, measured", columns, rows)
    for _, _, one, why in found:
        _show_devices(one)
        late.show(one.schedule, why)


def drawn_as(path: Path) -> Format | Literal["html"]:
    """Return "html" if the output path ends so, else the picture format of its ending; `BadInput` for other endings."""
    return "html" if path.suffix.lower() == ".html" else picture_kind(path, ".html")


def draw(found: Sequence[Explained], best: Solution | None, sentences: Sequence[str], path: Path) -> Path:
    """Write the picture of one run's late starts, or its HTML report, by the ending of `path`; return the path.

    `best` and `sentences` are for the report: the best order, and its comparison with the measured one. `BadInput` for
    several traces, or passes of several tasks.
    """
    kind = drawn_as(path)
    run, problem, times, why = found[0]
    if len(found) > 1 or why is None:
        raise BadInput(f"{path}: found several traces, or passes of several tasks; allowed: one run of single passes")
    if kind != "html":
        return write_whole(path, late.picture(times.schedule, why, kind))
    order = simulate(problem, executed(run, why.step))
    return write_whole(path, late_starts_report(times.schedule, times, why, order, best, sentences))


def _show_devices(comparison: Comparison) -> None:
    columns = [
        Column("device", True),
        Column("work\npredicted", True),
        Column("work\nmeasured", True),
        Column("difference", True),
        Column("end\npredicted", True),
        Column("end\nreplayed", True, 1),
        Column("end\nmeasured", True),
        Column("measured to\nreplayed", True, 2),
    ]
    rows = [
        [
            str(number),
            *map(_ms, (device.predicted_work, device.measured_work)),
            _difference(device.measured_work, device.predicted_work),
            *map(_ms, (device.predicted_end, device.replayed_end, device.measured_end)),
            _difference(device.measured_end, device.replayed_end),
        ]
        for number, device in enumerate(comparison.devices)
    ]
    table(f"{comparison.schedule}, device by device (ms)", columns, rows)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3f}"


def _difference(value: float, base: float) -> str:
    return f"{100 * (value / base - 1):+.2f} %" if base else ""
