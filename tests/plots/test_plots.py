"""The plots: what a reader must find in them, checked on the drawn figure."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from collections import Counter
from decimal import Decimal

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from pipesched.files.problem_file import problem_from
from pipesched.problem.passes import BW, KINDS, B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import COMPUTE, TaskSpec
from pipesched.schedule.drawing.boxes import makespan
from pipesched.schedule.metrics import memory_steps
from pipesched.schedule.schedule import Schedule, overlapped, schedule_of
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from plots.catalogue import PLOTS
from plots.drawing.box_numbers import INSTANT, BoxNumbers, draw_boxes
from plots.drawing.memory_heat import HEAT_MAP, PARAMS, draw_heat_map
from plots.drawing.memory_marks import OVER
from plots.drawing.stream_boxes import phases
from plots.drawing.zoom import readable_part
from plots.gantt import draw_gantt
from plots.memory import draw_memory
from plots.render import PART, READABLE, SIDES, figure_with_part, make_figure, natural_width, render
from tests.support.columns import with_tasks
from tests.support.daily import daily

SPLIT = {"forward": 2, "backward": 2, "weight": 1}
FUSED = {"forward": 1, "backward": 2}
SIZES = [(2, 4), (8, 24), (16, 64)]


def problem(devices: int, microbatches: int, times: dict, **more: object) -> Problem:
    document = {"devices": devices, "microbatches": microbatches, "times": times, "name": "x", **more}
    return problem_from(document, "x")


def one_f_one_b(devices: int, microbatches: int, split: bool = False) -> Schedule:
    """1F1B; split, every B is followed by its W."""
    orders = []
    for d in range(devices):
        warmup = min(microbatches, devices - d)
        order = [Pass(F, d, j) for j in range(warmup)]
        for j in range(microbatches):
            order += [Pass(B, d, j), Pass(W, d, j)] if split else [Pass(BW, d, j)]
            order += [Pass(F, d, j + warmup)] if j + warmup < microbatches else []
        orders.append(order)
    return schedule_of(orders, "1f1b")


def linear(devices: int, microbatches: int, split: bool = False, **more: object) -> Timeline:
    p = problem(devices, microbatches, SPLIT if split else FUSED, **more)
    return simulate(p, one_f_one_b(devices, microbatches, split))


def v_shape(devices: int = 2, microbatches: int = 2) -> Timeline:
    """All forwards, then all backwards, on two chunks a device."""
    p = problem(devices, microbatches, FUSED, placement="v-shape")
    js = range(microbatches)
    orders = [
        [Pass(F, s, j) for s in (d, 2 * devices - 1 - d) for j in js]
        + [Pass(BW, s, j) for s in (2 * devices - 1 - d, d) for j in js]
        for d in range(devices)
    ]
    return simulate(p, schedule_of(orders))


def bidirectional() -> Timeline:
    """One device a direction's end; each device overlaps the second forward with the first backward."""
    p = problem(1, 4, {**FUSED, "overlapped": Decimal("2.5")}, placement="bidirectional")
    slots = (
        (Pass(F, 0, 0),),
        overlapped(Pass(F, 1, 2), Pass(BW, 0, 0)),
        overlapped(Pass(F, 0, 1), Pass(BW, 1, 2)),
        (Pass(BW, 0, 1),),
        (Pass(F, 1, 3),),
        (Pass(BW, 1, 3),),
    )
    return simulate(p, Schedule((slots,)))


def with_streams() -> Timeline:
    p = problem(2, 4, FUSED)
    chain = (TaskSpec(COMPUTE, 1), TaskSpec("ep", 2), TaskSpec(COMPUTE, 1))
    parts = {(kind, stage): chain for kind in (F, BW) for stage in range(2)}
    return simulate(with_tasks(p, parts), one_f_one_b(2, 4))


def of_tasks() -> Timeline:
    """Named tasks on two streams, and transfers that occupy one of them."""
    tasks = {
        "forward": [{"name": "attn", "time": 3}, {"name": "dispatch", "on": "comm", "time": 4}],
        "backward": [{"name": "attn", "time": 6}],
    }
    times = {"transfer": {"time": 1, "on": "comm"}}
    p = problem(2, 3, times, tasks=tasks, streams=["compute", "comm"])
    return simulate(p, one_f_one_b(2, 3))


TIMELINES = {
    "tasks": of_tasks,
    "2x4": lambda: linear(2, 4),
    "4x10": lambda: linear(4, 10, split=True),
    "v-shape": v_shape,
    "bidirectional": bidirectional,
    "streams": with_streams,
    "zero-length passes": lambda: simulate(
        problem(2, 3, {"forward": 1, "backward": 1, "weight": 0}), one_f_one_b(2, 3, split=True)
    ),
    "no time at all": lambda: simulate(problem(2, 3, {"forward": 0, "backward": 0}), one_f_one_b(2, 3)),
    "no passes": lambda: Timeline(problem(2, 3, FUSED), schedule_of([[], []]), {}),
}


