"""Errors of the ratio of two layouts' steps, of one model on the same GPUs, and what a choice by them loses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, groupby
from math import ceil
from statistics import mean, median
from typing import NamedTuple

from benchmarks.measured.figures import Compared, a_sequence
from benchmarks.measured.table import Row, kind, source_of
from pipesched.files.model_configs.layouts import Layout
from pipesched.results.layouts import plainness

_ORDERED = 3  # layouts that a choice is among, at least


class Pair(NamedTuple):
    """Two layouts of a group: the sizes in which they differ, and the error of the predicted ratio of their steps."""

    group: str
    kind: str
    differ: tuple[str, ...]
    error: float


class Choice(NamedTuple):
    """Of a rule: mean and largest loss against the best measured of each group, as shares."""

    groups: int
    mean: float
    largest: float


def pairs(of: Sequence[Compared]) -> list[Pair]:
    """All pairs of layouts; those that differ in schedule or recomputation alone are none."""
    found = []
    for name, ones in groups(of):
        for a, b in combinations(ones, 2):
            differ = _differ(a.row, b.row)
            if differ:
                ratio = a.ratio / b.ratio
                found.append(Pair(name, kind(a.row), differ, max(ratio, 1 / ratio) - 1))
    return found


def groups(of: Sequence[Compared]) -> Iterator[tuple[str, list[Compared]]]:
    """Rows of one source with the same model, GPUs, sequence and precision."""

    def key(one: Compared) -> str:
        row = one.row
        return f"{row.model}/{row.gpu}/{row.gpus}/{row.sequence}/{row.precision}/{source_of(row)}"

    timed = sorted((one for one in of if one.row.seconds), key=key)
    for name, each in groupby(timed, key):
        yield name, list(each)


def choices(of: Sequence[Compared], within: float | None) -> Choice:
    """The plainest of those predicted to be as good as the best, within such a share of its step.

    None: within the mean error of the ratios of all other groups.
    """
    known, losses = pairs(of), []
    for name, ones in groups(of):
        if len({layout_of(one.row) for one in ones}) < _ORDERED:
            continue
        share = mean(pair.error for pair in known if pair.group != name) if within is None else within
        least = min(a_sequence(one.row, one.found.seconds) for one in ones)
        good = [one for one in ones if a_sequence(one.row, one.found.seconds) <= least * (1 + share)]
        own = min(good, key=lambda one: (_plainness(one.row), a_sequence(one.row, one.found.seconds)))
        measured = [a_sequence(one.row, one.row.seconds or 0) for one in ones]
        losses.append(a_sequence(own.row, own.row.seconds or 0) / min(measured) - 1)
    return Choice(len(losses), mean(losses), max(losses))


class Repeated(NamedTuple):
    """Of layouts published several times: how far the slowest run is from the fastest, and the error left to any model.

    `least_error` is the mean error of the prediction that is best for each layout, one number for all of its runs.
    """

    layouts: int
    rows: int
    spread: float
    least_error: float


def repeated(of: Sequence[Compared], name: Callable[[Row], str]) -> dict[str, Repeated]:
    """By the name of rows: layouts that one source published more than once, with the same options."""

    def key(one: Compared) -> tuple[object, ...]:
        row = one.row
        options = row.recompute, row.schedule, row.flash, row.sequence_parallel, row.precision, row.chunks
        return source_of(row), row.gpu, row.gpus, row.model, row.sequence, layout_of(row), *options

    same: dict[object, list[Row]] = defaultdict(list)
    for one in of:
        same[key(one)].append(one.row)
    found: dict[str, list[list[float]]] = defaultdict(list)
    for rows in same.values():
        if len(rows) > 1:
            found[name(rows[0])].append([a_sequence(row, row.seconds or 0) for row in rows])
    return {
        kind: Repeated(
            len(runs), sum(map(len, runs)), mean(max(own) / min(own) - 1 for own in runs),
            sum(min(sum(abs(guess / time - 1) for time in own) for guess in own) for own in runs)
            / sum(map(len, runs)),
        )
        for kind, runs in sorted(found.items())
    }  # fmt: skip


def by_difference(of: Sequence[Pair]) -> dict[str, list[float]]:
    """Errors by the sizes that differ, those of most pairs first."""
    found: dict[str, list[float]] = defaultdict(list)
    for pair in of:
        found[", ".join(pair.differ)].append(pair.error)
    return dict(sorted(found.items(), key=lambda each: -len(each[1])))


def by_kind(of: Sequence[Pair]) -> dict[str, list[float]]:
    """Errors by the GPU and kind of model."""
    found: dict[str, list[float]] = defaultdict(list)
    for pair in of:
        found[pair.kind].append(pair.error)
    return dict(found)


def shown(errors: Sequence[float]) -> list[str]:
    """Number, mean, median and 90th percentile, as cells of a table."""
    far = sorted(errors)[ceil(0.9 * len(errors)) - 1]
    return [str(len(errors)), *(f"{100 * share:.1f}" for share in (mean(errors), median(errors), far))]


def layout_of(row: Row) -> Layout:
    """The layout of a row."""
    sizes = dict(row.sizes)
    return Layout(sizes["tensor"], sizes["context"], row.pipeline, sizes["data"], sizes["expert"], row.microbatch_size)


def _differ(a: Row, b: Row) -> tuple[str, ...]:
    names = {"TP": "tensor", "CP": "context", "PP": "pipeline", "EP": "expert", "micro-batch": "microbatch_size"}
    one, other = layout_of(a), layout_of(b)
    return tuple(short for short, name in names.items() if getattr(one, name) != getattr(other, name))


def _plainness(row: Row) -> tuple[object, ...]:
    return plainness(layout_of(row)._asdict(), row.recompute != "none", row.chunks)
