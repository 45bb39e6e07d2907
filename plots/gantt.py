"""The Gantt chart: the passes of every device over time, one box for each pass, as in papers on pipeline schedules."""

from __future__ import annotations

from matplotlib.axes import Axes

from pipesched.deadline import SHORT, asking
from pipesched.problem.pass_names import microbatch_number
from pipesched.schedule.drawing.boxes import boxes_of, lanes
from pipesched.schedule.drawing.colours import TRANSFER, shade, shade_names, shade_numbers
from pipesched.schedule.timeline import Timeline
from plots.catalogue import PLOTS, Plot
from plots.drawing.box_numbers import draw_boxes
from plots.drawing.frame import draw_frame
from plots.drawing.gantt_legend import draw_legend
from plots.drawing.stream_marks import name_lanes


def draw_gantt(timeline: Timeline, axes: Axes) -> None:
    """Draw a row for each device, device 0 on top; time is in the file's unit.

    Boxes have the micro-batch's number if it fits. The hue shows the kind of pass, its shade the chunk or, in a
    bidirectional placement, the direction. Each stream has a lane, and tasks with a name show it if it fits their
    boxes.
    """
    problem = timeline.problem
    boxes = list(boxes_of(timeline))
    compute_top, compute_bottom = lanes(problem)[problem.streams[0]]
    draw_frame(timeline, axes, (compute_top + compute_bottom) / 2)
    shade_of = shade_numbers(problem)
    count = len(shade_names(problem))
    # In ticks, since of a long schedule most boxes are outside, and each product of fractions takes microseconds.
    since, until = (edge / float(problem.tick) for edge in axes.get_xlim())
    shown = [box for box in asking(boxes, SHORT) if box.start <= until and since <= box.end]
    colours = [TRANSFER if box.sends else shade(box.of.kind, shade_of[box.of.stage], count) for box in shown]
    corners = [(problem.in_units(b.start), b.top, problem.in_units(b.end), b.bottom) for b in asking(shown, SHORT)]
    labels = [(str(microbatch_number(problem, box.of)), "" if box.sends else box.name) for box in asking(shown, SHORT)]
    draw_boxes(axes, corners, colours, labels)
    name_lanes(problem, axes, {stream: lane for stream, lane in lanes(problem).items() if stream != problem.streams[0]})
    draw_legend(axes, problem, boxes)


PLOTS.register(Plot("gantt", "what every device does when", draw_gantt, zoomed=True))
