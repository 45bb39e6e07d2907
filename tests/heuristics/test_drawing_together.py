"""Moves to earlier gaps that are told from levels in part, against peaks counted anew for every gap."""

from __future__ import annotations

from random import Random

import pytest

from heuristics.building.drawing_together import Row, draw_together
from pipesched.problem.passes import B, F, Pass, W
from pipesched.problem.placement import v_shape
from pipesched.problem.problem import Problem
from pipesched.problem.stage_columns import stages_of


def _with_weights(row: Row) -> Row:
    filled, ready, done = Row(), Row(), 0
    for p in row:
        if p is not None and p.kind is B:
            ready.append(p._replace(kind=W))
        if p is None and done < len(ready):
            filled.append(ready[done])
            done += 1
        else:
            filled.append(p)
    return filled + ready[done:]


def _peak(row: Row) -> int:
    level = peak = 0
    for p in row:
        level += 0 if p is None or p.kind is B else 1 if p.kind is F else -1
        peak = max(peak, level)
    return peak


def _plainly(problem: Problem, rows: list[Row], since: int, give_way: bool) -> None:
    complete = _with_weights if give_way else list[Pass | None]
    cap = max(_peak(complete(row)) for row in rows)
    for t, d in sorted((t, d) for d, row in enumerate(rows) for t, p in enumerate(row) if p is not None):
        p, row = rows[d][t], rows[d]
        if p is None or t < since:
            continue
        slot = {q: at for one in rows for at, q in enumerate(one) if q is not None}
        needs = [q for q, _ in problem.network.predecessors(p, ())]
        needs += [p._replace(microbatch=p.microbatch - 1)] if p.microbatch else []
        for gap in range(1 + max((slot[q] for q in needs), default=-1), t):
            if row[gap] is None:
                row[t], row[gap] = None, p
                if _peak(complete(row)) <= cap:
                    break
                row[t], row[gap] = p, None


def _rows(problem: Problem, random: Random, weights: bool) -> list[Row]:
    """Some order that the passes may have, each pass after what it needs, with gaps of any length."""
    kinds = (F, B, W) if weights else (F, B)
    left = [Pass(k, s, j) for s in range(len(problem.stages)) for j in range(problem.microbatches) for k in kinds]
    rows, slot = [Row() for _ in range(problem.devices)], dict[Pass, int]()
    while left:
        needed = {p: [q for q, _ in problem.network.predecessors(p, ())] for p in left}
        for p in left:
            needed[p] += [p._replace(microbatch=p.microbatch - 1)] if p.microbatch else []
        p = random.choice([p for p in left if all(q in slot for q in needed[p])])
        left.remove(p)
        row = rows[problem.device(p)]
        since = max([len(row), *(slot[q] + 1 for q in needed[p])]) + random.choice((0, 0, 0, 1, 2, 5))
        row += [None] * (since - len(row)) + [p]
        slot[p] = since
    return rows


@pytest.mark.parametrize("give_way", [False, True])
def test_moves_are_those_of_peaks_counted_anew(give_way: bool) -> None:
    random, one = Random(0), (1,) * 6
    problem = Problem(v_shape(3), 4, stages_of(one, one, one, one))
    for _ in range(60):
        rows = _rows(problem, random, weights=not give_way)
        plain, since = [row[:] for row in rows], random.randrange(30)
        draw_together(problem, rows, lambda at, since=since: at[0] >= since, give_way)  # type: ignore[misc]
        _plainly(problem, plain, since, give_way)
        assert rows == plain
