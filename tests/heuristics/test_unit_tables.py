"""Makespan and span of published schedules at F = B = W = 1, free transfers: figures, and where each is from.

Two chunks a device where a schedule has several; times are then those of a chunk. DualPipe(V) needs m >= 2p.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from tests.support.makers import problem

# schedule: (source, placement, its makespan and span for p devices and m >= 2p micro-batches)
FORMULAS: dict[str, tuple[str, str, Callable[[int, int], tuple[int, int]]]] = {
    "1f1b": ("arXiv 2401.10241, Table 1", "linear", lambda p, m: (3 * (m + p - 1),) * 2),
    "interleaved-1f1b": ("arXiv 2104.04473, section 2.2", "interleaved", lambda p, m: (3 * (2 * m + p - 1),) * 2),
    "zb-h1": ("arXiv 2401.10241, Table 1", "linear", lambda p, m: (3 * m + p - 1,) * 2),
    "zb-h2": ("arXiv 2401.10241, Table 1; makespans as the order gives them", "linear", lambda p, m: (3 * m + p - 1, 3 * m)),
    "interleaved-zb": ("torch 2.13's ScheduleInterleavedZeroBubble", "interleaved", lambda p, m: (6 * m + p - 1,) * 2),
    "zbv": ("torch 2.13's ScheduleZBVZeroBubble", "v-shape", lambda p, m: (6 * m + p - 1, 6 * m)),
    "dualpipe": ("the eight steps of deepseek-ai/DualPipe", "bidirectional", lambda p, m: (3 * m + p // 2 - 1,) * 2),
    "dualpipe-v": ("torch 2.13's ScheduleDualPipeV", "v-shape", lambda p, m: (6 * m + p - 1,) * 2),
}  # fmt: skip
# What the generator of arXiv 2405.15362 gives for p devices at m = p, of which each further micro-batch takes 6 more.
AT_P = {"v-half": {4: 29, 8: 65, 16: 137}, "v-min": {4: 35, 8: 75, 16: 155}}


def figures(name: str, p: int, m: int, placement: str) -> tuple[int, int]:
    one = problem(p, m, placement=placement, **({"chunks": 2} if placement == "interleaved" else {}))
    found = measure(simulate(one, HEURISTICS[name].order(one)))
    return found.makespan_ticks, found.span_ticks


@pytest.mark.parametrize("name", FORMULAS)
def test_the_figures_are_what_their_sources_formulas_give(name: str) -> None:
    _, placement, formula = FORMULAS[name]
    for p, rounds in product((4, 8, 16), (2, 3, 4)):
        assert figures(name, p, rounds * p, placement) == formula(p, rounds * p), (p, rounds * p)


@pytest.mark.parametrize("name", AT_P)
def test_the_figures_are_those_of_the_authors_generator(name: str) -> None:
    for p, rounds in product(AT_P[name], (1, 2, 3, 4)):
        assert figures(name, p, rounds * p, "v-shape") == (AT_P[name][p] + 6 * p * (rounds - 1),) * 2
