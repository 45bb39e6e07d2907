"""Unequal micro-batches in files, simulator, validator and metrics, by times worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pipesched import problem_from, simulate, validate
from pipesched.errors import BadInput
from pipesched.files.problems.document import problem_document
from pipesched.files.schedule_file import read_schedule, save
from pipesched.problem.passes import parse_pass
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import finer, with_microbatch_scale
from pipesched.schedule.memory_elsewhere import host_steps
from pipesched.schedule.metrics import measure, memory_steps
from pipesched.schedule.schedule import Schedule, schedule_of
from pipesched.schedule.timeline import Timeline

ORDER = ("F0.0 F0.1 BW0.0 BW0.1", "F1.0 BW1.0 F1.1 BW1.1")


def document(**keys: object) -> dict[str, object]:
    """Two devices; the second micro-batch is half the first."""
    times = {"forward": 2, "backward": 4, "transfer": 1}
    return {"devices": 2, "microbatches": 2, "times": times, "microbatch_scale": [1, 0.5]} | keys


def order(*rows: str) -> Schedule:
    return schedule_of([map(parse_pass, row.split()) for row in rows])


def starts(problem: Problem, timeline: Timeline) -> dict[str, Fraction]:
    return {str(task.of): start * problem.tick for task, start in timeline.starts.items()}


def test_times_and_memory_scale_and_static_memory_does_not() -> None:
    problem = problem_from(document(memory={"capacity": 12, "static": 10, "activation": 1}))
    timeline = simulate(problem, order(*ORDER))
    expected = {"F0.0": 0, "F0.1": 2, "F1.0": 3, "BW1.0": 5, "F1.1": 9, "BW1.1": 10, "BW0.0": 10, "BW0.1": 14}
    assert starts(problem, timeline) == expected
    assert validate(timeline) == []
    found = measure(timeline)
    assert found.makespan_ticks * problem.tick == 16
    assert [work * problem.tick for work in found.work_ticks] == [9, 9]
    assert [peak * problem.resolution for peak in found.peak_quanta] == [Fraction("1.5"), 1]
    assert [static * problem.resolution for static in problem.static] == [10, 10]


@pytest.mark.parametrize(
    ("keys", "rows", "rule"),
    [
        ({}, ("F0.1 F0.0 BW0.1 BW0.0", "F1.1 BW1.1 F1.0 BW1.0"), "micro-batch order"),
        ({}, ("F0.0 F0.1 BW0.1 BW0.0", "F1.0 F1.1 BW1.1 BW1.0"), "micro-batch order"),
        ({"memory": {"capacity": 1.4}}, ORDER, "memory"),
        ({"memory": {"capacity": 1.5}}, ORDER, None),
    ],
)
def test_each_rule_broken_is_found(keys: dict[str, object], rows: tuple[str, ...], rule: str | None) -> None:
    found = {violation.rule for violation in validate(simulate(problem_from(document(**keys)), order(*rows)))}
    assert found == ({rule} if rule else set())


def test_ticks_hold_every_product_and_survive_files(tmp_path: object) -> None:
    scale = [1, 0.35, 1.7]
    times = {"forward": 1.3, "backward": [2.1, 0.7], "weight": 0.9, "transfer": 0.25}
    problem = problem_from(document(microbatches=3, microbatch_scale=scale, times=times, microbatch_order="free"))
    for j, factor in enumerate(map(Fraction, ("1", "0.35", "1.7"))):
        assert problem.duration(parse_pass(f"B0.{j}")) * problem.tick == Fraction("2.1") * factor
    assert problem_from(problem_document(problem)) == problem
    assert problem_from(problem_document(finer(problem, 3))) == problem
    timeline = simulate(problem, order(*(" ".join(f"F{s}.{j} BW{s}.{j}" for j in range(3)) for s in range(2))))
    read = read_schedule(save(timeline, f"{tmp_path}/schedule.json")).timeline
    assert (read.problem, read.schedule, read.starts) == (problem, timeline.schedule, dict(timeline.starts))


def test_copies_and_recomputation_scale_in_time_and_memory() -> None:
    """The second micro-batch is half the first: so are its copies, what they move, and what its forward drops."""
    memory = {
        "capacity": 4,
        "activation": 4,
        "offload": {"out": 6, "in": 2, "amount": 3, "host_capacity": 3},
        "recompute": [{"name": "full", "time": 2, "keeps": 1}],
    }
    problem = problem_from(document(devices=1, memory=memory))
    moves, drops = order("F0.0 O0.0 L0.0 BW0.0 F0.1 O0.1 L0.1 BW0.1"), order("F0.0 R0.0 BW0.0 F0.1 R0.1 BW0.1")
    unit = problem.resolution
    timeline = simulate(problem, moves)
    assert validate(timeline) == []
    # F 2, out 6, in 2, BW 4 of the first; then 1, 3, 1 and 2.
    assert measure(timeline).makespan_ticks * problem.tick == 14 + 7
    assert max(level for _, level in dict(host_steps(timeline))[0,]) * unit == 3
    levels = [(tick * problem.tick, level * unit) for tick, level in memory_steps(timeline, 0)[1:]]
    assert levels == [(0, 4), (8, 1), (8, 4), (14, 0), (14, 2), (18, Fraction(1, 2)), (18, 2), (21, 0)]
    timeline = simulate(problem, drops)
    assert validate(timeline) == []
    assert measure(timeline).makespan_ticks * problem.tick == 8 + 4
    levels = [(tick * problem.tick, level * unit) for tick, level in memory_steps(timeline, 0)[1:]]
    assert levels == [(0, 4), (2, 1), (2, 4), (8, 0), (8, 2), (9, Fraction(1, 2)), (9, 2), (12, 0)]


def test_factors_of_one_change_nothing() -> None:
    plain = document()
    del plain["microbatch_scale"]
    assert problem_from(document(microbatch_scale=[1, 1.0], microbatch_order="fixed")) == problem_from(plain)


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({"microbatch_scale": [1, 0.5, 2]}, "microbatch_scale"),
        ({"microbatch_scale": [1, 0]}, "microbatch_scale[1]"),
        ({"microbatch_scale": [1, 0.1234567]}, "microbatch_scale[1]"),
        ({"microbatch_scale": 0.5}, "microbatch_scale"),
        ({"microbatch_order": "any"}, "microbatch_order"),
        ({"objective": "period"}, "objective"),
        ({"times": {"forward": 2, "backward": 4, "overlapped": 5}}, "times.overlapped"),
        ({"times": {"forward": 2, "backward": 4, "transfer": [[0, 1], [2, 0]]}}, "microbatch_scale"),
    ],
)
def test_a_mistake_is_one_line_that_names_its_key(keys: dict[str, object], path: str) -> None:
    with pytest.raises(BadInput) as found:
        problem_from(document(**keys))
    assert [line.partition(": ")[2].partition(":")[0] for line in str(found.value).splitlines()] == [path]


def test_a_problem_made_in_code_has_factors_or_passes_for_parameters() -> None:
    keys = document(objective="iteration", parameters={"reduce": {"time": 3}})
    del keys["microbatch_scale"]
    with pytest.raises(BadInput, match="microbatch_scale: found with parameters"):
        with_microbatch_scale(problem_from(keys), [Fraction(1), Fraction(1, 2)], fixed=True)
