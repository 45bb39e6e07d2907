"""An order of passes as HTML for notebooks: it has no times, so every slot is as wide as the others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from pipesched.notebook.timeline_html import framed, legend
from pipesched.problem.formatting import counted
from pipesched.problem.passes import Slot
from pipesched.schedule.drawing.colours import shade
from pipesched.schedule.drawing.svg import Cell, svg
from pipesched.schedule.schedule import Schedule

_LEAST = 24  # slots that the picture is wide for, so that those of a short order are no wider than usual
_TOP, _BOTTOM = 0.06, 0.94  # of a device's row


def schedule_html(schedule: Schedule) -> str:
    """The orders as rows of passes, with a line that says what is shown."""
    chunks = max((len(_stages(order)) for order in schedule.orders), default=1)
    cells = [cell for device, order in enumerate(schedule.orders) for cell in _cells(device, order, chunks)]
    names = [f"device {device}" for device in range(len(schedule.orders))]
    what = f"the order of {counted(len(schedule.columns), 'pass')} on {counted(len(names), 'device')}"
    most = max([_LEAST, *map(len, schedule.orders)])
    shades = [f"Chunk {number}" for number in range(chunks)]
    picture = svg(cells, names, float(most), [], what) + legend({p.kind for p in schedule.passes()}, shades)
    return framed(f"{schedule.name or 'schedule'}: {what}; simulate(problem, schedule) gives it times", picture)


_shade = cache(shade)


def _stages(order: tuple[Slot, ...]) -> list[int]:
    return sorted({p.stage for slot in order for p in slot})


def _cells(device: int, order: tuple[Slot, ...], chunks: int) -> Iterator[Cell]:
    """The slots of a device; two passes of one slot one above the other."""
    chunk_of = {stage: number for number, stage in enumerate(_stages(order))}
    for at, slot in enumerate(order):
        high = (_BOTTOM - _TOP) / len(slot)
        for number, p in enumerate(slot):
            top = device + _TOP + number * high
            colour = _shade(p.kind, chunk_of[p.stage], chunks)
            yield Cell(at, at + 1, top, top + high, colour, str(p.microbatch), str(p))
