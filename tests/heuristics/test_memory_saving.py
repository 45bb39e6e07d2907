"""Published rules for fewer activations over 1F1B: what is saved, when it comes back, and what it does to the peaks."""

from __future__ import annotations

from itertools import product

import pytest

from heuristics.building.memory_saving import full_offload, half_offload, uniform_recompute
from heuristics.catalogue import HEURISTICS
from heuristics.one_f_one_b import one_f_one_b
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from solver.published import candidate
from tests.support.daily import daily
from tests.support.makers import measured


def problem(**memory: object) -> Problem:
    times = {"forward": 10, "backward": 20}
    return problem_from({"devices": 3, "microbatches": 4, "times": times, "memory": memory})


def test_uniform_recomputation_runs_every_forward_again_right_before_its_backward() -> None:
    one = problem(recompute=[{"name": "full", "time": 10, "keeps": 0.25}])
    order = uniform_recompute(one, one_f_one_b(one))
    assert " ".join(map(str, order.passes_on(0))) == ("F0.0 F0.1 F0.2 R0.0 BW0.0 F0.3 R0.1 BW0.1 R0.2 BW0.2 R0.3 BW0.3")
    # In quarters: one whole activation, and what is kept of the others; the last device has one at a time.
    assert measured(one, order).peak_quanta == (6, 5, 4)


def test_offload_copies_out_behind_the_forward_and_back_a_pass_ahead() -> None:
    one = problem(offload={"out": 5, "in": 5})
    full, half = (rule(one, one_f_one_b(one)) for rule in (full_offload, half_offload))
    assert " ".join(map(str, full.passes_on(0))) == (
        "F0.0 O0.0 F0.1 O0.1 L0.0 F0.2 O0.2 BW0.0 L0.1 F0.3 O0.3 L0.2 BW0.1 L0.3 BW0.2 BW0.3"
    )
    assert [p.microbatch for p in half.passes_on(0) if p.kind == "O"] == [0, 2]
    for schedule in (full, half):
        measured(one, schedule)


def test_half_offload_takes_the_chunks_that_are_held_longest() -> None:
    times = {"forward": 2, "backward": 4}
    memory = {"offload": {"out": 1, "in": 1}}
    one = problem_from(
        {"devices": 2, "microbatches": 4, "placement": "interleaved", "chunks": 2, "times": times, "memory": memory}
    )
    schedule = HEURISTICS["pipeoffload-half"].order(one)
    measured(one, schedule)
    assert {p.stage for p in schedule.passes() if p.kind == "O"} == {0, 1}
    assert {p.stage for p in HEURISTICS["pipeoffload-full"].order(one).passes() if p.kind == "O"} >= {0, 1, 2}


def test_an_activation_whose_copies_do_not_fit_is_kept() -> None:
    """The first one waits for all devices behind: 60 on the first device, 30 on the next, and for none on the last."""
    for ticks, devices in ((14, {0, 1}), (16, {0}), (31, set())):
        one = problem(offload={"out": ticks, "in": ticks})
        schedule = HEURISTICS["pipeoffload-full"].order(one)
        assert {p.stage for p in schedule.passes() if p.kind == "O" and p.microbatch == 0} == devices
        never = problem(offload={"out": ticks, "in": ticks}, decide={"offload": "always"})
        assert {p.stage for p in HEURISTICS["pipeoffload-full"].order(never).passes() if p.kind == "O"} == {0, 1, 2}


@pytest.mark.parametrize("name", ("pipeoffload-full", "pipeoffload-half", "uniform-recompute"))
def test_closed_forms(name: str) -> None:
    stated = 0
    for p, m, b, r, kept in daily([*product((1, 2, 3, 4), (1, 3, 5, 8), (2, 5), (0, 1, 4), (0, 0.25))], 5):
        times = {"forward": 3, "backward": b}
        copies = {"out": min(r, 3), "in": min(r, 3)}
        memory = {"recompute": [{"name": "full", "time": r, "keeps": kept}], "offload": copies}
        one = problem_from({"devices": p, "microbatches": m, "times": times, "memory": memory})
        found, form = measured(one, HEURISTICS[name].order(one)), HEURISTICS[name].closed_form(one)
        assert form is not None
        assert form.makespan == found.makespan_ticks
        assert form.peak in (None, found.peak_quanta)
        stated += form.peak is not None
    assert stated or name == "pipeoffload-half"


def test_published_rules_wait_for_memory_that_is_short() -> None:
    """Three devices hold three activations under 1F1B; with room for two, copies wait for what is given back."""
    one = problem(capacity=2, offload={"out": 5, "in": 5}, recompute=[{"name": "full", "time": 10, "keeps": 0}])
    found = {name: candidate(one, HEURISTICS[name]) for name in ("1f1b", "pipeoffload-full", "uniform-recompute")}
    assert {name: one.fits for name, one in found.items()} == {
        "1f1b": False,
        "pipeoffload-full": True,
        "uniform-recompute": True,
    }


@pytest.mark.parametrize(
    "parameters", [{}, {"reduce": {"time": 4, "buckets": 2}}, {"gather": {"time": 1, "memory": 1}}]
)
@pytest.mark.parametrize("name", ["pipeoffload-full", "pipeoffload-half"])
def test_devices_take_turns_on_a_stream_that_they_share(name: str, parameters: dict[str, object]) -> None:
    """One device's copies behind all of another's would wait for each other in a cycle."""
    document = {
        "devices": 3, "microbatches": 3, "times": {"forward": 1, "backward": [3, 1, 4]},
        "memory": {"capacity": 3, "offload": {"out": 1, "in": 1, "on": {"stream": "pcie", "devices": [0, 1, 2]}}},
    } | ({"parameters": parameters, "objective": "iteration"} if parameters else {})  # fmt: skip
    one = problem_from(document)
    found = candidate(one, HEURISTICS[name])
    assert found.timeline is not None and not found.defect, found.reason
    assert any(p.kind == "O" for p in found.timeline.schedule.passes())
