"""Makespan and span of published schedules at F = B = W = 1, free transfers: figures, and where each is from.

Two chunks a device where a schedule has several; times are then those of a chunk. DualPipe(V) needs m >= 2p.
"""

from __future__ import annotations

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from tests.support.makers import problem

# schedule: (source, placement, {(p, m): (makespan, span)})
TABLE: dict[str, tuple[str, str, dict[tuple[int, int], tuple[int, int]]]] = {
    '1f1b': (
        '3(m+p-1): arXiv 2401.10241, Table 1',
        'linear',
        {
            (4, 4): (21, 21), (4, 8): (33, 33), (4, 12): (45, 45), (4, 16): (57, 57),
            (8, 8): (45, 45), (8, 16): (69, 69), (8, 24): (93, 93), (8, 32): (117, 117),
            (16, 16): (93, 93), (16, 32): (141, 141), (16, 48): (189, 189), (16, 64): (237, 237),
        },
    ),
    'interleaved-1f1b': (
        '3(2m+p-1) in chunk times, v=2: arXiv 2104.04473, section 2.2',
        'interleaved',
        {
            (4, 4): (33, 33), (4, 8): (57, 57), (4, 12): (81, 81), (4, 16): (105, 105),
            (8, 8): (69, 69), (8, 16): (117, 117), (8, 24): (165, 165), (8, 32): (213, 213),
            (16, 16): (141, 141), (16, 32): (237, 237), (16, 48): (333, 333), (16, 64): (429, 429),
        },
    ),
    'zb-h1': (
        '3m + (p-1): arXiv 2401.10241, Table 1',
        'linear',
        {
            (4, 4): (15, 15), (4, 8): (27, 27), (4, 12): (39, 39), (4, 16): (51, 51),
            (8, 8): (31, 31), (8, 16): (55, 55), (8, 24): (79, 79), (8, 32): (103, 103),
            (16, 16): (63, 63), (16, 32): (111, 111), (16, 48): (159, 159), (16, 64): (207, 207),
        },
    ),
    'zb-h2': (
        'span 3m from m = 2p on: arXiv 2401.10241, Table 1; makespans, and m = p, as the order gives them',
        'linear',
        {
            (4, 4): (16, 15), (4, 8): (27, 24), (4, 12): (39, 36), (4, 16): (51, 48),
            (8, 8): (34, 31), (8, 16): (55, 48), (8, 24): (79, 72), (8, 32): (103, 96),
            (16, 16): (70, 63), (16, 32): (111, 96), (16, 48): (159, 144), (16, 64): (207, 192),
        },
    ),
    'interleaved-zb': (
        "6m + (p-1): torch 2.13's ScheduleInterleavedZeroBubble, read in test_torch_orders.py",
        'interleaved',
        {
            (4, 4): (27, 27), (4, 8): (51, 51), (4, 12): (75, 75), (4, 16): (99, 99),
            (8, 8): (55, 55), (8, 16): (103, 103), (8, 24): (151, 151), (8, 32): (199, 199),
            (16, 16): (111, 111), (16, 32): (207, 207), (16, 48): (303, 303), (16, 64): (399, 399),
        },
    ),
    'zbv': (
        "6m + (p-1), span 6m from m = 2p on: torch 2.13's ScheduleZBVZeroBubble; m = p as the order gives them",
        'v-shape',
        {
            (4, 4): (27, 27), (4, 8): (51, 48), (4, 12): (75, 72), (4, 16): (99, 96),
            (8, 8): (55, 55), (8, 16): (103, 96), (8, 24): (151, 144), (8, 32): (199, 192),
            (16, 16): (111, 111), (16, 32): (207, 192), (16, 48): (303, 288), (16, 64): (399, 384),
        },
    ),
    'v-half': (
        "arXiv 2405.15362's generator; p=8 m=24 is its published bubble .1056",
        'v-shape',
        {
            (4, 4): (29, 29), (4, 8): (53, 53), (4, 12): (77, 77), (4, 16): (101, 101),
            (8, 8): (65, 65), (8, 16): (113, 113), (8, 24): (161, 161), (8, 32): (209, 209),
            (16, 16): (137, 137), (16, 32): (233, 233), (16, 48): (329, 329), (16, 64): (425, 425),
        },
    ),
    'v-min': (
        "arXiv 2405.15362's generator; p=8 m=24 is its published bubble .1579",
        'v-shape',
        {
            (4, 4): (35, 35), (4, 8): (59, 59), (4, 12): (83, 83), (4, 16): (107, 107),
            (8, 8): (75, 75), (8, 16): (123, 123), (8, 24): (171, 171), (8, 32): (219, 219),
            (16, 16): (155, 155), (16, 32): (251, 251), (16, 48): (347, 347), (16, 64): (443, 443),
        },
    ),
    'dualpipe': (
        '6m/2 + (p/2-1)(F+B-W): the eight steps of deepseek-ai/DualPipe; p=8 m=24 is the published .0400',
        'bidirectional',
        {
            (4, 8): (25, 25), (4, 12): (37, 37), (4, 16): (49, 49),
            (8, 16): (51, 51), (8, 24): (75, 75), (8, 32): (99, 99),
            (16, 32): (103, 103), (16, 48): (151, 151), (16, 64): (199, 199),
        },
    ),
    'dualpipe-v': (
        "6m + (p-1): torch 2.13's ScheduleDualPipeV; p=8 m=24 is the published .0464",
        'v-shape',
        {
            (4, 8): (51, 51), (4, 12): (75, 75), (4, 16): (99, 99),
            (8, 16): (103, 103), (8, 24): (151, 151), (8, 32): (199, 199),
            (16, 32): (207, 207), (16, 48): (303, 303), (16, 64): (399, 399),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_unit_times(name: str) -> None:
    _, placement, figures = TABLE[name]
    chunks = {"chunks": 2} if placement == "interleaved" else {}
    for (p, m), expected in figures.items():
        one = problem(p, m, placement=placement, **chunks)
        found = measure(simulate(one, HEURISTICS[name].order(one)))
        assert (found.makespan, found.span) == expected, (p, m)


# The same figures from the sources' own formulas, where they are formulas.
FORMULAS = {
    "1f1b": lambda p, m: (3 * (m + p - 1), 3 * (m + p - 1)),
    "interleaved-1f1b": lambda p, m: (3 * (2 * m + p - 1), 3 * (2 * m + p - 1)),
    "zb-h1": lambda p, m: (3 * m + p - 1, 3 * m + p - 1),
    "interleaved-zb": lambda p, m: (6 * m + p - 1, 6 * m + p - 1),
    "dualpipe": lambda p, m: (3 * m + p // 2 - 1, 3 * m + p // 2 - 1),
    "dualpipe-v": lambda p, m: (6 * m + p - 1, 6 * m + p - 1),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_the_figures_are_what_their_sources_formulas_give(name: str) -> None:
    assert all(figure == FORMULAS[name](p, m) for (p, m), figure in TABLE[name][2].items())
