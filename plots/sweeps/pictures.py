"""The pictures that the axes of a sweep allow, by file name."""

from __future__ import annotations

import re

from pipesched.sweeps.axes import Axis
from pipesched.sweeps.table import Table
from plots.render import Format
from plots.sweeps.bubble import render_bubble
from plots.sweeps.facets import named, numbers_of
from plots.sweeps.makespan_span import render_makespan_span
from plots.sweeps.memory import render_memory
from plots.sweeps.ratio import render_ratio

_MEMORY = ("memory.capacity", "hardware.memory")


def pictures(found: Table, format: Format = "png") -> dict[str, bytes]:
    """Return the pictures by file name, with `format` as its ending; empty for a sweep without any schedule.

    An axis of memory gives time against memory (`memory`), any other axis of numbers the bubble against it
    (`bubble-NAME`), two or more axes of numbers the heat map of published schedules, if any fits (`ratio`); every sweep
    gives makespan against span (`makespan-span`).
    """
    if not any(row.value is not None for row in found.rows):
        return {}
    numeric = [axis for axis in found.sweep.axes.axes if numbers_of(axis, found) is not None]
    made: dict[str, bytes] = {}
    for axis in numeric:
        if axis.path in _MEMORY:
            made[f"memory.{format}"] = render_memory(found, axis, format)
        else:
            made[f"bubble-{_file_name(axis)}.{format}"] = render_bubble(found, axis, format)
    along = next(iter([*numeric, *found.sweep.axes.axes]))
    made[f"makespan-span.{format}"] = render_makespan_span(found, along, format)
    if len(numeric) > 1 and any(row.ratio is not None for row in found.rows):
        made[f"ratio.{format}"] = render_ratio(found, numeric, format)
    return made


def _file_name(axis: Axis) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", named(axis)).strip("-")
