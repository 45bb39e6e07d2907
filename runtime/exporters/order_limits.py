"""Refusals that exporters share: placements which a runtime cannot run, with formats that can express them."""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.problem.passes import F, PassKind
from pipesched.problem.placement import Placement
from pipesched.problem.quantities import MicrobatchId, StageId
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline

# What can express every schedule.
ANYTHING = "program"


def one_chain(name: str, runtime: str, placement: Placement) -> None:
    """Raise `BadInput` if a stage is on several devices, or micro-batches visit stages out of number order.

    `name` (the format) and `runtime` are for the message.
    """
    if len(placement.chains) > 1:
        raise BadInput(
            f"{name}: in a placement of {len(placement.chains)} chains several devices hold a stage, and {runtime} "
            f"takes a stage on one device only; {ANYTHING} can express it"
        )
    if placement.chains[0] != tuple(range(placement.stages)):
        walk = ", ".join(map(str, placement.chains[0]))
        raise BadInput(
            f"{name}: micro-batches visit the stages in the order {walk}, and {runtime} sends from a stage to the one "
            f"numbered next only; number the stages in that order, or use {ANYTHING}"
        )


def every_device_works(name: str, runtime: str, placement: Placement) -> None:
    """Raise `BadInput` for placements with a device that has no stage.

    `name` (the format) and `runtime` are for the message.
    """
    idle = [str(device) for device, stages in enumerate(placement.stages_of) if not stages]
    if idle:
        raise BadInput(
            f"{name}: device {', '.join(idle)} holds no stage, and {runtime} needs at least one on every device; "
            f"leave the device out of the problem, or use {ANYTHING}"
        )


def order_of(schedule: Schedule, stage: StageId, *kinds: PassKind) -> tuple[MicrobatchId, ...]:
    """Return the micro-batches of one stage's passes of these `kinds`, in the order in which its device runs them."""
    return tuple(p.microbatch for p in schedule.passes() if p.stage == stage and p.kind in kinds)


def labels(timeline: Timeline, stage: StageId) -> tuple[int, ...]:
    """Return the new number of each micro-batch with which the forwards of `stage` run in the order 0, 1, 2, ...

    Entry j is the new number of micro-batch j; `KeyError` if one does not visit the stage, as with several chains.
    Micro-batches may be renumbered freely: a number only selects the slice of the batch.
    """
    label_of = {microbatch: label for label, microbatch in enumerate(order_of(timeline.schedule, stage, F))}
    return tuple(label_of[microbatch] for microbatch in range(timeline.problem.microbatches))