def drawn(timeline: Timeline, draw=draw_gantt, title: str | None = None) -> Figure:
    figure = make_figure(timeline, draw, title)
    FigureCanvasAgg(figure).draw()
    return figure


def boxes(figure: Figure) -> PolyCollection:
    (collection,) = (c for c in figure.axes[0].collections if isinstance(c, PolyCollection))
    return collection


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def colour_of(kind: PassKind) -> str:
    return KINDS[kind].shades[0]


def numbers(figure: Figure) -> BoxNumbers:
    (artist,) = figure.axes[0].findobj(BoxNumbers)
    return artist


# The Gantt chart


@pytest.mark.parametrize(("devices", "microbatches"), SIZES)
def test_one_box_a_pass(devices: int, microbatches: int) -> None:
    figure = drawn(linear(devices, microbatches, split=True))
    assert len(boxes(figure).get_paths()) == devices * microbatches * 3


@pytest.mark.parametrize(("split", "kinds"), [(False, (F, BW)), (True, (F, B, W))])
def test_each_kind_has_its_colour_and_its_line_in_the_legend(split: bool, kinds: tuple[PassKind, ...]) -> None:
    figure = drawn(linear(4, 8, split=split))
    counts = Counter(to_hex(colour) for colour in boxes(figure).get_facecolor())
    assert counts == {colour_of(kind): 32 for kind in kinds}
    assert len(legend_texts(figure)) == len(kinds)


@pytest.mark.parametrize(("devices", "microbatches", "width"), [(2, 4, 4), (2, 4, 60), (8, 24, 12), (32, 256, 60)])
def test_numbers_never_overflow_their_boxes(devices: int, microbatches: int, width: float) -> None:
    """Even on axes of a size that `render` would not choose."""
    timeline = linear(devices, microbatches, split=True)
    figure = Figure(figsize=(width, 4))
    axes = figure.add_subplot()
    draw_gantt(timeline, axes)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    extents = [axes.transData.transform(path.vertices) for path in boxes(figure).get_paths()]
    lows, highs = np.array([e.min(axis=0) for e in extents]), np.array([e.max(axis=0) for e in extents])
    for text in numbers(figure).texts(renderer):
        inked = text.get_window_extent(renderer)
        middle = np.array(text.get_position())
        (box,) = np.flatnonzero(((lows < middle) & (middle < highs)).all(axis=1))
        assert (lows[box] <= inked.min).all() and (inked.max <= highs[box]).all()


def test_an_overlapped_block_is_its_forward_above_its_backward() -> None:
    timeline = bidirectional()
    figure = drawn(timeline)
    corners = [path.vertices for path in boxes(figure).get_paths()]
    forward, backward = corners[1], corners[2]  # the halves of the second slot
    assert set(forward[:, 0]) == set(backward[:, 0]) == {1.0, 3.5}
    assert forward[:, 1].max() == pytest.approx(backward[:, 1].min())
    down, up = KINDS[F].shades
    shades = [to_hex(colour) for colour in boxes(figure).get_facecolor()]
    assert shades[1:3] == [up, KINDS[BW].shades[0]] and shades[0] == down
    names = ["Forward", "Backward", "Overlapped forward & backward", "Down the devices", "Up the devices"]
    assert legend_texts(figure) == names


def test_other_streams_get_thinner_lanes_below_the_compute_lane() -> None:
    figure = drawn(with_streams())
    heights = {}
    for path in boxes(figure).get_paths()[:3]:  # F0.0: attention, dispatch, experts
        top, bottom = path.vertices[:, 1].min(), path.vertices[:, 1].max()
        heights[round(top, 6)] = bottom - top
    (compute, high), (side, low) = sorted(heights.items())
    assert low < high / 2 and side == pytest.approx(compute + high) and side + low < 1
    assert [label.get_text() for label in figure.axes[0].get_yticklabels(minor=True)] == ["ep", "ep"]


def test_boxes_show_the_names_of_tasks_where_they_hold_them() -> None:
    figure = drawn(of_tasks())
    written = Counter(text.get_text() for text in numbers(figure).texts(figure.canvas.get_renderer()))
    assert {text.split()[0] for text in written if not text.isdigit()} == {"attn", "dispatch"}
    assert sum("attn" in text for text in written.elements()) == 12
    assert "Transfer to another device" in legend_texts(figure)
    assert not any("transfer" in text for text in written)
    figure.axes[0].set_xlim(0, 400)
    FigureCanvasAgg(figure).draw()
    narrow = {text.get_text() for text in numbers(figure).texts(figure.canvas.get_renderer())}
    assert narrow <= {"0", "1", "2"}


