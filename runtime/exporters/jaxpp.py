"""Exporter of Python modules for JaxPP: a subclass of its `BaseSchedule` that returns the schedule's tasks.

JaxPP takes any placement, and adds the transfers itself. Its carries follow the micro-batches, so F, B and W of every
stage must each take them in ascending order (weight passes are renumbered, which changes nothing else). It has no
separate B of the first stage: W must directly follow it there (its "Schedule does not honor data dependencies" and its
check of the first stage say so).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pipesched.deadline import SHORT, asking
from pipesched.errors import BadInput
from pipesched.problem.passes import BW, B, F, Pass, Slot, W
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.timeline import Timeline
from pipesched.version import VERSION
from runtime.exporters.catalogue import EXPORTERS, Exporter, Files, Settings
from runtime.exporters.order_limits import ANYTHING, every_device_works, labels, one_chain
from runtime.lowering.deadlock import proved
from runtime.lowering.programs import lower
from runtime.lowering.weight_order import weight_microbatches

_NAME, _SUFFIX = "jaxpp", ".jaxpp.py"
_ELSE = f"torch-csv and {ANYTHING} can express it"

# A letter of JaxPP's tasks, stage, and micro-batch in its numbers.
_Task: TypeAlias = tuple[str, int, int]

_MODULE = '''# schedule {schedule!a} of problem {problem!a}, by pipesched {version}
"""A pipeline schedule for JaxPP.

