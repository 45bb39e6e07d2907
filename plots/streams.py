"""The picture of every device's streams as in Kimi K2's report: computation, communication, copies, micro-batches.

Passes have the colours of the Gantt chart; dispatch and combine are pink, transfers of the pipeline mauve.
"""

from __future__ import annotations

from matplotlib.axes import Axes

from pipesched.schedule.timeline import Timeline
from plots.catalogue import PLOTS, Plot
from plots.drawing.frame import draw_frame
from plots.drawing.stream_boxes import lanes
from plots.drawing.stream_marks import colour_legend, draw_tasks, mark_phases, name_lanes


def draw_streams(timeline: Timeline, axes: Axes) -> None:
    """Draw a row for each device with a lane for each stream and one for micro-batches.

    In the latter, forwards are above backwards.
    """
    problem = timeline.problem
    where = lanes(problem)
    draw_frame(timeline, axes, sum(where[problem.streams[0]]) / 2)
    boxes = draw_tasks(timeline, axes, where)
    # The first lane's label is the device's.
    names = {"micro-batch" if stream is None else stream: edges for stream, edges in list(where.items())[1:]}
    name_lanes(problem, axes, names)
    colour_legend(problem, axes, boxes, mark_phases(timeline, axes))


PLOTS.register(Plot("streams", "what every stream of every device does", draw_streams, row=1.6))
