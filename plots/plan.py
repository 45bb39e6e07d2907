"""The picture of a plan: layers on devices, memory of each device, time of each stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.problem.passes import BW, KINDS, RECOMPUTATIONS, REDUCE, STEP, UNSHARD, F
from pipesched.results.plan import PlanCandidate
from pipesched.results.plan_figures import DeviceMemory, StageRow, device_memory, stage_rows
from pipesched.schedule.drawing.colours import RGB
from plots.drawing.frame import Handle, legend_under_axis
from plots.drawing.memory_marks import AREA, CAP, OUTLINE, STATIC
from plots.render import Format, paper, saved

# Hues that no pass has.
_LAYERS = ("#7f8fa6", "#b279a2", "#c9b037", "#8c6d5a", "#5d5f8d", "#d39fb4", "#a9b18f")
_FORWARD, _BACKWARD, _AGAIN = (KINDS[kind].shades[0] for kind in (F, BW, RECOMPUTATIONS[0]))
_FOR_PARAMETERS = {
    key: KINDS[kind].shades[0] for key, kind in (("gather", UNSHARD), ("reduce", REDUCE), ("step", STEP))
}
_TEXT, _LINE = "#2b2b2b", "#ffffff"
_PARAMETERS, _ACTIVATIONS, _SAVED = STATIC, AREA, "#eef3f9"
_WIDTH = 12.0  # inches
_ROW = 0.34


def render_plan(plan: PlanProblem, best: PlanCandidate, format: Format = "png") -> bytes:
    """Return the image of a plan: layers on devices, memory of each device, time of each stage.

    Equal plans give equal bytes.
    """
    devices = best.timeline.problem.devices
    figure = paper(_WIDTH, max(3.2, 1.6 + _ROW * devices))
    rows, memory = stage_rows(plan, best), device_memory(plan, best)
    says_memory = any(one.parameters or one.activations or one.capacity is not None for one in memory)
    narrow = 1 + says_memory + plan.model.parameters.some
    layers, *others = figure.subplots(1, 1 + narrow, width_ratios=(2.2, *[1] * narrow))
    _draw_layers(plan, best, rows, layers)
    if says_memory:
        _draw_memory(plan, memory, others.pop(0))
    _draw_times(plan, rows, others.pop(0), devices)
    for axes in others:
        _draw_for_parameters(plan, rows, axes, devices)
    value = f"{plan.objective.name} {plain(float(best.value))} {plan.time_unit}".rstrip()
    figure.suptitle(f"{plan.name}: {best.choice}, {value}", x=0.01, ha="left", fontsize=12, parse_math=False)
    return saved(figure, format)


def _devices(axes: Axes, devices: int, title: str, named: bool = False) -> None:
    axes.set_ylim(devices - 0.5, -0.5)
    axes.set_yticks(range(devices), [f"Device {d}" for d in range(devices)] if named else [])
    axes.tick_params(axis="y", length=0)
    axes.set_title(title, loc="left", fontsize=10)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _colour(number: int) -> RGB:
    """Return the colour of the layer type of this number in the legend; after the last hue they repeat, lighter."""
    times, at = divmod(number, len(_LAYERS))
    red, green, blue = (1 - (1 - part) * 0.5**times for part in to_rgb(_LAYERS[at]))
    return red, green, blue


def _draw_layers(plan: PlanProblem, best: PlanCandidate, rows: Sequence[StageRow], axes: Axes) -> None:
    """Draw layers as wide as their time, the stages of a device one after another.

    Recomputed layers are marked underneath.
    """
    types = {one.name: one for row in rows for one, _ in row.runs}
    times = {name: float(one.forward + one.full_backward) for name, one in types.items()}
    slow = [float(plan.all_devices.slowness_of(device)) for device in range(best.timeline.problem.devices)]
    most = max(sum(times[one.name] * number for one, number in row.runs) * slow[row.device] for row in rows)
    # What takes no time is drawn all the same, as a line.
    widths = {name: max(time, 0.004 * most) if most else 1.0 for name, time in times.items()}
    gap = 0.03 * (most or 8)
    colours = {name: _colour(n) for n, name in enumerate(dict.fromkeys([*(k.name for k in plan.model.kinds), *types]))}
    right = [0.0] * best.timeline.problem.devices
    for row in rows:
        x, left = right[row.device], dict(row.again)
        axes.text(x, row.device - 0.43, f"stage {row.stage}", fontsize=6, color=_TEXT, va="top")
        for name in (one.name for one, number in row.runs for _ in range(number)):
            wide = widths[name] * slow[row.device]
            axes.barh(row.device + 0.1, wide, 0.5, left=x, color=colours[name], edgecolor=_LINE, linewidth=0.6)
            if left.get(name, 0) > 0:
                left[name] -= 1
                axes.barh(row.device + 0.42, 0.9 * wide, 0.1, left=x + 0.05 * wide, color=_AGAIN)
            x += wide
        right[row.device] = x + gap
    _devices(axes, len(right), "Layers, as wide as they take time", named=True)
    axes.set_xlim(0, max(right))
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    handles: list[tuple[Handle, str]] = [(Patch(color=colour), name) for name, colour in colours.items()]
    if any(best.partition.recompute):
        handles.append((Patch(color=_AGAIN), "recomputed"))
    legend_under_axis(axes, handles)


def _draw_memory(plan: PlanProblem, found: Sequence[DeviceMemory], axes: Axes) -> None:
    """Draw for each device parameters and activations at the peak, then what recomputation saves, and the capacity."""
    for device, one in enumerate(found):
        parameters, activations, spared = float(one.parameters), float(one.activations), float(one.saved)
        axes.barh(device, parameters, 0.6, color=_PARAMETERS)
        axes.barh(device, activations, 0.6, left=parameters, color=_ACTIVATIONS)
        if spared:
            axes.barh(device, spared, 0.6, left=parameters + activations, color=_SAVED, edgecolor=OUTLINE, lw=0.6)
        if one.capacity is not None:
            axes.plot([float(one.capacity)] * 2, [device - 0.4, device + 0.4], color=CAP, linewidth=1.5)
    _devices(axes, len(found), "Memory at the peak")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(3))  # numbers of five digits and more need the room
    axes.set_xlabel(plan.cluster.memory_unit, parse_math=False)
    handles: list[tuple[Handle, str]] = [
        (Patch(color=_PARAMETERS), "parameters"),
        (Patch(color=_ACTIVATIONS), f"activations{' and gathered' if plan.model.parameters.gather else ''}"),
    ]
    if any(one.saved for one in found):
        handles.append((Patch(facecolor=_SAVED, edgecolor=OUTLINE), "saved by recomputing"))
    if any(one.capacity is not None for one in found):
        handles.append((Line2D([], [], color=CAP, linewidth=1.5), "capacity"))
    legend_under_axis(axes, handles)


def _draw_times(plan: PlanProblem, rows: Sequence[StageRow], axes: Axes, devices: int) -> None:
    """Draw forward, backward and recomputation of one micro-batch as bars in the row of each device, stage after stage.

    `devices` is the number of rows.
    """
    bars = []
    for row in rows:
        again = float(row.costs.recomputation)
        split = row.costs.backward + (row.costs.weight or 0)
        backward = float(min(row.costs.fused, split)) - again
        forward = float(row.costs.forward)
        bars += [(row.device, forward, _FORWARD), (row.device, backward, _BACKWARD), (row.device, again, _AGAIN)]
    colours = {"forward": _FORWARD, "backward": _BACKWARD, "recomputation": _AGAIN}
    if not any(row.costs.recomputation for row in rows):
        del colours["recomputation"]
    _draw_bars(plan, axes, devices, "Time of a micro-batch", bars, colours)


def _draw_for_parameters(plan: PlanProblem, rows: Sequence[StageRow], axes: Axes, devices: int) -> None:
    """Draw the time of gatherings, reductions and optimizer steps by stage.

    `devices` is the number of rows.
    """
    parameters = plan.model.parameters
    colours = {
        name: _FOR_PARAMETERS[name] for name, one in zip(parameters._fields, parameters, strict=True) if one is not None
    }
    bars = [(row.device, float(getattr(row.costs, name)), colour) for name, colour in colours.items() for row in rows]
    _draw_bars(plan, axes, devices, "Time for parameters", bars, colours)


def _draw_bars(
    plan: PlanProblem,
    axes: Axes,
    devices: int,
    title: str,
    bars: Sequence[tuple[int, float, str]],
    colours: Mapping[str, str],
) -> None:
    """Draw horizontal bars of (device, time, colour), those of one device next to each other.

    `colours` are the legend's.
    """
    right = [0.0] * devices
    for device, length, colour in bars:
        if length:
            axes.barh(device, length, 0.6, left=right[device], color=colour, edgecolor=_LINE, linewidth=0.6)
        right[device] += length
    _devices(axes, devices, title)
    axes.set_xlim(0, max(right) or 1)
    axes.set_xlabel(plan.time_unit or "time", parse_math=False)
    legend_under_axis(axes, [(Patch(color=colour), name) for name, colour in colours.items()])