Pass `Schedule()` where JaxPP takes a schedule. Each row holds one device's tasks: kind, stage, dot, micro-batch; F is
FWD, I and W are BWD_I and BWD_W, B is BWD, and tasks joined by & are one FusedTask.
{proof}
"""

from dataclasses import dataclass

from jaxpp.schedules import BaseSchedule, FusedTask, Task
from jaxpp.types import MpmdIdx, TaskType

DEVICE_OF_STAGE = {devices!r}
MICROBATCHES = {microbatches}
ROWS = (
{rows}
)
KINDS = {{"F": TaskType.FWD, "B": TaskType.BWD, "I": TaskType.BWD_I, "W": TaskType.BWD_W}}


@dataclass(eq=True, frozen=True)
class Schedule(BaseSchedule):
    num_stages: int = len(DEVICE_OF_STAGE)

    def __post_init__(self):
        super().__post_init__()
        if self.num_stages != len(DEVICE_OF_STAGE):
            raise ValueError(f"this schedule has {{len(DEVICE_OF_STAGE)}} stages, not {{self.num_stages}}")
        object.__setattr__(self, "is_partial_bwd", {partial})

    def get_mpmd_idx(self, stage_id):
        return MpmdIdx(DEVICE_OF_STAGE[stage_id])

    def tasks(self, n_mubatches):
        if n_mubatches != MICROBATCHES:
            raise ValueError(f"this schedule has {{MICROBATCHES}} micro-batches, not {{n_mubatches}}")
        return [[_fused(word) for word in row.split()] for row in ROWS]


def _fused(word):
    tasks = [_task(part) for part in word.split("&")]
    return tasks[0] if len(tasks) == 1 else FusedTask(tasks)


def _task(word):
    stage, microbatch = word[1:].split(".")
    return Task.make(int(stage), int(microbatch), KINDS[word[0]])
'''


def _write(timeline: Timeline, _: Settings) -> Files:
    placement, tasks = timeline.problem.placement, _tasks(timeline)
    rows = (" ".join(_words(timeline, tasks, device)) for device in range(placement.devices))
    text = _MODULE.format(
        schedule=timeline.schedule.name,
        problem=timeline.problem.name,
        version=VERSION,
        proof=_proof(timeline),
        devices=placement.stage_device,
        microbatches=timeline.problem.microbatches,
        rows="\n".join(f'    "{row}",' for row in rows),
        partial=_is_partial(timeline),
    )
    return {_SUFFIX: text}


def _refuse(timeline: Timeline) -> None:
    placement = timeline.problem.placement
    one_chain(_NAME, "JaxPP", placement)
    every_device_works(_NAME, "JaxPP", placement)
    tasks = _tasks(timeline)
    _refuse_order(timeline, tasks)
    _refuse_lone_first_backward(timeline, tasks)


def _is_partial(timeline: Timeline) -> bool:
    """Return True if any backward is split; JaxPP then splits all of them."""
    return any(p.kind is B for p in timeline.schedule.passes())


def _words(timeline: Timeline, tasks: dict[Pass, list[_Task]], device: DeviceId) -> Iterator[str]:
    for slot in asking(timeline.schedule.orders[device], SHORT):
        groups: list[Slot] = [slot] if timeline.in_block(slot[0]) else [(p,) for p in slot]
        for group in groups:
            words = [f"{letter}{stage}.{microbatch}" for p in group for letter, stage, microbatch in tasks[p]]
            yield from ["&".join(words)] if len(group) > 1 else words


def _tasks(timeline: Timeline) -> dict[Pass, list[_Task]]:
    """Return by pass its JaxPP tasks, with Ws renumbered so that they follow the order of the Bs.

    Each is (letter, stage, micro-batch); micro-batches are numbered as stage 0 runs their forwards. If any backward is
    split, a fused one becomes two tasks, I and W.
    """
    partial, label = _is_partial(timeline), labels(timeline, 0)
    taken = weight_microbatches(timeline.schedule, fused=partial)
    letters = {F: "F", B: "I", W: "W", BW: "IW" if partial else "B"}
    return {
        p: [(x, p.stage, label[taken[p] if x == "W" else p.microbatch]) for x in letters[p.kind]]
        for p in asking(timeline.schedule.passes(), SHORT)
    }


def _refuse_order(timeline: Timeline, tasks: dict[Pass, list[_Task]]) -> None:
    ran: dict[tuple[str, int], list[int]] = {}
    for p in timeline.schedule.passes():
        for letter, stage, microbatch in tasks[p]:
            ran.setdefault((letter, stage), []).append(microbatch)
    for (letter, stage), found in ran.items():
        if found != sorted(found):
            word = "B" if letter == "I" else letter
            raise BadInput(
                f"{_NAME}: {word} of stage {stage} takes the micro-batches, numbered as stage 0 runs them forwards, in "
                f"the order {', '.join(map(str, found))}; JaxPP needs them ascending on every stage; {_ELSE}"
            )


def _refuse_lone_first_backward(timeline: Timeline, tasks: dict[Pass, list[_Task]]) -> None:
    passes = list(timeline.schedule.passes_on(timeline.problem.placement.stage_device[0]))
    ran = [(p, task) for p in passes for task in tasks[p]]
    for (p, (letter, stage, microbatch)), (following, task) in zip(ran, [*ran[1:], (None, None)], strict=True):
        if letter == "I" and stage == 0 and task != ("W", 0, microbatch):
            raise BadInput(
                f"{_NAME}: {p} is followed by {following or 'nothing'}; JaxPP cannot split the first stage's backward "
                f"and needs its W directly after it; fuse the backwards of stage 0, or use torch-csv or {ANYTHING}"
            )


def _proof(timeline: Timeline) -> str:
    return proved(_NAME, lower(timeline)) + ", with our sends and receives; JaxPP places its own"


def _notes(timeline: Timeline) -> list[str]:
    kinds = {p.kind for p in timeline.schedule.passes()}
    if {B, BW} <= kinds:
        return ["JaxPP splits every backward or none: a BW is written as its B and W, and its gradient leaves after B."]
    return []


EXPORTERS.register(
    Exporter(
        name=_NAME,
        description="JaxPP: a Python module with a subclass of its BaseSchedule",
        suffix=_SUFFIX,
        write=_write,
        refuse=_refuse,
        warnings=_notes,
        proof=_proof,
    )
)
