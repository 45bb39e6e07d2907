"""BPipe: the activations that move, the paper's limit on every device at any durations, and no time lost."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from heuristics.bpipe import most_activations
from heuristics.catalogue import HEURISTICS
from pipesched.errors import DoesNotApply
from pipesched.files.problem_file import problem_from
from pipesched.problem.passes import OFFLOAD
from pipesched.problem.problem import Problem
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.published import candidate
from tests.support.daily import daily
from tests.support.makers import measured

BPIPE = HEURISTICS["bpipe"]


def problem(p: int, m: int, times: dict[str, Any] | None = None, **offload: object) -> Problem:
    """As much memory as the paper says; the first half of the devices may move activations to the other half."""
    to = [p - 1 - i if i < p // 2 else "host" for i in range(p)]
    memory = {
        "capacity": most_activations(p),
        "offload": {"out": 1, "in": 1, "on": "nvlink", "to": to} | offload,
        "decide": {"offload": ["free"] * (p // 2) + ["never"] * (p - p // 2)},
    }
    times = times or {"forward": 10, "backward": 20}
    return problem_from({"devices": p, "microbatches": m, "times": times, "memory": memory})


def test_the_copies_run_during_the_pass_before() -> None:
    one = problem(4, 6)
    order = BPIPE.order(one)
    assert " ".join(map(str, order.passes_on(0))) == (
        "F0.0 F0.1 O0.1 F0.2 F0.3 O0.3 BW0.0 L0.1 F0.4 BW0.1 F0.5 BW0.2 L0.3 BW0.3 BW0.4 BW0.5"
    )
    assert {p.stage for p in order.passes() if p.kind is OFFLOAD} == {0}


@pytest.mark.parametrize("p", daily(range(4, 13), 2))
def test_no_device_has_more_than_the_paper_says(p: int) -> None:
    """1F1B has p on the first device; the capacity is that of the paper, for any durations (validator)."""
    most = -(-(p + 2) // 2)
    for m, (out, back) in product((most + 1, p, 2 * p + 1), ((1, 1), (0, 0), (20, 30))):
        one = problem(p, m, out=out, **{"in": back})
        found = simulate(one, BPIPE.order(one))
        assert validate(found) == []
        peaks = measured(one, found.schedule).peak_quanta
        assert peaks[0] == most == max(peaks)


def test_unequal_times_and_separate_streams_keep_the_limit() -> None:
    random = Random(1)
    for _ in range(25):
        p = random.randint(4, 8)
        times = {name: [random.randint(1, 9) for _ in range(p)] for name in ("forward", "backward", "transfer")}
        on = random.choice(("nvlink", "compute", ["there", "back"]))
        one = problem(
            p, random.randint(p, 2 * p), times, out=random.randint(0, 9), on=on, **{"in": random.randint(0, 9)}
        )
        assert validate(simulate(one, BPIPE.order(one))) == []


def test_it_takes_the_time_of_1f1b() -> None:
    stated = 0
    for p, m, (out, back) in product((4, 5, 8), (6, 9, 16), ((0, 0), (3, 3), (5, 5), (10, 10))):
        one = problem(p, m, out=out, **{"in": back})
        form = BPIPE.closed_form(one)
        if form is not None:
            stated += 1
            assert form.makespan == measured(one, BPIPE.order(one)).makespan_ticks
            assert form.makespan == HEURISTICS["1f1b"].closed_form(one).makespan  # type: ignore[union-attr]
    assert stated == 27


def test_no_time_is_stated_where_copies_of_several_devices_wait_for_each_other() -> None:
    """Twelve devices on one link: 1F1B takes (24 + 11) * 20 = 700, and 30 more with the copies' waits."""
    link = {"stream": "link", "devices": [*range(12)]}
    times = {"forward": 10, "backward": 10}
    shared, alone = (problem(12, 24, times, out=5, on=on, **{"in": 5}) for on in (link, "link"))
    found = {one: measured(one, BPIPE.order(one)).makespan_ticks * one.tick for one in (shared, alone)}
    form = BPIPE.closed_form(alone)
    assert form is not None and form.makespan is not None
    assert form.makespan * alone.tick == found[alone] == 700 and found[shared] == 730
    assert BPIPE.closed_form(shared) is None


def test_it_fits_where_1f1b_does_not() -> None:
    one = problem(4, 8)
    found = {name: candidate(one, HEURISTICS[name]) for name in ("1f1b", "bpipe")}
    assert {name: each.fits for name, each in found.items()} == {"1f1b": False, "bpipe": True}


@pytest.mark.parametrize(
    ("offload", "why"),
    [
        ({"to": [2, 3, "host", "host"]}, r"activations of device 0 that may move to device 3.*found: to 2"),
        ({"to": ["host", 3, 1, "host"]}, r"give memory\.offload\.to \(found: the host\)"),
    ],
)
def test_it_needs_the_pairs(offload: dict[str, object], why: str) -> None:
    with pytest.raises(DoesNotApply, match=why):
        BPIPE.order(problem(4, 8, **offload))


def test_it_needs_activations_that_may_be_kept() -> None:
    memory = {"offload": {"out": 1, "in": 1, "to": 3}, "decide": {"offload": "always"}}
    one = problem_from({"devices": 4, "microbatches": 8, "times": {"forward": 1, "backward": 2}, "memory": memory})
    with pytest.raises(DoesNotApply, match="found: always moved"):
        BPIPE.order(one)


@pytest.mark.parametrize(("p", "m"), [(3, 8), (2, 4), (8, 5)])
def test_where_1f1b_has_no_more_it_is_1f1b(p: int, m: int) -> None:
    with pytest.raises(DoesNotApply, match=f"needs more than {most_activations(p)} activations on some device in 1f1b"):
        BPIPE.order(problem(p, m))
