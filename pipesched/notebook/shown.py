"""Registration of the notebook views of problems, orders and timelines: tables, slots, charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from itertools import groupby

from pipesched.html_of import html_of
from pipesched.notebook.timeline_html import framed, legend, timeline_html
from pipesched.problem.formatting import amount, counted, memory_amount, plain, size, visible
from pipesched.problem.passes import Slot
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, Ticks
from pipesched.problem.stage import Stage
from pipesched.schedule.drawing.colours import shade
from pipesched.schedule.drawing.svg import Cell, svg
from pipesched.schedule.schedule import Schedule

_MOST = 40  # rows; a longer table says how many more there are


def problem_html(problem: Problem) -> str:
    """Return HTML with a problem's size and limits as lines, and a table of its stages.

    Neighbouring stages with equal costs share a row. Rows after the first 40 are left out, and counted.
    """
    columns, rows = _columns(problem), []
    for stage, group in groupby(range(problem.placement.stages), key=problem.stages.__getitem__):
        alike = list(group)
        rows.append([_numbers(alike), _devices(problem, alike), *(show(stage) for _, show in columns)])
    heads = ["stage", "device", *(name for name, _ in columns)]
    table = _row("th", heads) + "".join(_row("td", row) for row in rows[:_MOST])
    more = f"<p>… and {len(rows) - _MOST} rows more</p>" if len(rows) > _MOST else ""
    lines = "".join(f'<p style="margin:4px 0">{escape(visible(line))}</p>' for line in _lines(problem))
    return f"<div>{lines}<table>{table}</table>{more}</div>"


def _row(tag: str, cells: list[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(visible(cell))}</{tag}>' for cell in cells)}</tr>"


def _lines(problem: Problem) -> Iterator[str]:
    yield (
        f"{problem.name}: {size(problem)}, {problem.placement.stages} stages ({problem.placement.name}), "
        f"minimise {problem.objective.name}"
    )
    limits = [None if pool.capacity is None else memory_amount(problem, pool.capacity) for pool in problem.pools]
    if any(limit is not None for limit in limits):
        line = f"memory of a device ({problem.memory_unit}): {_alike([limit or 'unlimited' for limit in limits])}"
        static = [memory_amount(problem, level) for level in problem.static]
        yield f"{line}; of which static: {_alike(static)}" if any(problem.static) else line
    if len(problem.streams) > 1:
        yield f"streams of a device: {', '.join(problem.streams)}"
    if problem.walks.scale:
        yield f"factors of the micro-batches: {', '.join(plain(float(one)) for one in problem.walks.scale)}"


def _alike(texts: list[str]) -> str:
    """Return the texts joined by commas, or one if all are equal."""
    return ", ".join(texts[:1] if len({*texts}) == 1 else texts)


def _numbers(stages: list[StageId]) -> str:
    return str(stages[0]) if len(stages) == 1 else f"{stages[0]} – {stages[-1]}"


def _devices(problem: Problem, stages: list[StageId]) -> str:
    devices = [problem.placement.stage_device[s] for s in stages]
    inner = len(devices) - 1
    if inner and devices == list(range(devices[0], devices[0] + len(devices))):
        return f"{devices[0]} – {devices[-1]}"
    return ", ".join(map(str, devices))


def _columns(problem: Problem) -> list[tuple[str, Callable[[Stage], str]]]:
    """Return (heading, function from a stage to the text of its cell) for each quantity that some stage has."""

    def time(ticks: Ticks | None) -> str:
        return "" if ticks is None else amount(problem, ticks)

    def memory(level: MemorySteps) -> str:
        return memory_amount(problem, level)

    stages, unit = problem.stages, problem.memory_unit
    columns: list[tuple[str, Callable[[Stage], str], bool]] = [
        ("forward", lambda s: time(s.forward), True),
        ("backward", lambda s: time(s.backward), True),
        ("weight", lambda s: time(s.weight), problem.pipeline.splits),
        ("fused", lambda s: time(s.fused), problem.pipeline.splits),
        ("overlapped", lambda s: time(s.blocks.ticks), any(s.blocks.ticks is not None for s in stages)),
        ("overlapped saves", lambda s: time(s.blocks.saves), any(s.blocks.saves is not None for s in stages)),
        ("transfer", lambda s: time(s.transfer), any(s.transfer for s in stages)),
        (f"activation ({unit})", lambda s: memory(s.activation), True),
        (f"freed by backward ({unit})", lambda s: memory(s.freed), any(s.freed for s in stages)),
        (f"static ({unit})", lambda s: memory(s.static), any(s.static for s in stages)),
    ]
    return [(name, show) for name, show, shown in columns if shown]


_LEAST = 24  # slots that the picture is wide for, so that those of a short order are no wider than usual
_TOP, _BOTTOM = 0.06, 0.94  # of a device's row


def schedule_html(schedule: Schedule) -> str:
    """Return HTML with the orders as rows of passes, each slot as wide as any other, and a caption."""
    chunks = max((len(_stages(order)) for order in schedule.orders), default=1)
    cells = [cell for device, order in enumerate(schedule.orders) for cell in _cells(device, order, chunks)]
    names = [f"device {device}" for device in range(len(schedule.orders))]
    description = f"the order of {counted(len(schedule.columns), 'pass')} on {counted(len(names), 'device')}"
    most = max([_LEAST, *map(len, schedule.orders)])
    shades = [f"Chunk {number}" for number in range(chunks)]
    picture = svg(cells, names, float(most), [], description) + legend({p.kind for p in schedule.passes()}, shades)
    return framed(f"{schedule.name or 'schedule'}: {description}; simulate(problem, schedule) gives it times", picture)


_shade = cache(shade)


def _stages(order: tuple[Slot, ...]) -> list[StageId]:
    return sorted({p.stage for slot in order for p in slot})


def _cells(device: DeviceId, order: tuple[Slot, ...], chunks: int) -> Iterator[Cell]:
    """Yield the slots of a device as boxes, each 1 wide; the two passes of one slot are stacked.

    `chunks` is the largest number of stages on any device; each stage of a device has its own shade.
    """
    chunk_of = {stage: number for number, stage in enumerate(_stages(order))}
    for at, slot in enumerate(order):
        high = (_BOTTOM - _TOP) / len(slot)
        for number, p in enumerate(slot):
            top = device + _TOP + number * high
            colour = _shade(p.kind, chunk_of[p.stage], chunks)
            yield Cell(at, at + 1, top, top + high, colour, str(p.microbatch), str(p))


for write in (problem_html, schedule_html, timeline_html):
    html_of.register(write)
