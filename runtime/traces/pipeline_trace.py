"""A trace as it was read: the passes of every device with their times, or the annotated blocks of one device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipesched.errors import BadInput
from pipesched.measurement.trace import MeasuredPass, Step
from pipesched.problem.network.task_network import PassType
from pipesched.problem.passes import F, Pass, PassKind
from pipesched.problem.quantities import DeviceId, StageId
from runtime.profiling.profile import Samples


class RanPass(NamedTuple):
    """An executed pass: start and end in seconds of a clock that all devices share, and the net bytes that it took.

    `memory` is None if it was not recorded.
    """

    of: Pass
    start: float
    end: float
    memory: int | None = None


@dataclass(frozen=True)
class PipelineTrace:
    """A trace of a pipeline's run: samples of the times, and of the memory, of each kind of pass on each stage.

    Keys of `times` (seconds) and `memory` (net bytes taken) are (kind, stage). `transfers[s]` are seconds between
    stages s and s + 1, in either direction; there is no entry where none was measured. `peaks` are bytes by device,
    None if not recorded for all. `steps[k][d]` are the passes of device d in step k, in order, in seconds from the
    first start of the step; only complete steps are there, none if a format has only totals. `form` is the name of the
    format; `notes` say what could not be read or was assumed.
    """

    form: str
    stage_device: tuple[DeviceId, ...]
    microbatches: int
    times: Mapping[PassType, Samples]
    steps: tuple[Step, ...] = ()
    transfers: Mapping[StageId, Samples] = field(default_factory=dict)
    memory: Mapping[PassType, Samples] = field(default_factory=dict)
    peaks: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()


class Block(NamedTuple):
    """A part of one layer's forward (F), backward (B) or weight pass (W): its name, stream and seconds."""

    kind: PassKind
    name: str
    stream: str
    seconds: float


@dataclass(frozen=True)
class BlockTrace:
    """The annotated blocks of one device, in the order of launch.

    `form` is the format's name, and notes say what is missing.
    """

    form: str
    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()


def assembled(
    form: str, rows: Sequence[Sequence[RanPass]], notes: Iterable[str] = (), peaks: Sequence[int] | None = None
) -> PipelineTrace:
    """Return the trace of a run, given the passes of every device in execution order; incomplete steps are left out.

    `form` is the trace's format, and `notes` say what could not be read; `peaks` are bytes of each device, ignored
    unless there is one for each. Raises `BadInput` if a stage has no pass, or no step is complete.
    """
    where = {one.of.stage: device for device, row in enumerate(rows) for one in row}
    stages = len(where)
    if sorted(where) != list(range(stages)) or not stages:
        missing = next(stage for stage in range(stages + 1) if stage not in where)
        raise BadInput(f"found no pass of stage {missing}; allowed: the traces of all devices of the pipeline")
    all_notes = list(notes)
    steps = _whole_steps([_steps(row) for row in rows], all_notes)
    times: dict[tuple[PassKind, int], list[float]] = {}
    memory: dict[tuple[PassKind, int], list[float]] = {}
    for one in (one for step in steps for row in step for one in row):
        times.setdefault((one.of.kind, one.of.stage), []).append(one.end - one.start)
        if one.memory is not None:
            memory.setdefault((one.of.kind, one.of.stage), []).append(float(one.memory))
    transfers = _transfers(steps, where)
    devices = len(rows)
    silent = [s for s in range(stages - 1) if where[s] != where[s + 1] and s not in transfers]
    if silent:
        all_notes.append(f"no transfer after stage {', '.join(map(str, silent))} was waited for: taken as 0")
    return PipelineTrace(
        form,
        tuple(where[stage] for stage in range(stages)),
        1 + max(one.of.microbatch for step in steps for row in step for one in row),
        {key: Samples(tuple(found)) for key, found in times.items()},
        tuple(map(_measured, steps)),
        {stage: Samples(tuple(found)) for stage, found in transfers.items()},
        {key: Samples(tuple(found)) for key, found in memory.items()},
        tuple(peaks) if peaks is not None and len(peaks) == devices else None,
        tuple(all_notes),
    )


_Rows = list[list[RanPass]]


def _steps(row: Sequence[RanPass]) -> _Rows:
    """Return a device's passes step by step: a step begins where a pass repeats."""
    steps: _Rows = [[]]
    seen: set[Pass] = set()
    for one in row:
        if one.of in seen:
            steps.append([])
            seen = set()
        seen.add(one.of)
        steps[-1].append(one)
    return steps


def _whole_steps(found: Sequence[_Rows], notes: list[str]) -> list[_Rows]:
    """Return the steps in which every device has all passes that it has in its fullest step, each as rows of devices.

    A note says how many are left out. `BadInput` if none is left.
    """
    most = [max((frozenset(one.of for one in step) for step in steps), key=len) for steps in found]
    number = min(map(len, found))
    whole = [
        [steps[at] for steps in found]
        for at in range(number)
        if all(frozenset(one.of for one in steps[at]) == passes for steps, passes in zip(found, most, strict=True))
    ]
    left_out = max(map(len, found)) - len(whole)
    if left_out:
        notes.append(f"{left_out} of {max(map(len, found))} steps are not whole on every device: left out")
    if not whole:
        raise BadInput("found no step that is whole on every device; allowed: traces of the same steps")
    return whole


def _measured(step: _Rows) -> Step:
    begin = min(one.start for row in step for one in row)
    return tuple(tuple(MeasuredPass(one.of, one.start - begin, one.end - begin) for one in row) for row in step)


def _transfers(steps: Iterable[_Rows], where: Mapping[StageId, DeviceId]) -> dict[StageId, list[float]]:
    """Return samples of transfer times in seconds, by the earlier of the two stages.

    `where[s]` is the device of stage s. A sample is the time from the end of a pass to the start of one on another
    device that waited for its tensor, idle.
    """
    found: dict[int, list[float]] = {}
    for step in steps:
        ended = {one.of: one.end for row in step for one in row}
        for row in step:
            free = float("-inf")
            for one in row:
                before = _sender(one.of, ended)
                if before is not None and where[before.stage] != where[one.of.stage] and free <= ended[before]:
                    found.setdefault(min(before.stage, one.of.stage), []).append(max(0.0, one.start - ended[before]))
                free = one.end
    return found


def _sender(p: Pass, ran: Mapping[Pass, float]) -> Pass | None:
    """Return the pass of another stage whose tensor `p` takes; None if it takes none, or that pass is not in `ran`."""
    if p.kind is PassKind.W:
        return None
    kinds = (F,) if p.kind is F else (PassKind.B, PassKind.BW)
    stage = p.stage - 1 if p.kind is F else p.stage + 1
    return next((Pass(kind, stage, p.microbatch) for kind in kinds if Pass(kind, stage, p.microbatch) in ran), None)