# The memory plot


def cap_lines(figure: Figure) -> list[float]:
    return [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_linestyle() == "--"]


def test_what_takes_no_time_is_a_line_in_its_colour() -> None:
    axes = Figure().subplots()
    axes.set_xlim(0, 4)
    draw_boxes(axes, [(0, 0, 1, 1), (2, 0, 2, 1)], [(1, 0, 0), (0, 0, 1)], [("0", ""), ("1", "")])
    (drawn,) = axes.collections
    assert to_hex(drawn.get_edgecolor()[1]) == "#0000ff" != to_hex(drawn.get_edgecolor()[0])
    assert drawn.get_linewidth()[1] == INSTANT > drawn.get_linewidth()[0]


def test_each_strip_shows_its_own_capacity_on_one_scale() -> None:
    timeline = linear(2, 4, memory={"capacity": [8, 4], "unit": "GiB"})
    figure = drawn(timeline, draw_memory)
    first, second = cap_lines(figure)
    assert first == pytest.approx(0.1)  # the top of device 0's strip
    assert second == pytest.approx(1.5)  # half way up device 1's
    assert figure.axes[0].get_ylabel() == "Memory (GiB)"
    written = [note.get_text() for note in figure.axes[0].findobj(Annotation)]
    assert written == ["peak 2 of 8", "1 of 4"]


def test_a_dip_that_lasts_no_time_is_not_drawn_and_a_spike_is() -> None:
    """Device 0 runs F0 F1 BW0 F2 BW1 F3 …: back to back, so it holds two activations from its second forward on."""
    figure = drawn(linear(2, 4), draw_memory)
    levels = figure.axes[0].collections[0].get_paths()[0].vertices
    held = [y for x, y in levels if 1 < x < 12 and y < 0.9]  # 0.9 is the strip's baseline
    assert held and all(y == pytest.approx(0.1) for y in held)
    more_held_between = {"capacity": 4, "activation": 2, "freed_by_backward": -1}
    timeline = simulate(
        problem(1, 1, {**SPLIT, "backward": 0, "weight": 0}, memory=more_held_between), one_f_one_b(1, 1, split=True)
    )
    spike = drawn(timeline, draw_memory).axes[0].collections[0].get_paths()[0].vertices
    assert spike[:, 1].min() == pytest.approx(0.9 - 0.8 * 3 / 4)


# Every plot


