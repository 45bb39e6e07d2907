"""Published recipes and the first answer of `layouts`: `python -m benchmarks.recipes [--write]`.

A recipe is a layout that authors ran on so many GPUs, or the best of those they measured. The first pass of `layouts`
makes a plan of every layout for the same batch, without a search; the least step is its answer.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import NamedTuple

from benchmarks.measured.figures import Compared, a_sequence
from benchmarks.measured.prediction import config_of, predicted, rates_of, training_of
from benchmarks.measured.ratios import groups, layout_of
from benchmarks.measured.table import CONFIGS, HOLDOUT, Row, read_table
from benchmarks.reporting.page import exit_code, show, table
from pipesched.files.model_configs.expected_error import family_of
from pipesched.files.model_configs.hardware_table import DEVICES
from pipesched.files.model_configs.layouts import Layout
from pipesched.files.model_configs.plan_of_config import Wanted
from solver.limits import Limits
from solver.planning.time_shares import TimeShares
from targets.layout_race import MICROBATCH_SIZES, Batch, first_plans

PAGE = Path(__file__).parents[1] / "docs" / "results" / "recipes.md"
# One row of each: what its authors ran, or the fastest that they measured.
RECIPES = (
    "r050", "r134", "r435", "r561", "r725", "r734", "r806", "r810", "r685", "r818", "r689", "r675", "r822",
)  # fmt: skip
_ALTERNATIVES = 3  # layouts of a group, at least
_SECONDS = 600  # at most, for a first pass


class Recipe(NamedTuple):
    """A published layout and the first answer for the same batch: seconds of a step; `measured` are those of its row.

    `answer` is None where no layout fits. `answer_measured` are those of the row that has the answer's layout, if any.
    """

    row: Row
    seconds: float
    fits: bool
    answer: Layout | None
    answer_seconds: float
    answer_measured: float | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or write the table."""
    parser = ArgumentParser("python -m benchmarks.recipes", description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/results/recipes.md")
    parser.add_argument("--only", nargs="+", default=RECIPES, metavar="ROW", help="rows of the table of measurements")
    args = parser.parse_args(arguments)
    rows = {row.id: row for row in read_table()}
    measured = [*rows.values(), *read_table(HOLDOUT)]
    found = [recipe(rows[name], measured) for name in args.only]
    text = page(found) + "\n\n" + alternatives([*rows.values()])
    show(PAGE if args.write else None, "python -m benchmarks.recipes --write", text)
    return 0


def recipe(row: Row, measured: Sequence[Row], configs: Path = CONFIGS) -> Recipe:
    """The row's layout and the first answer, with the least of the `measured` steps of that, for the row's batch."""
    training = training_of(row)
    if not row.sequence_parallel:
        training["sequence"] = False
    wanted = Wanted(1, 1, row.gpu, DEVICES[row.gpu], row.sequence, training=training, rates=rates_of(row))
    batch = row.microbatches * row.microbatch_size * dict(row.sizes)["data"]
    sizes = tuple(sorted({*MICROBATCH_SIZES, row.microbatch_size}))
    race = first_plans(
        config_of(row, configs), wanted, row.gpus, Batch(None, batch, sizes), {}, row.model, None,
        TimeShares(Limits(seconds=_SECONDS)), lambda *_: None, Event(),
    )  # fmt: skip
    steps = [(one.step.total, one.key) for one in race.rows if one.step is not None]
    best, answer = min(steps, default=(None, None))
    own = predicted(row, configs)
    if best is None:
        return Recipe(row, own.seconds, own.fits, None, 0, None)
    same = [
        a_sequence(one, one.seconds) * batch for one in measured
        if one.seconds and (one.model, one.gpu, one.gpus, one.sequence, one.precision)
        == (row.model, row.gpu, row.gpus, row.sequence, row.precision) and layout_of(one) == answer
    ]  # fmt: skip
    return Recipe(row, own.seconds, own.fits, answer, float(best) / 1000, min(same, default=None))


def alternatives(rows: Sequence[Row], configs: Path = CONFIGS) -> str:
    """Of each group of measured layouts: the first by prediction, and where it stands by the measurements."""
    lines = []
    for _, ones in groups([Compared(row, predicted(row, configs)) for row in rows if row.seconds and row.group]):
        if len({layout_of(one.row) for one in ones}) < _ALTERNATIVES:
            continue
        by_time = sorted(ones, key=lambda one: a_sequence(one.row, one.row.seconds or 0))
        first = min(ones, key=lambda one: a_sequence(one.row, one.found.seconds))
        best, middle = by_time[0], by_time[len(by_time) // 2]
        times = [a_sequence(one.row, one.row.seconds or 0) for one in (best, first, middle)]
        lines.append([
            best.row.model, f"{best.row.gpus} {family_of(best.row.gpu)}", str(best.row.sequence), str(len(ones)),
            _layout_text(best.row), _layout_text(first.row), str(by_time.index(first) + 1),
            f"{100 * (times[1] / times[0] - 1):.1f}",
            f"{100 * (times[2] / times[0] - 1):.1f}",
        ])  # fmt: skip
    head = (
        "model", "GPUs", "sequence", "measured runs", "the fastest measured", "the first by prediction",
        "its place by measurement", "slower than the fastest, %", "the median run is slower, %",
    )  # fmt: skip
    return table(head, lines)


def _layout_text(row: Row) -> str:
    return f"{layout_of(row)}{'' if row.recompute == 'none' else f', {row.recompute} recomputed'}"


def page(found: Sequence[Recipe]) -> str:
    """The table, a line a recipe."""
    head = (
        "model",
        "GPUs",
        "published",
        "measured, s",
        "predicted, s",
        "`layouts`",
        "predicted, s",
        "of it",
        "measured, s",
    )
    return table(head, [_line(one) for one in found])


def _line(one: Recipe) -> list[str]:
    row = one.row
    size, answer = f"{row.gpus} {row.gpu.partition('-')[0].upper()}", one.answer
    first = [
        row.model,
        size,
        _layout_text(row) + ("" if one.fits else " (does not fit)"),
        f"{row.seconds:.3g}",
        f"{one.seconds:.3g}",
    ]
    if answer is None:
        return [*first, "none fits", "", "", ""]
    share = f"{100 * one.answer_seconds / one.seconds:.0f} %"
    measured = "" if one.answer_measured is None else f"{one.answer_measured:.3g}"
    return [*first, str(answer), f"{one.answer_seconds:.3g}", share, measured]


if __name__ == "__main__":
    sys.exit(exit_code(main))
