"""Time against memory: every point holds against brute force, and the picture shows what was found."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from commands.main import main
from pipesched.problem.problem import Objective, Problem
from pipesched.results.analysis.frontier import Frontier, Point
from pipesched.results.analysis.memory_scale import MemoryScale
from pipesched.results.certificate import Certificate
from pipesched.validation.validator import validate
from plots.frontier import Known, Spot, draw_frontier, render_frontier
from solver.analysis import pareto_front, pareto_sweep
from solver.analysis.memory_levels import MemoryLevels
from solver.analysis.pareto_sweep import frontier
from solver.analysis.time_budget import Budget
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.limits import Limits
from tests.support.counted import counted
from tests.support.exhaustive.optimum import least_value
from tests.support.makers import problem
from tests.support.tiny_problem import SHAPES, tiny_problem

SURE = counted(60)
SMALL = tuple(shape for shape in SHAPES if shape[0].devices < 3 and shape[0].stages < 4)


def levels_of(found: Frontier) -> MemoryLevels:
    """The levels that a sweep chose from: those of the problem without its capacities."""
    one, scale = found.problem, found.scale
    unlimited = one.with_room((None,) * one.devices)
    return MemoryLevels(unlimited, scale.weights if scale.by_share else None)


@pytest.mark.parametrize("seed", range(12))
def test_every_point_and_every_bound_holds_against_brute_force(seed: int) -> None:
    random = Random(seed)
    one = replace(tiny_problem(random, SMALL), objective=random.choice((Objective.MAKESPAN, Objective.SPAN)))
    found = frontier(one, 5, SURE)
    levels = levels_of(found)
    assert found.points
    for point in found.points:
        held = levels.under(point.level)
        truth = least_value(held, one.objective)
        assert truth is not None
        assert point.value is not None
        assert point.timeline is not None
        assert point.lower_bound <= truth <= point.value
        assert not validate(replace(point.timeline, problem=held))
    for level, bound in found.bounds:
        truth = least_value(levels.under(level), one.objective)
        assert truth is None or bound <= truth
    values = [point.value for point in found.points if point.value is not None]
    assert values == sorted(values, reverse=True)


def test_the_bound_of_any_memory_holds_where_the_search_of_ample_memory_found_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The schedule found, one micro-batch after the other, needs least memory; bounds at that level are above others."""
    one = problem(2, 2, times={"forward": 2, "backward": 3, "weight": 1, "transfer": 1}, memory={"capacity": 2})
    in_turn = best_times(one, sequential(one))
    ask = Budget.ask

    def little(self: Budget, asked: Problem, target: Any = None) -> Any:
        found = ask(self, asked, target)
        return replace(found, timeline=in_turn, candidates=())

    monkeypatch.setattr(Budget, "ask", little)
    found = frontier(one, 3, SURE)
    optimum = least_value(one.with_room((None, None)), one.objective)
    assert optimum is not None and found.points[-1].lower_bound > optimum
    assert found.lower_bound is not None and found.lower_bound <= optimum
    document = found.document()
    assert document["lower_bound"] == float(found.lower_bound)
    assert render_frontier(found, "svg")


def test_capacities_that_differ_are_swept_as_shares() -> None:
    one = problem(2, 4, memory={"capacity": [2, 4], "activation": 1})
    found = frontier(one, 4, SURE)
    assert found.scale.by_share
    assert found.own == 1
    assert found.points[0].level == Fraction(1, 2)


