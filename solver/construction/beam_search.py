"""Beam searches with many settings on parallel threads: narrow ones of all, then wider ones of the best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from fractions import Fraction
from itertools import product
from math import ceil
from typing import NamedTuple

import numpy as np

from pipesched.problem.mode_gains import saved_by_fusing
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from solver.construction.beam_kernel import Preference
from solver.construction.beam_tables import BeamRun, beam_run, ceilings, line_of, schedule_of_run

# Percent of the micro-batches in flight that Little's law gives, and how many besides.
_IN_FLIGHT = ((115, 1), (100, 2), (None, 0), (130, 1))
_PREFERENCES = (
    Preference(10.0, 3.0, 2, 0),
    Preference(3.0, 1.0, 2, 0),
    Preference(1.0, 0.3, 4, 0),
    Preference(3.0, 0.0, 2, 0),
)
_PATIENCE = (0, 50)
# Where some backwards are split: so many of the last micro-batches, as shares of the devices.
_LAST = (Fraction(1, 2), Fraction(1, 4), Fraction(3, 4))
# Nodes of a layer that stay, and with which share of the settings, the best so far, the next width is tried.
_WIDTHS, _STAY = (100, 300, 1000, 3000), 3
# Nodes that a run may keep in all: what made each takes 8 bytes.
_MOST_NODES = 12_000_000


class Ways(NamedTuple):
    """What backwards may be, as `line_of` takes it."""

    split: bool
    fused: bool
    last: int | None = None


class Setting(NamedTuple):
    """What a run is given besides its width."""

    ways: Ways
    in_flight: tuple[int | None, int]
    prefers: Preference


class BeamSearch:
    """Rounds of runs; `halt` ends those that are under way."""

    def __init__(self, problem: Problem, workers: int) -> None:
        self.problem, self.workers, self.halt = problem, workers, np.zeros(1, np.int64)
        self._lines = {ways: line_of(problem, *ways) for ways in _ways(problem)}

    def run(self, over: Callable[[], bool], offer: Callable[[Schedule], object], rounds: int | None = None) -> None:
        """Offers what is better than all before, until `over` or after so many rounds."""
        layers = 2 * len(self.problem.stages) * self.problem.microbatches
        settings, best = self._settings(), None
        for width in _WIDTHS[:rounds]:
            if width * layers > _MOST_NODES:
                return
            found: list[tuple[int, int]] = []
            for number, run in self._round(settings, width, over):
                found.append((run.value, number))
                if best is None or run.value < best:
                    best = run.value
                    offer(schedule_of_run(self.problem, run))
            if over() or not found:
                return
            settings = [settings[number] for _, number in sorted(found)[: max(2, len(settings) // _STAY)]]

    def _settings(self) -> list[Setting]:
        return [
            Setting(ways, in_flight, prefers._replace(patience=patience))
            for ways, prefers, in_flight in product(self._lines, _PREFERENCES, _IN_FLIGHT)
            for patience in (_PATIENCE if ways.split and len(self._lines) == 1 else _PATIENCE[:1])
        ]

    def _round(
        self, settings: Sequence[Setting], width: int, over: Callable[[], bool]
    ) -> Iterator[tuple[int, BeamRun]]:
        """The number of each setting whose run came to an end, and it, as they end."""
        with ThreadPoolExecutor(self.workers) as pool:
            open_: dict[Future[BeamRun | None], int] = {}
            for number, setting in enumerate(settings):
                open_[pool.submit(self._one, setting, width)] = number
            try:
                while open_:
                    done, _ = wait(open_, 0.1, FIRST_COMPLETED)
                    self.halt[0] = over()
                    for future in sorted(done, key=lambda one: open_[one]):
                        number, run = open_.pop(future), future.result()
                        if run is not None:
                            yield number, run
            finally:
                # Also where the caller is interrupted, or leaves.
                self.halt[0] = bool(open_) or self.halt[0]

    def _one(self, setting: Setting, width: int) -> BeamRun | None:
        if self.halt[0]:
            return None
        line = self._lines[setting.ways]
        return beam_run(line, ceilings(line, *setting.in_flight), setting.prefers, width, self.halt)


def _ways(problem: Problem) -> list[Ways]:
    """Which backwards runs may have: split or full ones. Where full ones gain, first both in known places."""
    if not problem.splittable:
        return [Ways(False, True)]
    if not any(saved_by_fusing(problem, s) > 0 for s in range(problem.placement.stages)):
        return [Ways(True, False)]
    lasts = dict.fromkeys(min(problem.microbatches, ceil(share * problem.devices)) for share in _LAST)
    return [*(Ways(True, True, last) for last in lasts), Ways(True, True), Ways(True, False), Ways(False, True)]
