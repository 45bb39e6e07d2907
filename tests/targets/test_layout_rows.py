"""The layout that is recommended: the plainest of those as good as the best."""

from __future__ import annotations

from typing import Any

from pipesched.results.layouts import LayoutRow, Layouts
from targets.layout_rows import recommended


def row(total: float, **sizes: Any) -> LayoutRow:
    names = {"tensor": 1, "context": 1, "pipeline": 1, "data": 8, "expert": 1, "microbatch_size": 1} | sizes
    more = {key: names.pop(key) for key in ("chunks", "recomputed_layers") if key in names}
    step = {"total": total, "pipeline": total, "exchange": 0.0, "optimizer": 0.0}
    return LayoutRow(**names, microbatches=8, lower_bound=1, step_lower_bound=1, step=step, fits=True, **more)


def test_the_plainest_of_those_as_good_as_the_best() -> None:
    best = row(100, tensor=2, context=2, pipeline=4, chunks=2)
    fewer_kinds, recomputing = (
        row(101, tensor=2, pipeline=4, chunks=4),
        row(101, tensor=2, pipeline=4, recomputed_layers=8),
    )
    one_chunk, small = row(101.5, tensor=4, pipeline=4, chunks=1), row(101.9, tensor=2, pipeline=4, chunks=1)
    worse = row(103)
    rows = [best, recomputing, fewer_kinds, one_chunk, small, worse]
    assert recommended(rows[:1], 0.02) is best
    assert recommended(rows[:2], 0.02) is recomputing
    assert recommended(rows[:3], 0.02) is fewer_kinds
    assert recommended(rows[:4], 0.02) is one_chunk
    assert recommended(rows, 0.02) is small
    assert recommended(rows, 0.005) is best
    assert recommended(rows, 0.05) is worse
    ring = [row(100, tensor=2, context=4, pipeline=4), row(101, tensor=2, context=2, pipeline=4)]
    assert recommended(ring, 0.02) is ring[1]


def test_none_without_a_plan_and_how_much_worse_each_size_is() -> None:
    bare = LayoutRow(1, 1, 1, 8, 1, 1, 8, 1.0, 1.0)
    assert recommended([bare], 0.02) is None
    rows = [row(100, microbatch_size=2), row(110), row(130), bare]
    found = Layouts("m", 8, "h100-80gb", 8, 4096, rows, {}, 1.0, rows[0])
    assert found.by_microbatch_size == {1: 110 / 100 - 1, 2: 0}
    assert [record["fits"] for record in found.records()] == [True, True, True, False]
    assert "microbatch size 2: step 100 ms" in repr(found) or "data 8, microbatch size 2" in repr(found)
