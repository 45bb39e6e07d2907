"""Random noise on durations in `simulate` and `compare`: options, table, JSON and picture."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from commands.options.values import share, whole
from commands.shared.file_arguments import picture_kind
from commands.shared.output import percent
from commands.shared.tables import Column, table
from pipesched.files.atomic_write import write_whole
from pipesched.problem.formatting import counted, plain
from pipesched.problem.problem import Problem
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.noise import DISTRIBUTION, Distribution, Noisy, under_noise

MOST_SAMPLES = 1_000_000
COLUMNS = (
    Column("without noise", True),
    Column("mean", True),
    Column("median", True, 3),
    Column("5th percentile", True, 2),
    Column("95th percentile", True, 1),
    Column("mean above\nno noise", True),
)


def add_noise(parser: ArgumentParser, seed: bool) -> None:
    """Add `--noise`, a share or None, and `--samples`; and also `--seed` if `seed` is True, for commands without it."""
    parser.add_argument(
        "--noise",
        type=share,
        metavar="SHARE",
        help="also under random durations: relative standard deviation of every pass, as 5%% or 0.05",
    )
    parser.add_argument(
        "--samples",
        type=whole(1, MOST_SAMPLES),
        default=1000,
        metavar="N",
        help="with --noise: how many samples (default: 1000)",
    )
    if seed:
        parser.add_argument(
            "--seed", type=whole(0, 2**31 - 1), default=0, help="with --noise: seed of the samples (default: 0)"
        )


def noisy(timeline: Timeline, args: Namespace) -> Noisy:
    """Return makespans and spans of a timeline's order, simulated with noise on durations as the options say.

    `--noise` must be given.
    """
    return under_noise(timeline, float(args.noise), args.samples, args.seed)


def settings(args: Namespace) -> str:
    """Return the settings of the noise as text for titles; `--noise` must be given."""
    return f"durations ± {plain(float(100 * args.noise))} %, {counted(args.samples, 'sample')}, seed {args.seed}"


def show(problem: Problem, title: str, rows: Sequence[tuple[str, Distribution]]) -> None:
    """Print a table under `title` with a row for each named distribution: its figures in the file's unit."""
    unit = f" ({problem.time_unit})" if problem.time_unit else ""
    table(title, [Column("figure" + unit), *COLUMNS], [[name, *cells(problem, one)] for name, one in rows])


def cells(problem: Problem, one: Distribution) -> list[str]:
    """Return the texts of a table row for a distribution, one for each of `COLUMNS`.

    The times are in the file's unit. The last is the share, in per cent, by which the mean is above the value without
    noise.
    """
    above = one.mean / one.nominal - 1 if one.nominal else 0.0
    return [*map(_seven_digits, figures(problem, one).values()), percent(above)]


def _seven_digits(number: float) -> str:
    return np.format_float_positional(number, precision=7, fractional=False, trim="-")


def document(args: Namespace, results: Mapping[str, object]) -> dict[str, object]:
    """Return the object under `noise` in JSON output: the noise's settings, and the entries of `results`.

    The settings are `relative_standard_deviation`, a share, `distribution`, its name, `samples` and `seed`.
    """
    return {
        "relative_standard_deviation": float(args.noise),
        "distribution": DISTRIBUTION,
        "samples": args.samples,
        "seed": args.seed,
        **results,
    }


def figures(problem: Problem, one: Distribution) -> dict[str, float]:
    """Return figures of a distribution by their JSON names, in the file's unit.

    They are `nominal` (without noise), `mean`, `median`, and the percentiles `p5` and `p95`.
    """
    unit = float(problem.tick)
    return {
        "nominal": one.nominal * unit,
        "mean": one.mean * unit,
        "median": one.percentile(50) * unit,
        "p5": one.percentile(5) * unit,
        "p95": one.percentile(95) * unit,
    }


def draw(
    problem: Problem,
    label: str,
    title: str,
    rows: Sequence[tuple[str, Distribution]],
    path: Path,
    others: Sequence[str] = (),
) -> Path:
    """Write the picture of samples under noise to `path`, a row for each named distribution, and return the path.

    The ending of `path` gives the format; `others` are the endings, other than those of pictures, that the command
    accepts, for the message of the `BadInput` for an unknown ending. `label` names the axis; the file's unit of time is
    added to it.
    """
    from plots.noise import Spread, render_noise

    unit = f" ({problem.time_unit})" if problem.time_unit else ""
    spreads = [Spread(name, problem.in_units(one.nominal), one.samples * float(problem.tick)) for name, one in rows]
    return write_whole(path, render_noise(spreads, label + unit, title, picture_kind(path, *others)))
