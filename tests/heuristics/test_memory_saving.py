"""Published rules for fewer activations over 1F1B: what is saved, when it comes back, and what it does to the peaks."""

from __future__ import annotations

import pytest

from heuristics.building.memory_saving import full_offload, half_offload, uniform_recompute
from heuristics.one_f_one_b import one_f_one_b
from pipesched.errors import DoesNotApply
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate


def problem(**memory: object) -> Problem:
    times = {"forward": 10, "backward": 20}
    return problem_from({"devices": 3, "microbatches": 4, "times": times, "memory": memory})


def test_uniform_recomputation_runs_every_forward_again_right_before_its_backward() -> None:
    one = problem(recompute=[{"name": "full", "time": 10, "keeps": 0.25}])
    timeline = simulate(one, uniform_recompute(one, one_f_one_b(one)))
    assert validate(timeline) == []
    assert " ".join(map(str, timeline.schedule.passes_on(0))) == (
        "F0.0 F0.1 F0.2 R0.0 BW0.0 F0.3 R0.1 BW0.1 R0.2 BW0.2 R0.3 BW0.3"
    )
    # In quarters: one whole activation, and what is kept of the others; the last device has one at a time.
    assert measure(timeline).peak_memory == (6, 5, 4)


def test_offload_copies_out_behind_the_forward_and_back_a_pass_ahead() -> None:
    one = problem(offload={"out": 5, "in": 5})
    full, half = (rule(one, one_f_one_b(one)) for rule in (full_offload, half_offload))
    assert " ".join(map(str, full.passes_on(0))) == (
        "F0.0 O0.0 F0.1 O0.1 L0.0 F0.2 O0.2 BW0.0 L0.1 F0.3 O0.3 L0.2 BW0.1 L0.3 BW0.2 BW0.3"
    )
    assert [p.microbatch for p in half.passes_on(0) if p.kind == "O"] == [0, 2]
    for schedule in (full, half):
        assert validate(simulate(one, schedule)) == []


def test_a_rule_needs_its_option() -> None:
    for rule in (full_offload, uniform_recompute):
        with pytest.raises(DoesNotApply, match=r"memory\."):
            rule(problem(), one_f_one_b(problem()))
