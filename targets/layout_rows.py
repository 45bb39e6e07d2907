"""Rows for the layouts searched: figures of each layout's plan, and the choice of the recommended layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipesched.files.model_configs.layouts import Layout
from pipesched.files.model_configs.plan_of_config import Wanted
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice
from pipesched.results.gap import gap
from pipesched.results.layouts import EXACT, FIRST, NO_FIRST_PLAN, ExpectedError, LayoutRow, Layouts
from pipesched.schedule.metrics import measure
from solver.parameters import tunable, tuned
from solver.planning.race import RaceEntry
from targets.layout_race import LayoutRace


@dataclass(frozen=True)
@tunable
class RecommendParams:
    """Tolerance within which a simpler layout is recommended instead of the best."""

    as_good: float = tuned(
        0.01,
        "of the best step: so much longer a plainer layout may take; never more than the expected error of a ratio",
        0,
        0.2,
        "nine groups of measured layouts (docs/results/accuracy.md): within 1 % it loses 0.9 % against the best "
        "measured, 1.7 % at 0; within 2 % 2.7 %, since plainer layouts are slower than predicted",
    )


_PARAMS = RecommendParams()


def rows_of(race: LayoutRace, wanted: Wanted, gpus: int, error: ExpectedError) -> Layouts:
    """Return the layouts as rows by step time, those refused last, and the recommended one.

    `error` is what to expect on these devices: rows with a plan whose step is longer than the shortest by at most the
    share `error.ratio` count as equal, whatever `error.mean` is. `gpus` is the number of devices.
    """
    rows = sorted((_row(one, race, wanted, gpus, error) for one in race.rows), key=lambda row: row.total)
    best = rows[0].total
    within = error.ratio
    rows = [replace(row, equal=row.fits and row.total <= best * (1 + within)) for row in rows]
    training = race.rows[0].problem.step
    assert training is not None
    sequences = training.sequences(race.rows[0].problem.microbatches)
    for layout, reason in race.refused.items():
        number = sequences // (layout.data * layout.microbatch_size)
        rows.append(
            LayoutRow(**layout._asdict(), microbatches=number, lower_bound=None, step_lower_bound=None, reason=reason)
        )
    refused = {str(layout): reason for layout, reason in race.refused.items()}
    return Layouts(
        race.rows[0].problem.name, gpus, wanted.hardware, sequences, training.sequence, rows, refused,
        float(race.least) or None,
        recommended(rows, min(within, _PARAMS.as_good)),
    )  # fmt: skip


def recommended(rows: Sequence[LayoutRow], within: float) -> LayoutRow | None:
    """Return the simplest layout whose step is longer than the best by at most the share `within`.

    None if no layout fits. Of equally simple layouts it is the one with the shortest step.
    """
    fitting = [row for row in rows if row.fits]
    if not fitting:
        return None
    best = min(row.total for row in fitting)
    return min((row for row in fitting if row.total <= best * (1 + within)), key=lambda row: (row.plainness, row.total))


def raced_row(race: LayoutRace, row: LayoutRow) -> RaceEntry[Layout]:
    """Return the entry of the race for the layout of a row, which must be none of those refused."""
    return next(one for one in race.rows if {**one.key._asdict()} == row.sizes)


def _row(raced: RaceEntry[Layout], race: LayoutRace, wanted: Wanted, gpus: int, error: ExpectedError) -> LayoutRow:
    found = LayoutRow(
        **raced.key._asdict(), microbatches=raced.problem.microbatches, lower_bound=float(raced.bound),
        step_lower_bound=float(raced.least),
        reason=raced.dropped or (NO_FIRST_PLAN if raced.step is None else ""), assumed=race.spread[raced.key].assumed,
        expected_error=error,
    )  # fmt: skip
    if raced.step is None:
        return found
    training = raced.problem.step
    assert training is not None
    seconds, passes = float(raced.step.total) / 1000, raced.problem.microbatches * training.parallel.data
    peak = gpus * wanted.device.tflops * 1e12
    return replace(
        found, step=raced.step.document(), fits=True, pipeline_time=float(raced.step.pipeline),
        gap=gap(raced.step.pipeline, raced.bound),
        tokens_per_second=training.tokens(raced.problem.microbatches) / seconds,
        mfu=float(training.operations) * passes / (seconds * peak), **_plan(raced),
    )  # fmt: skip


def _plan(raced: RaceEntry[Layout]) -> Mapping[str, Any]:
    """Return the fields of `LayoutRow` that describe the layout's plan.

    That is the one searched for, else the first plan made.
    """
    best = None if raced.plan is None else raced.plan.best
    if best is not None:
        metrics = measure(best.timeline)
        choices = _choices(best.choice, best.partition, best.schedule)
        return choices | {
            "searched": EXACT, "reason": "", "idle": metrics.idle(raced.problem.objective),
            "peak_memory": tuple(metrics.peak_memory),
        }  # fmt: skip
    first = raced.first
    assert first is not None
    choices = _choices(first.choice, first.partition, first.schedule)
    return choices | {"searched": FIRST, "idle": first.idle, "peak_memory": first.peak_memory}


def _choices(choice: Choice, partition: Partition, schedule: str) -> dict[str, Any]:
    recomputed = sum(sum(stage.values()) for stage in partition.recompute_counts())
    return {
        "chunks": choice.chunks, "placement": str(choice), "partition": partition.counts, "schedule": schedule,
        "recomputed_layers": recomputed,
    }  # fmt: skip
