"""Report of `run`: predicted and measured times of every pass, and the comparison of gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from commands.shared.tables import Column, table
from pipesched.measurement.trace import Measured, MeasuredPass
from pipesched.problem.formatting import amount, counted
from pipesched.problem.quantities import DeviceId, Ticks
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from runtime.running.job import Difference, Job, Outcome


@dataclass(frozen=True)
class RunReport:
    """A job that was run, its predicted timeline (`plan`), and what was found.

    `outcome` compares losses and gradients with those of the reference; `measured` has the seconds at which every pass
    started and ended in every step. Times of passes are shown of the step with the least makespan.
    """

    job: Job
    plan: Timeline
    outcome: Outcome
    measured: Measured

    @property
    def title(self) -> str:
        return f"{self.job.schedule.name} on {self.job.problem.name}"

    @property
    def scale(self) -> float | None:
        """The seconds of one tick; None where the file's unit is only a label."""
        unit = self.measured.seconds_per_unit
        return None if unit is None else unit * float(self.job.problem.tick)

    @property
    def predicted_ticks(self) -> Ticks:
        return measure(self.plan).makespan_ticks

    @property
    def error(self) -> float | None:
        """The share by which the best step took longer than predicted; None if that is in no seconds, or is 0."""
        if self.scale is None or not self.predicted_ticks:
            return None
        return min(self.measured.makespans) / (self.scale * self.predicted_ticks) - 1

    def rows(self) -> Iterator[tuple[DeviceId, MeasuredPass, Ticks, Ticks]]:
        """Yield (device, measured pass, its predicted start and end in ticks), device by device, each in its order.

        The passes are those of the step with the least makespan.
        """
        for device, row in enumerate(self.measured.best):
            for one in row:
                yield device, one, self.plan.start(one.of), self.plan.end(one.of)

    def show(self) -> None:
        """Print the report as tables: predicted and measured times, and the comparison of gradients."""
        self._show_passes()
        here = f", {1000 * self.scale * self.predicted_ticks:.1f} ms here" if self.scale is not None else ""
        makespans = self.measured.makespans
        rows = [
            ("predicted makespan", f"{amount(self.job.problem, self.predicted_ticks)} in the file{here}"),
            ("measured makespan, best step", f"{1000 * min(makespans):.1f} ms"),
            ("measured makespan, median", f"{1000 * median(makespans):.1f} ms of {counted(len(makespans), 'step')}"),
        ]
        if self.error is not None:
            rows.append(("best against predicted", f"{100 * self.error:+.1f} %"))
        rows += [
            ("losses", _differs(self.outcome.worst_loss)),
            ("gradients", _differs(self.outcome.worst_gradient)),
            ("gradients compared", f"{self.outcome.compared}, in {counted(self.job.compared, 'step')}"),
            ("gradients missing", ", ".join(self.outcome.missing) or "none"),
            ("order executed", "the schedule's" if self.outcome.ordered else "NOT the schedule's"),
        ]
        table(f"{self.title}, run with PyTorch, split by {self.job.split}", [Column("figure"), Column("value")], rows)

    def _show_passes(self) -> None:
        problem, scale = self.job.problem, self.scale
        columns = [
            Column("device", True),
            Column("pass"),
            Column("predicted start", True),
            Column("predicted end", True, 2),
            Column("measured start", True),
            Column("measured end", True, 1),
            Column("takes longer by", True),
        ]
        rows = []
        for device, one, start, end in self.rows():
            longer = "" if scale is None else f"{1000 * (one.seconds - scale * (end - start)):+.1f} ms"
            times = [f"{1000 * t:.1f} ms" for t in (one.start, one.end)]
            planned = [amount(problem, t) if scale is None else f"{1000 * scale * t:.1f} ms" for t in (start, end)]
            rows.append([str(device), str(one.of), *planned, *times, longer])
        table("every pass, in the best step", columns, rows)

    def document(self, files: Sequence[Path]) -> dict[str, object]:
        """Return the object of `run --json`; predicted times are floats in the file's unit, measured ones in seconds.

        `good` says that nothing is wrong, else `complaints` has texts; `missing` are gradients, `gradients_compared` a
        number, `order_kept` a flag. `worst_loss` and `worst_gradient` are None where nothing was compared,
        `seconds_per_unit` and `error` (share by which the best step exceeds the prediction) where the unit is only a
        label. `predicted` and `measured` have the `makespan`, the latter also those of all steps. `passes` are those of
        the best step, device by device, with [start, end] under `predicted` and `measured`. The other keys describe the
        run: schedule, split, machine, files.
        """
        problem, outcome = self.job.problem, self.outcome
        return {
            "name": problem.name,
            "schedule": self.job.schedule.name,
            "backend": "torch",
            "split": self.job.split,
            "lowering": "comms" if self.job.comms else "torch",
            "dtype": self.job.dtype,
            "good": outcome.good,
            "complaints": outcome.complaints(),
            "order_kept": outcome.ordered,
            "gradients_compared": outcome.compared,
            "missing": list(outcome.missing),
            "worst_loss": _document(outcome.worst_loss),
            "worst_gradient": _document(outcome.worst_gradient),
            "seconds_per_unit": self.measured.seconds_per_unit,
            "predicted": {"makespan": problem.in_units(self.predicted_ticks)},
            "measured": {"makespan": min(self.measured.makespans), "makespans": list(self.measured.makespans)},
            "error": self.error,
            "passes": [
                {"device": device, "pass": str(one.of), "measured": [one.start, one.end],
                 "predicted": [problem.in_units(start), problem.in_units(end)]}
                for device, one, start, end in self.rows()
            ],
            "machine": dict(outcome.machine),
            "versions": dict(outcome.versions),
            "files": [str(path) for path in files],
        }  # fmt: skip


def _differs(worst: Difference | None) -> str:
    if worst is None:
        return "not compared"
    result = "equal the reference" if worst.fits else "DIFFER from the reference"
    return f"{result}: worst {worst.value:.2g} of {worst.limit:.2g} allowed, {worst.what}, step {worst.step + 1}"


def _document(worst: Difference | None) -> dict[str, object] | None:
    return None if worst is None else {**worst._asdict(), "fits": worst.fits}
