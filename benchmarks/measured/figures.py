"""Errors of predictions against measurements: ratios, order of layouts, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from math import ceil
from statistics import mean, median
from typing import NamedTuple

from benchmarks.measured.prediction import Prediction
from benchmarks.measured.table import Row

NEAR = 0.2  # a prediction within this share of the measured step counts as near
_ORDERED = 3  # rows that a group needs for its order to mean something


class Compared(NamedTuple):
    """A row with its prediction."""

    row: Row
    found: Prediction

    @property
    def ratio(self) -> float:
        """Predicted over measured seconds."""
        assert self.row.seconds
        return self.found.seconds / self.row.seconds

    @property
    def error(self) -> float:
        return abs(self.ratio - 1)


class Errors(NamedTuple):
    """Of some rows: median ratio, mean and 90th percentile of the error, share of rows that are near."""

    rows: int
    median: float
    mean: float
    p90: float
    near: float


class Order(NamedTuple):
    """Of the layouts of one model on the same GPUs: Spearman's rank correlation of predicted with measured steps.

    `loss` is how much longer the layout with the shortest predicted step takes than the one measured to be best.
    `of_schedules`: the rows differ in their schedules alone.
    """

    group: str
    rows: int
    correlation: float
    loss: float
    of_schedules: bool


class Memory(NamedTuple):
    """Shares of the rows that ran and do not fit by the prediction, and of those out of memory that fit by it.

    `ratio` is the median of predicted over measured peaks of what tensors hold, `far` the share over 10 % off.
    """

    ran: int
    refused: float
    out_of_memory: int
    accepted: float
    peaks: int
    ratio: float
    far: float


def errors(of: Iterable[Compared]) -> Errors:
    """Of rows with a measured step, of which there is one at least."""
    ratios = [one.ratio for one in of]
    off = sorted(abs(ratio - 1) for ratio in ratios)
    near = sum(error <= NEAR for error in off) / len(off)
    return Errors(len(off), median(ratios), mean(off), off[ceil(0.9 * len(off)) - 1], near)


def by(name: Callable[[Row], str], of: Sequence[Compared]) -> dict[str, Errors]:
    """The errors of each kind of row, by name."""
    rows = sorted(of, key=lambda one: name(one.row))
    return {kind: errors(ones) for kind, ones in groupby(rows, lambda one: name(one.row))}


def orders(of: Sequence[Compared]) -> list[Order]:
    """Of every group with enough rows; steps are compared by the time of a sequence, as batches may differ."""

    def group(one: Compared) -> str:
        row = one.row
        return f"{row.model}/{row.group}/{row.gpus}/{row.gpu}/{row.sequence}"

    found = []
    for _, each in groupby(sorted((one for one in of if one.row.group), key=group), group):
        ones = list(each)
        measured = [a_sequence(one.row, one.row.seconds or 0) for one in ones]
        predicted = [a_sequence(one.row, one.found.seconds) for one in ones]
        if len(ones) >= _ORDERED:
            loss = measured[predicted.index(min(predicted))] / min(measured) - 1
            alone = len({(one.row.sizes, one.row.pipeline, one.row.microbatch_size) for one in ones}) == 1
            found.append(
                Order(ones[0].row.group, len(ones), _correlation(_ranks(measured), _ranks(predicted)), loss, alone)
            )
    return found


def a_sequence(row: Row, seconds: float) -> float:
    """Seconds of a sequence, of those of a step."""
    return seconds / (row.microbatches * row.microbatch_size * dict(row.sizes)["data"])


def memory(of: Sequence[Compared]) -> Memory:
    """Of all rows."""
    ran, lacked = ([one for one in of if (one.row.seconds is None) is lack] for lack in (False, True))
    peaks = [one.found.peak / one.row.allocated for one in ran if one.row.allocated]
    return Memory(
        len(ran), _share(not one.found.fits for one in ran), len(lacked), _share(one.found.fits for one in lacked),
        len(peaks), median(peaks or [1.0]), _share(abs(ratio - 1) > 0.1 for ratio in peaks),
    )  # fmt: skip


def _share(of: Iterable[bool]) -> float:
    flags = list(of)
    return sum(flags) / len(flags) if flags else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    """From 0 on, equal values with the mean of theirs."""
    return [sum(other < value for other in values) + (values.count(value) - 1) / 2 for value in values]


def _correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Pearson's; 0 where one of the two is constant."""
    at, to = mean(a), mean(b)
    both = sum((x - at) * (y - to) for x, y in zip(a, b, strict=True))
    spread = sum((x - at) ** 2 for x in a) * sum((y - to) ** 2 for y in b)
    return both / spread**0.5 if spread else 0.0
