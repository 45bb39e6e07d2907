"""How long streams work and are exposed, against a count tick by tick."""

from __future__ import annotations

from random import Random

import pytest

from pipesched.schedule.stream_use import stream_use
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from tests.support.makers import (
    jobs,
    problem,
    random_order,
    random_problem,
    schedule,
    with_parts,
    with_random_task_orders,
)


def by_ticks(timeline: Timeline) -> list[tuple[int, str, int, int]]:
    """Device, stream, ticks in which it works, and those of them in which the first stream does not."""
    found = []
    for device, order in enumerate(timeline.schedule.orders):
        working: dict[str, set[int]] = {stream: set() for stream in timeline.problem.streams}
        for job in jobs(timeline.problem, order):
            start = timeline.starts[job.tasks[0]]
            working[job.stream] |= set(range(start, start + job.ticks))
        first = working[timeline.problem.streams[0]]
        found += [(device, stream, len(ticks), len(ticks - first)) for stream, ticks in working.items()]
    return found


@pytest.mark.parametrize("seed", range(60))
def test_every_tick_counts_once(seed: int) -> None:
    rng = Random(seed)
    one = with_parts(random_problem(rng, parts=False), rng)
    orders = random_order(one, rng, pairs=0.4)
    timeline = simulate(one, with_random_task_orders(one, orders, rng) if seed % 2 else orders)
    assert [(*of, busy, exposed) for of, busy, exposed in stream_use(timeline)] == by_ticks(timeline)


def test_one_stream_is_never_exposed() -> None:
    one = problem(2, 1, times={"forward": 2, "backward": 3, "transfer": 1})
    used = stream_use(simulate(one, schedule("F0.0 BW0.0", "F1.0 BW1.0")))
    assert [(use.of, use.busy, use.exposed) for use in used] == [((0, "compute"), 5, 0), ((1, "compute"), 5, 0)]
