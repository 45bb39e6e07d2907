"""The picture of streams and its zoom: colours, phases, one period."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.files.problem_file import read_problem
from pipesched.problem.pass_names import microbatch_number
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.placement import interleaved, linear
from pipesched.schedule.drawing.boxes import boxes_of as gantt_boxes
from pipesched.schedule.drawing.colours import COMMUNICATION, TRANSFER, shade
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from plots.drawing.stream_boxes import STRIP, boxes_of, lanes
from plots.drawing.zoom import one_period, window_of
from plots.render import make_figure
from plots.streams import draw_streams
from tests.support.expert_parallel import mean_layers

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def kimi() -> Timeline:
    """Two devices, two stages each, eight micro-batches; a tick is a hundredth of a millisecond."""
    problem = mean_layers(interleaved(2, 2), 8)
    return simulate(problem, HEURISTICS["kimi-k2"].order(problem))


def test_tasks_lie_on_their_streams_in_the_colours_of_the_gantt_chart() -> None:
    timeline = kimi()
    top, bottom = lanes(timeline.problem)["comm"]
    boxes = list(boxes_of(timeline, lanes(timeline.problem)))
    named = {box.name: box.colour for box in boxes if box.top < 1 and box.number}
    assert {named[name] for name in ("dispatch0", "combine0")} == {COMMUNICATION}
    assert {named["mlp-w0"], named["attn-w0"]} <= {shade(W, number, 2) for number in range(2)}
    backwards = {p.kind for p in timeline.schedule.passes()} & {B, BW}
    assert {box.colour for box in boxes if box.name == "attn0"} == {
        shade(kind, number, 2) for kind in {F, *backwards} for number in range(2)
    }
    # What travels occupies nothing: a strip for each tensor that leaves device 0, 60 ticks long.
    strips = [box for box in boxes if box.colour == TRANSFER and box.top < 1]
    assert {(box.end - box.start, box.bottom) for box in strips} == {(60, bottom)}
    assert len(strips) == 8 * 3
    assert bottom - strips[0].top == pytest.approx(STRIP * (bottom - top))


def test_micro_batches_stand_in_a_row_without_overlap() -> None:
    timeline = kimi()
    top, bottom = lanes(timeline.problem)[None]
    for upper in (top, (top + bottom) / 2):
        row = sorted((box.start, box.end) for box in boxes_of(timeline, lanes(timeline.problem)) if box.top == upper)
        assert len(row) == 16
        assert all(end <= start for (_, end), (start, _) in pairwise(row))


@pytest.mark.parametrize(
    ("name", "schedule"), [("reduce-and-step", "interleaved-zb"), ("sequence-chunks", "seq1f1b"), ("wave", "hanayo")]
)
def test_boxes_have_the_numbers_of_the_gantt_chart(name: str, schedule: str) -> None:
    """What runs once has the number of its stage, a piece that of its micro-batch."""
    problem = read_problem(EXAMPLES / f"{name}.yaml")
    timeline = simulate(problem, HEURISTICS[schedule].order(problem))
    drawn = {(one.start, one.number) for one in boxes_of(timeline, lanes(problem)) if one.number}
    assert drawn == {(box.start, str(microbatch_number(problem, box.of))) for box in gantt_boxes(timeline)}


def test_a_zoom_shows_its_part_alone() -> None:
    timeline = kimi()
    since, until = one_period(timeline)
    figure = make_figure(timeline, draw_streams, window=(since, until))
    assert figure.axes[0].get_xlim() == pytest.approx((since / 100, until / 100))
    # Two stages a device: two pairs, each of which computes 31.61 ms.
    assert until - since == pytest.approx(2 * 3161, rel=0.2)
    assert window_of(timeline, "10:50.5") == (1000, 5050)
    assert window_of(timeline, "10:")[1] == max(timeline.end(p) for p in timeline.schedule.passes())


@pytest.mark.parametrize("text", ("", "week", "5", "7:3", "a:b", "-1:4"))
def test_a_zoom_that_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="period"):
        window_of(kimi(), text)


def test_one_forward_has_no_period() -> None:
    problem = mean_layers(linear(1), 1)
    with pytest.raises(BadInput, match="no steady state"):
        one_period(simulate(problem, HEURISTICS["1f1b"].order(problem)))


def test_a_zoom_behind_the_end_is_refused() -> None:
    with pytest.raises(BadInput, match="begins when the schedule has ended"):
        window_of(kimi(), "100000:200000")
