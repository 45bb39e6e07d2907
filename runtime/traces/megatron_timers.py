"""Logs of Megatron-LM with timers, for every rank (`--timing-log-option all`) or summarised: totals of a step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from pipesched.errors import BadInput
from runtime.profiling.profile import Samples
from runtime.traces.catalogue import TRACES, Hints, TraceFormat
from runtime.traces.megatron_summary import TIMERS, read_summary, sizes_in
from runtime.traces.pipeline_trace import BlockTrace, PipelineTrace

_SECTION = re.compile(r"^\s*([\w-]+):\s*$")
_RANK = re.compile(r"^\s*rank\s+(\d+):\s*([\d.]+)\s*$")


def _recognises(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return any("across ranks (ms):" in line or line.lstrip().startswith("time (ms) |") for line in file)
    except (OSError, UnicodeDecodeError):
        return False


def _read(paths: Sequence[Path], hints: Hints) -> PipelineTrace | BlockTrace:
    """Return a trace with each device's time of a forward and of a backward.

    That is the step's total, divided by the number of micro-batches. Consecutive ranks are one device, whose time in a
    step is the median over them. A log without times by rank is read as a summary. `BadInput` if the log lacks these
    times, or the number of micro-batches is not known.
    """
    found: dict[tuple[str, int], list[float]] = {}
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    hints = sizes_in(lines, hints)
    for path in paths:
        timer = None
        for line in path.read_text(encoding="utf-8").splitlines():
            if section := _SECTION.match(line):
                timer = section[1]
            elif (rank := _RANK.match(line)) and timer in TIMERS:
                found.setdefault((timer, int(rank[1])), []).append(float(rank[2]) / 1000)
    ranks = 1 + max((rank for _, rank in found), default=-1)
    if not found and (summary := read_summary(lines, hints)) is not None:
        return summary
    if any((timer, rank) not in found for timer in TIMERS for rank in range(ranks)) or not ranks:
        raise BadInput(
            "found no forward-compute and backward-compute of each rank, of the last one or over ranks; allowed: logs "
            "with --timing-log-level 2 or more"
        )
    if hints.microbatches is None:
        raise BadInput("the log has totals a step; allowed: with --microbatches N, those of a step of one replica")
    devices = hints.devices or ranks
    if ranks % devices:
        raise BadInput(f"found {ranks} ranks; allowed: a multiple of the {devices} devices of --devices")
    per_device = ranks // devices
    times = {
        (kind, device): Samples(
            tuple(
                median(step) / hints.microbatches
                for step in zip(
                    *(found[timer, rank] for rank in range(device * per_device, (device + 1) * per_device)),
                    strict=False,
                )
            )
        )
        for timer, kind in TIMERS.items()
        for device in range(devices)
    }
    notes = [
        "a log has totals of a step: one stage a device, passes alike, no transfers and no memory",
        f"ranks {per_device * (devices - 1)} to {ranks - 1} are taken to be the last device" if per_device > 1 else "",
    ]
    return PipelineTrace(
        "megatron-timers", tuple(range(devices)), hints.microbatches, times, notes=tuple(filter(None, notes))
    )


TRACES.register(TraceFormat("megatron-timers", "logs of Megatron-LM with timers", _recognises, _read))
