"""Megatron's timers in logs without times by rank: the last rank's alone, or least and most over ranks.

Lines are `time (ms) | forward-compute: 1.00 | …` of the last rank, or after `(min, max) time across ranks (ms):` and
`max time across ranks (ms):` one timer a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import median

from pipesched.errors import BadInput
from pipesched.problem.passes import BW, F, PassKind
from runtime.profiling.profile import Samples
from runtime.traces.catalogue import Hints
from runtime.traces.pipeline_trace import PipelineTrace

TIMERS = {"forward-compute": F, "backward-compute": BW}
_SHOWN = 4  # lines printed of a log's many
_DEVICES = re.compile(r"pipeline[-_]model[-_]parallel(?:[-_ ]size)?(?::| \.{2,}) *(\d+)")
_MICROBATCHES = re.compile(r"setting number of micro-?batches to(?: constant)? (\d+)")
_FIELD = re.compile(r"\|\s*(forward-compute|backward-compute):\s*([\d.]+)")
_EXTREMES = re.compile(r"^\s*(forward-compute|backward-compute) ?\.*:\s*\(([\d.]+),\s*([\d.]+)\)\s*$")
_MOST = re.compile(r"^\s*(forward-compute|backward-compute) ?\.+:\s*([\d.]+)\s*$")


def sizes_in(lines: Iterable[str], hints: Hints) -> Hints:
    """Return the hints, with pipeline devices and micro-batches filled in from the log where they are missing.

    `lines` are those of the log.
    """
    text = "\n".join(lines)
    devices, microbatches = _DEVICES.search(text), _MICROBATCHES.search(text)
    return Hints(
        hints.devices or (int(devices[1]) if devices else None),
        hints.microbatches or (int(microbatches[1]) if microbatches else None),
        hints.snapshots,
    )


def read_summary(lines: Sequence[str], hints: Hints) -> PipelineTrace | None:
    """Return the pipeline by the times of its last rank, or by the extremes over ranks; None if the log has neither.

    `lines` are the lines of the log, whose times are totals of a step in ms; they are divided by the number of
    micro-batches. Extremes are preferred: the last device is assumed to have the longest times, since it has the head,
    and every other device the shortest. Where the log has one time, of the last rank or the longest over ranks, every
    device has it. `BadInput` if the numbers of devices or micro-batches are known neither from the log nor from
    `hints`.
    """
    last: dict[PassKind, list[tuple[float, float]]] = {}
    extremes: dict[PassKind, list[tuple[float, float]]] = {}
    used: list[str] = []
    for line in lines:
        fields = [(name, value, value) for name, value in _FIELD.findall(line)]
        wide = [(match[1], match[2], match[3]) for match in (_EXTREMES.match(line),) if match]
        most = [(match[1], match[2], match[2]) for match in (_MOST.match(line),) if match]
        for into, found in ((last, fields), (extremes, wide), (extremes, most)):
            for name, least, longest in found:
                into.setdefault(TIMERS[name], []).append((float(least) / 1000, float(longest) / 1000))
        if fields or wide or most:
            used.append(line.strip())
    chosen = extremes if len(extremes) == len(TIMERS) else last
    if len(chosen) < len(TIMERS):
        return None
    missing = []
    if hints.devices is None:
        missing.append("the log does not say the devices of the pipeline; allowed: with --devices N")
    if hints.microbatches is None:
        missing.append("the log has totals a step; allowed: with --microbatches N, those of a step of one replica")
    if hints.devices is None or hints.microbatches is None:
        raise BadInput(*missing)
    times = {
        (kind, device): Samples(tuple(pair[device == hints.devices - 1] / hints.microbatches for pair in chosen[kind]))
        for kind in TIMERS.values()
        for device in range(hints.devices)
    }
    same = median(one for one, _ in chosen[F]) == median(other for _, other in chosen[F])
    assumed = (
        "assumed: every device takes the time printed, of the last rank or the longest over ranks"
        if same
        else "assumed: the last device takes the longest time over ranks, every other the shortest"
    )
    notes = (
        "a log has totals of a step: one stage a device, passes alike, no transfers and no memory",
        assumed,
        *(f"used: {line[:160]}" for line in used[:_SHOWN]),
        *([f"used: {len(used) - _SHOWN} more lines like these"] if len(used) > _SHOWN else []),
    )
    return PipelineTrace("megatron-timers", tuple(range(hints.devices)), hints.microbatches, times, notes=notes)
