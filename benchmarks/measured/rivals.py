"""Predictions of other models of training steps for the same rows, as their authors or the table have them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

from benchmarks.measured.figures import Compared


class Rival(NamedTuple):
    """Another model's mean error of steps, and of peaks where it has any, with ours on the same `rows`; shares."""

    name: str
    rows: int
    error: float
    own: float
    peak_error: float | None = None
    own_peak: float | None = None


_SIMUMAX = re.compile(r"SimuMax predicted ([\d.]+) ms, ([\d.]+) GiB")
# Seconds that `calculon llm-validation` (github.com/calculon-ai/calculon) gives for table 5 of arXiv 2205.05198.
_CALCULON = {
    ("gpt-22b", "full"): 1.40, ("gpt-22b", "selective"): 1.14,
    ("gpt-175b", "full"): 18.03, ("gpt-175b", "selective"): 13.64,
    ("gpt-530b", "full"): 49.89, ("gpt-530b", "selective"): 34.47,
    ("gpt-1t", "full"): 90.08, ("gpt-1t", "selective"): 66.04,
}  # fmt: skip


def rivals(of: Sequence[Compared]) -> list[Rival]:
    """SimuMax on its rows, of which the table has its predictions; Calculon on those of arXiv 2205.05198."""
    timed = [one for one in of if one.row.seconds]
    matches = [(one, match) for one in timed if (match := _SIMUMAX.search(one.row.runtime))]
    named = [
        (one, _CALCULON[one.row.model, one.row.recompute])
        for one in timed
        if one.row.source.startswith("arXiv 2205.05198") and (one.row.model, one.row.recompute) in _CALCULON
    ]
    found = [_rival("SimuMax", [(one, float(match[1]) / 1000) for one, match in matches])] if matches else []
    if peaks := [(one, float(match[2])) for one, match in matches if one.row.allocated]:
        theirs = mean(abs(peak / (one.row.allocated or 1) - 1) for one, peak in peaks)
        ours = mean(abs(one.found.peak / (one.row.allocated or 1) - 1) for one, _ in peaks)
        found[0] = found[0]._replace(peak_error=theirs, own_peak=ours)
    return found + ([_rival("Calculon", named)] if named else [])


def _rival(name: str, steps: Sequence[tuple[Compared, float]]) -> Rival:
    theirs = mean(abs(seconds / (one.row.seconds or 1) - 1) for one, seconds in steps)
    return Rival(name, len(steps), theirs, mean(one.error for one, _ in steps))