def test_the_curve_of_bounds_is_within_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its certificates are of the last: a sweep without any time works out none but those that it has points of."""
    levels, real = list[Fraction](), pareto_front.certificates

    def noted(one: Problem, objective: Objective) -> list[Certificate]:
        levels.extend(room for room in one.room[:1] if room is not None)
        return real(one, objective)

    monkeypatch.setattr(pareto_front, "certificates", noted)
    one = problem(3, 6, memory={"capacity": 3, "activation": 1})
    assert frontier(one, 4, Limits(seconds=0, workers=1)).points
    assert not levels
    frontier(one, 4, SURE)
    assert levels


def test_a_cut_curve_is_evenly_spread() -> None:
    order = sorted(range(60), key=pareto_sweep._bisected)
    assert sorted(order) == [*range(60)]
    for cut in range(8, 61):
        known = sorted(order[:cut])
        assert max(b - a for a, b in pairwise([*known, 60])) <= 3 * 60 / cut


def test_a_stop_keeps_the_points_so_far() -> None:
    stop = Event()

    def on_progress(done: int, *_: object) -> None:
        if done == 2:
            stop.set()

    one = problem(4, 8, memory={"capacity": 4, "activation": 1}, objective="span")
    found = frontier(one, 8, SURE, on_progress, stop)
    assert found.interrupted
    assert (found.untried, found.not_needed) == (5, 0)
    assert found.points
    for point in found.points:
        assert point.value is None or point.lower_bound <= point.value


def test_the_bound_changes_only_at_levels_that_a_schedule_can_have() -> None:
    found = frontier(problem(2, 4, memory={"capacity": 4, "activation": 1}, objective="span"), 8, SURE)
    assert all(point.value == point.lower_bound for point in found.points)
    # Proved at every level: the bound's steps are then those of the schedules found, and nothing between is open.
    ends = [*(point.level for point in found.points[1:]), found.points[-1].level]
    values = [point.value for point in found.points]
    assert found.steps == ((found.points[0].level, values[0]), *zip(ends, values, strict=True))


SPOTS = [Spot(1, 100.0), Spot(2, 60.0), Spot(8, 50.0)]
BOUNDS = [(1.0, 95.0), (3.0, 55.0), (8.0, 50.0)]


@pytest.mark.parametrize("spots", [SPOTS, [Spot(1, 5.0)], [Spot(0, 0.0)]])
def test_any_frontier_has_a_picture(spots: list[Spot]) -> None:
    one = replace(problem(2, 4, memory={"unit": "$", "activation": 1}), name="a $title")
    values = [(Fraction(spot.memory), int(spot.value)) for spot in spots]
    points = [Point(level, value, value, None, Certificate("any", value, "")) for level, value in values]
    scale = MemoryScale(one, (1, 1), False)
    found = Frontier(scale, Fraction(0), tuple(points), tuple(values), tuple(values), (), None)
    image = render_frontier(found)
    assert image.startswith(b"\x89PNG")
    assert image == render_frontier(found)
    assert b"<svg" in render_frontier(replace(found, own=Fraction(3)), "svg")


FILE = """
name: small
devices: 2
microbatches: 4
time_unit: ms
times: {forward: 1.5, backward: 1.5, weight: 0.5, transfer: 0.1}
memory: {capacity: 2, activation: 1, unit: GiB}
objective: span
"""
QUICK = ["--workers", "1", "--time-limit", "60", "--points", "5"]


def test_frontier_json_and_picture(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "frontier.png"
    assert main(["frontier", small, "--json", "-o", str(picture), *QUICK]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {
        "name", "objective", "by_share", "least_memory", "memory_in_file", "lower_bound", "points", "bounds", "schedules",
        "not_tried", "not_needed", "interrupted", "files",
    }  # fmt: skip
    assert document["memory_in_file"] == 2.0
    assert (document["not_tried"], document["not_needed"]) == (0, 2)
    assert document["least_memory"] == document["points"][0]["memory"] == 1.0
    assert [point["memory"] for point in document["points"]] == [1.0, 2.0, 3.0, 4.0]
    assert all(point["gap"] == 0.0 for point in document["points"])
    assert document["files"] == [str(picture)]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_frontier_prints_a_table(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["frontier", small, *QUICK]) == 0
    said = capsys.readouterr()
    for words in (
        "span against memory",
        "(GiB)",
        "no schedule fits with less than 1 GiB",
        "none is faster with any memory",
    ):
        assert words in said.out
    assert len(said.err.splitlines()) == 3  # two more would show nothing new
    assert "solved at 3 of at most 5" in said.out


def test_a_range_of_memory_is_kept_to() -> None:
    one = problem(2, 4, memory={"activation": 1, "capacity": 2}, objective="span")
    found = frontier(one, 4, SURE, within=(Fraction(1), Fraction(2)))
    assert [point.level for point in found.points] == [1, 2]
    whole = {point.level: point.value for point in frontier(one, 5, SURE).points}
    assert all(whole[point.level] == point.value for point in found.points)
    with pytest.raises(ValueError, match="no schedule fits with less than"):
        frontier(one, 4, SURE, within=(Fraction(1, 2), Fraction(3, 4)))


def test_the_command_takes_a_range_in_the_unit_of_the_file(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "range.svg"
    assert main(["frontier", small, "--memory", "2..3", "--json", *QUICK, "-o", str(picture)]) == 0
    assert [point["memory"] for point in json.loads(capsys.readouterr().out)["points"]] == [2.0, 3.0]
    assert main(["frontier", small, "--memory", "2..3", *QUICK]) == 0
    assert "with up to 3 GiB" in capsys.readouterr().out
    assert main(["frontier", small, "--memory", "0.1..0.5"]) == 2
    assert "allowed: a range that reaches 1 GiB" in capsys.readouterr().err
    for wrong in ("3", "3..2", "a..b", "..3", "-1..3"):
        with pytest.raises(SystemExit, match="2"):
            main(["frontier", small, f"--memory={wrong}"])
        assert "such as 16..48" in capsys.readouterr().err


def test_every_published_schedule_is_named_beside_its_own_mark() -> None:
    known = [Known(f"schedule-{n}", 2 + 0.3 * (n % 4), 60 + 4 * n) for n in range(12)] + [Known("same", 2, 60)]
    figure = Figure(figsize=(9, 5.6))
    axes = figure.add_subplot()
    draw_frontier(SPOTS, BOUNDS, known, None, axes)
    labels = {text.get_text(): text.get_window_extent() for text in axes.texts}
    assert set(labels) == {f"schedule-{n}" for n in range(1, 12)} | {"schedule-0, same"}
    boxes = list(labels.values())
    assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[:n])
    marks = {one.name: axes.transData.transform((one.memory, one.value)) for one in known}
    ends = [line.get_transform().transform(line.get_xydata()) for line in axes.get_lines()[-len(boxes) :]]
    for name, box in labels.items():
        at = marks[name.split(",")[0]]
        assert not any(box.contains(*mark) for mark in marks.values()), "a name hides no mark"
        near = min(marks, key=lambda other: _distance(box, marks[other]))
        joined = any(abs(line - at).sum(axis=1).min() < 2 for line in ends)
        assert joined or near == name.split(",")[0]


def _distance(box: Bbox, at: Any) -> float:
    return float(max(box.x0 - at[0], 0, at[0] - box.x1) + max(box.y0 - at[1], 0, at[1] - box.y1))


def test_gathered_parameters_count_among_the_levels() -> None:
    """A level above those of activations alone had no bound: `frontier` ended in a traceback."""
    gather = {"gather": {"time": 2, "memory": 1}}
    one = problem(3, 3, times={"forward": 1, "backward": [2, 5, 4]}, objective="iteration", parameters=gather)
    found = frontier(one, 3, counted(20))
    assert [(point.level, point.value, point.lower_bound) for point in found.points] == [
        (2, 44, 44),
        (3, 30, 30),
        (4, 26, 26),
    ]


def test_an_activation_that_moves_in_part_is_at_levels_between() -> None:
    """What is proved at one activation says nothing of one and a half, which half an activation on its way needs."""
    offload = {"out": 1, "in": 1, "amount": 0.5}
    one = problem(1, 2, times={"forward": 2, "backward": 3}, memory={"offload": offload})
    levels = MemoryLevels(one)
    assert levels.snapped(Fraction(3, 2)) == Fraction(3, 2)
    assert levels.above(Fraction(1)) == Fraction(3, 2)
