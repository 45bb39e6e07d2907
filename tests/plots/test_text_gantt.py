"""The Gantt chart made of characters: every pass where there is room, never wider than asked, time to scale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched import problem_from, read_problem, simulate
from pipesched.schedule.timeline import Timeline
from plots.text.gantt import text_gantt

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def chart(
    timeline: Timeline, columns: int, coloured: bool = False, window: tuple[float, float] | None = None
) -> list[str]:
    return ["".join(piece.text for piece in line) for line in text_gantt(timeline, columns, coloured, window)]


def of(name: str, **keys: object) -> Timeline:
    times = {"forward": 1, "backward": 1, "weight": 1}
    problem = problem_from({"devices": 2, "microbatches": 2, "times": times, **keys})
    return simulate(problem, HEURISTICS[name].order(problem))


def test_each_pass_is_drawn_from_its_start_to_its_end() -> None:
    assert chart(of("zb-h1"), 31)[:2] == ["device 0 F0-F1-...B0-W0-B1-W1-", "device 1 ...F0-B0-F1-B1-W0-W1-"]
    assert chart(of("zb-h1"), 24)[:2] == ["device 0 F0F1..B0W0B1W1", "device 1 ..F0B0F1B1W0W1"]
    assert chart(of("zb-h1", microbatches=6), 30)[0] == "device 0 FF.BWFBWFBWFBWFBWBW"


def test_what_runs_once_has_the_number_of_its_stage() -> None:
    problem = read_problem(EXAMPLES / "reduce-and-step.yaml")
    lines = chart(simulate(problem, HEURISTICS["interleaved-zb"].order(problem)), 300)
    steps = [re.search(r"S(\d)-*$", line.rstrip(" .")) for line in lines if re.match(r"\d compute", line)]
    assert [step and step[1] for step in steps] == ["0", "1", "2", "3"]


def test_a_full_backward_is_b_alone_and_x_beside_split_ones() -> None:
    said = chart(of("1f1b"), 40)
    assert "B0--" in said[0]
    assert "F forward  B backward  . idle" in said
    dual = read_problem(EXAMPLES / "dualpipe-blocks.yaml")
    said = chart(simulate(dual, HEURISTICS["dualpipe"].order(dual)), 200)
    assert re.search(r"X\d", said[1])
    assert re.search(r"F\d+&X\d+", said[1]), "a block of two passes"
    assert "X backward, both parts at once" in "\n".join(said)


@pytest.mark.parametrize("columns", [40, 60, 80, 133])
@pytest.mark.parametrize("file", ["gpt-1.5b-pp8", "kimi-k2-mini", "dualpipe-blocks", "offload", "start"])
def test_no_line_is_wider_than_asked_and_every_device_has_a_row(file: str, columns: int) -> None:
    problem = read_problem(EXAMPLES / f"{file}.yaml")
    name = {"kimi-k2-mini": "kimi-k2", "dualpipe-blocks": "dualpipe"}.get(file, "1f1b")
    timeline = simulate(problem, HEURISTICS[name].order(problem))
    said = chart(timeline, columns)
    assert max(map(len, said)) <= columns
    first = [line for line in said if re.match(r"(device \d+|\d+ compute) ", line)]
    assert len(first) == problem.devices
    assert all(re.search("[FB]", line[9:]) for line in first)


def test_what_is_too_long_is_sampled_and_says_so() -> None:
    said = chart(of("1f1b", microbatches=200), 60)
    assert said[-1].startswith("a column is 11.8, ")
    row = said[0].removeprefix("device 0 ")
    assert {*row} == {"F", "B"}
    assert abs(row.count("B") / len(row) - 2 / 3) < 0.03, "two of three units of time are backwards"


def test_a_window_is_drawn_alone() -> None:
    timeline = of("zb-h1")
    said = chart(timeline, 33, window=(2.0, 5.0))
    assert said[0].startswith("device 0 ........B0------W0------")
    assert said[2].strip().startswith("|2")


def test_a_schedule_of_no_time_has_no_chart() -> None:
    assert chart(of("1f1b", times={"forward": 0, "backward": 0}), 40) == []
