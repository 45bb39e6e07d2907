"""Weights, gradients and optimizer: `memory.static` is subtracted from the capacity and shown in every peak."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.main import main
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.results.analysis.explanation import PerturbationKind
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from solver.analysis.perturbations import changes
from tests.support.makers import problem
from tests.support.report_text import report_text


def held(static: object, placement: str = "v-shape", **memory: object) -> Problem:
    return problem(2, 4, placement=placement, memory={"unit": "GiB", "capacity": 10, "static": static, **memory})


@pytest.mark.parametrize(
    ("static", "room"),
    [(4, (6, 6)), ([4, 7], (6, 3)), ([1, 2, 3, 4], (5, 5)), ([0, 0, 2, 5], (5, 8)), (0, (10, 10))],
)
def test_it_is_a_number_or_one_per_device_or_per_stage_and_is_subtracted(static: object, room: tuple[int, ...]) -> None:
    one = held(static)
    assert tuple(c * one.resolution for c in one.room if c is not None) == room


def test_a_list_of_a_bidirectional_placement_is_one_per_device_or_per_stage() -> None:
    assert held([1, 2], "bidirectional").static == (1, 2)
    assert held([1, 2, 4, 8], "bidirectional").static == (9, 6)


def test_another_length_is_a_mistake() -> None:
    with pytest.raises(BadInput, match=r"memory.static: found 3 values"):
        held([1, 2, 3])


def test_a_changed_problem_keeps_it() -> None:
    one = held([0.5, 7], activation=1.5)
    changed = next(change.problem for change in changes(one, 0, 0) if change.kind is PerturbationKind.MOVE)
    assert [s * changed.resolution for s in changed.static] == [s * one.resolution for s in one.static]


@pytest.mark.parametrize("static", [9, 12])
def test_too_little_beside_it_is_infeasible_and_says_so(static: int) -> None:
    reason = why_infeasible(held(static))
    assert reason == (
        "memory: device 0 must hold the activations of stages 0, 3 of one micro-batch at once, 2 GiB in addition to "
        f"{static} GiB of static memory; its capacity is 10 GiB"
    )
    assert why_infeasible(held(8)) is None


@pytest.mark.usefixtures("pictures_are_empty")
def test_every_command_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "static.yaml"
    path.write_text(
        "devices: 2\nmicrobatches: 4\ntimes: {forward: 1, backward: 1, weight: 1}\n"
        "memory: {unit: GiB, capacity: 10, static: [4, 7]}\n"
    )
    sure = ["--workers", "1", "-o", str(tmp_path / "out")]
    assert main(["solve", str(path), "--json", *sure]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["static_memory"] == [4, 7]
    assert found["memory_capacity"] == [10, 10]
    one = problem_from({**_document(tmp_path / "out" / "schedule.json")}, "written")
    assert one.room == (6, 3)
    assert found["peak_memory"][1] in (8, 9, 10)
    assert main(["compare", str(path), "--no-optimal", "--json", "--schedules", "1f1b,gpipe"]) == 0
    rows = {row["schedule"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["1f1b"]["peak_memory"] == [6, 8]
    assert (rows["gpipe"]["peak_memory"], rows["gpipe"]["fits"]) == ([8, 11], False)
    assert main(["solve", str(path), *sure]) == 0
    assert "; of which static: 4, 7" in capsys.readouterr().out
    assert "; of which static: 4, 7" in report_text(tmp_path / "out" / "report.html")


def _document(path: Path) -> dict[str, object]:
    document = json.loads(path.read_text())["problem"]
    assert isinstance(document, dict)
    return document


def test_the_picture_of_memory_has_it_at_the_bottom() -> None:
    from matplotlib.colors import to_hex

    from heuristics.catalogue import HEURISTICS
    from plots.drawing.memory_marks import STATIC
    from plots.memory import draw_memory
    from plots.render import make_figure

    one = held([4, 0])
    timeline = simulate(one, HEURISTICS["zbv"].order(one))
    axes = make_figure(timeline, draw_memory).axes[0]
    bands = [p for p in axes.patches if to_hex(p.get_facecolor()) == STATIC]
    assert len(bands) == 1, "device 1 holds nothing else"
    said = [text.get_text() for text in axes.texts]
    peaks = measure(timeline).peak_quanta
    assert said == [f"peak {peaks[0] + 4} of 10", f"{peaks[1]} of 10"]
