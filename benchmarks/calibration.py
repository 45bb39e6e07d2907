"""Calibration on three published runs of a source, then its other runs: `python -m benchmarks.calibration [--write]`.

Of each model with so many runs of one source on one kind of GPU, in 16-bit products: the first, the middle and the last
row of the table are fitted, the others predicted, by these rates and by those of the table of devices.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks.measured.prediction import predicted
from benchmarks.measured.table import CONFIGS, Row, read_table, source_of
from benchmarks.reporting.page import exit_code, show, table
from pipesched.files.model_configs.hardware_table import DEVICES, Device
from pipesched.files.model_configs.plan_of_config import Wanted
from solver.calibration.observation import Named, Observation
from solver.calibration.rates_fit import RatesFit, fit_rates

PAGE = Path(__file__).parents[1] / "docs" / "results" / "layouts.md"
_ROWS = 5  # of a source: three to fit, two to predict at least
HEAD = ("source", "GPU, model", "other runs", "table's rates, mean error %", "calibrated, mean error %", "products")


class Split(NamedTuple):
    """Runs of one model of one source on one kind of GPU: those that are fitted, and those that are predicted."""

    fitted: list[Row]
    others: list[Row]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, predict, print or write the table."""
    parser = ArgumentParser("python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--model", metavar="NAME", help="only of this model")
    parser.add_argument("--write", action="store_true", help="into docs/results/layouts.md")
    args = parser.parse_args(arguments)
    rows = [_line(one) for one in splits() if args.model in (None, one.fitted[0].model)]
    show(PAGE if args.write else None, "python -m benchmarks.calibration --write", table(HEAD, rows))
    return 0


def splits() -> Iterator[Split]:
    """All that there are, by source, GPU and model."""

    def key(row: Row) -> tuple[str, str, str]:
        return source_of(row), row.gpu, row.model

    known = sorted((row for row in read_table() if row.seconds and row.bf16), key=key)
    for _, each in groupby(known, key):
        rows = list(each)
        if len(rows) >= _ROWS:
            places = {0, len(rows) // 2, len(rows) - 1}
            yield Split([rows[at] for at in sorted(places)], [row for at, row in enumerate(rows) if at not in places])


def calibrated(split: Split) -> RatesFit:
    """The rates that the runs to be fitted give."""
    gpu = split.fitted[0].gpu
    return fit_rates([_observed(row) for row in split.fitted], Wanted(1, 1, gpu, DEVICES[gpu]))


def mean_error(rows: Sequence[Row], device: Device) -> float:
    """Of the predictions of some runs, as a share."""
    return mean(abs(_seconds(row, device) / (row.seconds or 1) - 1) for row in rows)


def _observed(row: Row) -> Observation:
    assert row.seconds
    return Observation((Named(row.id, row.seconds),), lambda wanted: [_seconds(row, wanted.device)])


def _seconds(row: Row, device: Device) -> float:
    return predicted(row, CONFIGS, {**DEVICES, row.gpu: device}).seconds


def _line(split: Split) -> list[str]:
    row, fit = split.fitted[0], calibrated(split)
    before, after = (100 * mean_error(split.others, device) for device in (DEVICES[row.gpu], fit.device))
    moved = f"{DEVICES[row.gpu].products:g} to {fit.device.products:g}"
    return [source_of(row), f"{row.gpu}, {row.model}", str(len(split.others)), f"{before:.1f}", f"{after:.1f}", moved]


if __name__ == "__main__":
    sys.exit(exit_code(main))