@pytest.mark.parametrize("name", TIMELINES)
@pytest.mark.parametrize("plot", daily(list(PLOTS), 4), ids=lambda plot: plot.name)
def test_every_plot_draws_every_timeline(plot, name: str) -> None:
    timeline = TIMELINES[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if name == next(iter(TIMELINES)):
            assert render(timeline, plot.draw, "png", "title").startswith(b"\x89PNG")
        assert ET.fromstring(render(timeline, plot.draw, "svg", "title")).tag.endswith("svg")


@pytest.mark.parametrize("plot", list(PLOTS), ids=lambda plot: plot.name)
def test_svg_is_reproducible_and_its_text_is_text(plot) -> None:
    title = "a <b> & $5, then $6_"
    first, second = (render(linear(2, 4), plot.draw, "svg", title) for _ in range(2))
    assert first == second
    texts = {node.text for node in ET.fromstring(first).iter("{http://www.w3.org/2000/svg}text")}
    assert {title, "Device 0", "Time"} <= texts


@pytest.mark.parametrize("name", TIMELINES)
@pytest.mark.parametrize("plot", daily(list(reversed(list(PLOTS))), 4), ids=lambda plot: plot.name)
def test_nothing_is_clipped(plot, name: str) -> None:
    """Words that wrap and one that cannot take turns over plots and timelines."""
    titles = ["a long name of a problem " * 12 + "\nmakespan 15, span 15", "W" * 300]
    title = titles[(list(PLOTS).index(plot) // 2 + list(TIMELINES).index(name)) % 2]
    figure = drawn(TIMELINES[name](), plot.draw, title)
    renderer = FigureCanvasAgg(figure).get_renderer()
    axes, whole = figure.axes[0], figure.bbox
    legend = axes.get_legend()
    notes = axes.findobj(Annotation)
    labels = [*axes.get_yticklabels(), axes.xaxis.label, axes.title, axes._left_title]
    for artist in [legend, *labels, *notes] if legend else [*labels, *notes]:
        box = artist.get_window_extent(renderer)
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1, artist
        assert whole.y0 <= box.y0 and box.y1 <= whole.y1, artist
    if legend:
        assert not legend.get_window_extent(renderer).overlaps(axes.xaxis.label.get_window_extent(renderer))


def test_library_leaves_the_settings_of_matplotlib_alone() -> None:
    before = dict(mpl.rcParams)
    render(linear(2, 4), draw_gantt, "svg")
    assert dict(mpl.rcParams) == before


def test_the_steady_part_of_a_wide_gantt_chart_is_left_out_with_a_mark() -> None:
    wide = linear(4, 80)
    assert natural_width(wide) > READABLE > natural_width(linear(4, 8))
    figure = figure_with_part(wide, draw_gantt, "title")
    FigureCanvasAgg(figure).draw()
    left, right = figure.axes
    (begin, since), (until, end) = left.get_xlim(), right.get_xlim()
    assert begin == 0 and end == makespan(wide) and since < until
    # Both ends have one scale, in which boxes can be read, and all of warm-up and cool-down.
    scales = [axes.get_window_extent().width / (axes.get_xlim()[1] - axes.get_xlim()[0]) for axes in (left, right)]
    assert scales[0] == pytest.approx(scales[1], rel=0.02)
    assert since - begin + end - until <= (READABLE - SIDES) / (natural_width(wide) - SIDES) * end
    found = [phases(wide, device) for device in range(4)]
    assert all(one is not None and one.steady <= since and until <= one.cool_down for one in found)
    assert [text.get_text() for text in left.texts] == [f"steady state from {since:g} to {until:g} left out"]
    assert left.get_legend() is not None and right.get_legend() is None
    png = render(wide, draw_gantt, zoomed=True)
    assert png != render(wide, draw_gantt) and render(linear(4, 8), draw_gantt, zoomed=True) == render(
        linear(4, 8), draw_gantt
    )


def test_of_a_chart_whose_ends_are_too_wide_a_part_is_drawn_below_that_can_be_read() -> None:
    wide = linear(24, 120)
    figure = figure_with_part(wide, draw_gantt, "title")
    left, right, part = figure.axes
    since, until = part.get_xlim()
    assert left.get_xlim()[1] <= since < until <= right.get_xlim()[0]
    assert part.get_title(loc="left").startswith("A part of the steady state: ")
    assert left.get_legend() is None and right.get_legend() is None and part.get_legend() is not None


def test_without_a_steady_state_a_part_is_drawn_below_that_can_be_read() -> None:
    p = problem(4, 80, FUSED)
    passes = [[Pass(kind, d, j) for kind in (F, BW) for j in range(80)] for d in range(4)]
    wide = simulate(p, schedule_of(passes, "gpipe"))
    figure = figure_with_part(wide, draw_gantt, "title")
    whole, part = figure.axes
    since, until = part.get_xlim()
    assert whole.get_xlim()[0] <= since < until <= whole.get_xlim()[1]
    assert (until - since) / (whole.get_xlim()[1] - whole.get_xlim()[0]) <= PART + 1e-9
    assert readable_part(wide, 0.1)[0] > 0
    assert part.get_title(loc="left").startswith("The part between the dashed lines: ")
    assert whole.get_legend() is None and part.get_legend() is not None


def test_memory_of_many_devices_is_a_heat_map() -> None:
    """A colour a share of its device's memory: the most of a column, red where it is more than there is."""
    capacity = [20] * 15 + [0.5]
    many = linear(16, 40, memory={"activation": 1, "capacity": capacity})
    unit = float(many.problem.resolution)
    assert PLOTS["memory"].of(many) is HEAT_MAP and PLOTS["memory"].of(many, part=True) is PLOTS["memory"]
    assert PLOTS["memory"].of(linear(15, 40)) is PLOTS["memory"]
    axes = make_figure(many, draw_heat_map).axes[0]
    shown = np.asarray(axes.images[0].get_array())
    assert shown.shape == (16, PARAMS.columns)
    for device in range(16):
        steps = memory_steps(many, device)
        assert shown[device].max() * capacity[device] == pytest.approx(max(level for _, level in steps) * unit)
        middle = PARAMS.columns // 2
        tick = (middle + 0.5) * makespan(many) / PARAMS.columns
        level = next(level for at, level in reversed(steps) if at <= tick)
        assert shown[device][middle] * capacity[device] >= level * unit - 1e-9
    legend = axes.get_legend()
    assert legend is not None and legend.get_texts()[-1].get_text() == "more than it has"
    assert axes.texts[0].get_text() == "peak 16 of 20"
    assert axes.texts[15].get_color() == OVER


def test_a_pdf_is_the_same_every_time() -> None:
    first, second = (render(linear(2, 4), draw_gantt, "pdf", "title") for _ in range(2))
    assert first == second and first.startswith(b"%PDF")
