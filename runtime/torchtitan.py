"""Writes a schedule for torchtitan: its settings as TOML, and the CSV they name.

torchtitan 0.3 loads the CSV as PyTorch's compute-only format, but builds the stages from the name of a schedule that
torch registers: two stages a device in a V for `ZBVZeroBubble`, in a loop for every other name. A name that builds
other stages than the CSV uses does not fail, it hangs: hence the checks here.
"""

from __future__ import annotations

import json
import shlex

from pipesched.errors import BadInput
from pipesched.placement import interleaved, v_shape
from pipesched.timeline import Timeline
from runtime.catalogue import EXPORTERS, Exporter, Files, Option, Settings
from runtime.torch_csv import proof, write
from runtime.torch_csv_cells import notes, refuse

_NAME, _SUFFIX, _CSV = "torchtitan", ".torchtitan.toml", ".csv"


def _write(timeline: Timeline, settings: Settings) -> Files:
    problem = timeline.problem
    refuse(_NAME, problem.placement)
    name = _schedule_name(timeline)
    chunks = problem.placement.stages // problem.devices
    size = _whole(settings, "microbatch-size", 1)
    parallelism: dict[str, object] = {
        "pipeline_parallel_degree": problem.devices,
        "pipeline_parallel_schedule": name,
        "pipeline_parallel_schedule_csv": settings["stem"] + _CSV,
        "pipeline_parallel_microbatch_size": size,
    }
    layers = _layers_per_stage(settings, problem.placement.stages, needed=chunks > 2)
    if layers is not None:
        parallelism["pipeline_parallel_layers_per_stage"] = layers
    tables: dict[str, dict[str, object]] = {"training": {"local_batch_size": problem.microbatches * size}}
    tables["parallelism"] = parallelism
    flags = " ".join(
        f"--{table}.{key} {shlex.quote(str(value))}" for table, rows in tables.items() for key, value in rows.items()
    )
    lines = [
        "# Settings for torchtitan 0.3: add them to a training configuration, or give them as flags:",
        *(f"# {line}" for line in flags.splitlines()),
        "# The path of the CSV is seen from where the trainer is started.",
    ]
    if settings["layers"] and layers is None:
        lines.append(
            "# No pipeline_parallel_layers_per_stage: none gives this many stages; torchtitan shares layers out."
        )
    for table, rows in tables.items():
        lines += [f"[{table}]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in rows.items())]
    return {_SUFFIX: "\n".join(lines) + "\n"} | write(timeline, settings)


def _schedule_name(timeline: Timeline) -> str:
    """A name torch registers whose stages stand where this placement's do."""
    placement = timeline.problem.placement
    chunks, rest = divmod(placement.stages, placement.devices)
    if not rest and placement.stage_device == interleaved(placement.devices, chunks).stage_device:
        return "1F1B" if chunks == 1 else "Interleaved1F1B"
    if placement.stage_device == v_shape(placement.devices).stage_device:
        return "ZBVZeroBubble"
    where = ", ".join(map(str, placement.stage_device))
    raise BadInput(
        f"{_NAME}: found stages on devices {where}; torchtitan builds a loop (stage s on device s mod "
        f"{placement.devices}) or a V of two stages a device; torch-csv can express it in a trainer of your own"
    )


def _layers_per_stage(settings: Settings, stages: int, needed: bool) -> int | None:
    """The setting from which torchtitan computes this number of stages; embedding and head count as a layer each.

    None where it is not `needed`, as torchtitan makes one or two stages a device by itself, and not given or not to be
    had: stages of one number of layers do not always add up to this many.
    """
    if not settings["layers"]:
        if not needed:
            return None
        raise BadInput(
            f"{_NAME}: torchtitan computes the number of stages from the model's layers where a device holds more than "
            "two; give the number of its transformer layers: --option layers=N"
        )
    layers = _whole(settings, "layers", 1) + 2
    size = -(-layers // stages)
    if -(-layers // size) == stages:
        return size
    if needed or layers < stages:
        raise BadInput(
            f"{_NAME}: found layers={layers - 2}; with embedding and head torchtitan cannot cut {layers} layers into "
            f"{stages} stages of {size}; allowed: layers for which it can, such as {stages * size - 2}"
        )
    return None


def _whole(settings: Settings, name: str, least: int) -> int:
    text = settings[name]
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise BadInput(f"{_NAME}: found {name}={text}; allowed: a whole number from {least}")
    return int(text)


def _notes(timeline: Timeline) -> list[str]:
    return [
        "torchtitan divides the loss by the micro-batches and sums their gradients: leave its scale_grads=False.",
        *notes(timeline),
    ]


EXPORTERS.register(
    Exporter(
        name=_NAME,
        description="torchtitan: its settings (TOML) and the CSV they name",
        suffix=_SUFFIX,
        write=_write,
        warnings=_notes,
        proof=proof,
        options=(
            Option("microbatch-size", "sequences in a micro-batch", "1"),
            Option("layers", "transformer layers of the model; needed for more than two stages a device", ""),
        ),
    )
)
