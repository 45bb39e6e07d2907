"""Published schedules of micro-batches of several pieces: what the paper's instance takes, memory, and closed forms."""

from __future__ import annotations

from random import Random

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import DoesNotApply
from pipesched.simulation.simulator import simulate
from plots.html.document import document
from tests.support.makers import measured, problem

NAMES = ("seq1f1b", "terapipe")
GROWING = {"forward": {"first": 4, "each_earlier": 1}, "backward": {"first": 8, "each_earlier": 2}}


def test_seq1f1b_is_the_optimum_with_its_memory() -> None:
    """213 is proved for two sequences of four growing pieces with memory for seven."""
    one = problem(4, 2, sequence_chunks=4, times=GROWING)
    found = measured(one, HEURISTICS["seq1f1b"].order(one))
    assert found.makespan_ticks == 213 and max(found.peak_quanta) == 7


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_pieces_alike_take_the_time_and_memory_of_the_formulas(name: str, seed: int) -> None:
    random = Random(seed)
    p, m, c = random.randint(1, 5), random.randint(1, 6), random.randint(2, 4)
    f, b = random.randint(1, 9), random.randint(1, 9)
    one = problem(p, m, sequence_chunks=c, times={"forward": f, "backward": b}, memory={"activation": 1})
    found = measured(one, HEURISTICS[name].order(one))
    assert found.makespan_ticks * one.tick == (m * c + p - 1) * (f + b)
    most = [min(m * c, p - i + c - 1) if name == "seq1f1b" else m * c for i in range(p)]
    assert list(found.peak_quanta) == most


@pytest.mark.parametrize("chunks", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_slimpipe_takes_the_time_and_memory_of_its_formulas(chunks: int, seed: int) -> None:
    random = Random(seed)
    p, m = random.randint(2, 4), random.randint(1, 4)
    c, f, b = p * random.randint(1, 2), random.randint(1, 9), random.randint(1, 9)
    where = {"placement": "interleaved", "chunks": chunks} if chunks > 1 else {}
    one = problem(p, m, sequence_chunks=c, times={"forward": f, "backward": b}, memory={"activation": 1}, **where)
    found = measured(one, HEURISTICS["slimpipe"].order(one))
    assert found.makespan_ticks * one.tick == (m * c * chunks + p - 1) * (f + b)
    hop = 2 if chunks > 1 else 1
    assert list(found.peak_quanta) == [min(m * c * chunks, c * chunks + hop * (p - 1 - i)) for i in range(p)]


def test_slimpipe_is_seq1f1b_where_a_device_has_one_chunk() -> None:
    one = problem(4, 2, sequence_chunks=4, times=GROWING)
    assert HEURISTICS["slimpipe"].order(one).orders == HEURISTICS["seq1f1b"].order(one).orders


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        *[("slimpipe", {"sequence_chunks": 3}), ("slimpipe", {"sequence_chunks": 2, "placement": "v-shape"})],
        *[
            (name, {"placement": where, "sequence_chunks": 2})
            for name in NAMES
            for where in ("v-shape", "bidirectional")
        ],
    ],
)
def test_other_problems_are_refused(name: str, keys: dict[str, object]) -> None:
    with pytest.raises(DoesNotApply, match="needs"):
        HEURISTICS[name].order(problem(2, 4, times={"forward": 1, "backward": 2}, **keys))


def test_boxes_have_the_micro_batch_of_the_file_and_a_shade_a_piece() -> None:
    one = problem(2, 3, sequence_chunks=2, times={"forward": 1, "backward": 2})
    timeline = simulate(one, HEURISTICS["seq1f1b"].order(one))
    chart = document(timeline)
    assert chart["shades"] == ["Piece 0", "Piece 1"]
    assert {number for row in chart["boxes"] for number in row[2::4]} == {0, 1, 2}
