"""Threshold bounds where stages are tasks: the weight tasks of one original stage occupy its memory together.

For mixture-of-experts layers, for example, attention, dispatch, experts and combine are stages of their own
(`solver.tasks.as_stages`), and the one with the activation frees it with its own weight task. In the original problem W
frees the memory that B leaves only when all of its tasks have ended. So a micro-batch with any of them pending occupies
memory from the end of its B on. Before that its activation is in use anyway, and the weight tasks of earlier parts of
its B need no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event

import numpy as np

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, TickArray
from pipesched.results.certificate import Certificate
from solver.diagram.by_device import bounds_by_device
from solver.diagram.params import DIAGRAMS
from solver.diagram.steps import ModelledSteps
from solver.diagram.threshold_bounds import bounds_of_devices
from solver.diagram.threshold_search import Open, ThresholdSearch


def bounds_of_joint_weights(
    plain: Problem, stage_of: Sequence[StageId], stop: Event, open_ticks: Open, work: int = DIAGRAMS.most_labels
) -> Iterator[Certificate]:
    """Yield certificates of increasing value, each above the bound proved so far.

    `stage_of` maps each stage of the problem `plain`, in which tasks are stages, to its original stage. `open_ticks`
    returns the proved bound and the best schedule's value in ticks of `plain`, which must be finite; `work` is the
    number of labels that may be looked at.
    """
    search = _JointSearch(plain, stop, open_ticks, work=work)
    search.stage_of = stage_of
    for found in (bounds_by_device(search), bounds_of_devices(search)):
        yield from (one for one in found if one.value_ticks > open_ticks()[0])


def has_joint_weights(plain: Problem, stage_of: Sequence[StageId]) -> bool:
    """True if several weight tasks of one original stage run on one device with limited memory.

    `stage_of` maps each stage of the problem `plain`, in which tasks are stages, to its original stage.
    """
    seen = set[tuple[int, int]]()
    for number, stage in enumerate(plain.stages):
        device = plain.placement.stage_device[number]
        if stage.weight and plain.room[device] is not None:
            if (stage_of[number], device) in seen:
                return True
            seen.add((stage_of[number], device))
    return False


class _JointSearch(ThresholdSearch):
    """Threshold search over steps in which weight tasks of one original stage (`stage_of`) occupy memory together."""

    stage_of: Sequence[StageId] = ()

    def kept(self, stages: Sequence[StageId], owner: DeviceId | None) -> ModelledSteps | None:
        """Return the steps to model for these stages, weight tasks joint.

        None where numbers are too large, or nothing fits the memory. `owner` is the device whose span counts, None for
        the makespan or from the first forward of the only chain.
        """
        kept = super().kept(stages, owner)
        return None if kept is None else with_joint_weights(kept, self.problem, self.stage_of)


def with_joint_weights(kept: ModelledSteps, plain: Problem, stage_of: Sequence[StageId]) -> ModelledSteps:
    """Return the steps with the weight tasks of one original stage on one device joined; `kept` stays as it is.

    They free their memory together. From the end of the gradient task whose stage in `plain` has the activation, the
    memory is in use until all of them have run. `stage_of` maps each stage of `plain`, in which tasks are stages, to
    its original stage.
    """
    steps, passes = kept.steps, kept.passes
    stage_of_pass = [stage_of[one.stage] for one in passes]
    with_activation = {
        (stage_of_pass[n], steps.device[n]): n
        for n, one in enumerate(passes)
        if not one.forward and plain.stages[one.stage].activation > 0
    }
    holder, ticks = steps.holder.copy(), np.zeros_like(steps.later)
    for n in np.flatnonzero(steps.later > 0).tolist():
        holder[n] = with_activation.get((stage_of_pass[n], steps.device[n]), n)
        ticks[holder[n]] += steps.later[n]
    waiting = np.array([_least_pending_memory(kept, plain, ticks, device) for device in range(len(steps.room))])
    longest = np.array([ticks[steps.device == device].max() for device in range(len(steps.room))])
    early = bool((holder != steps.holder).any())
    joint = steps._replace(holder=holder, waiting=waiting, longest=longest, early=early)
    return kept._replace(steps=joint, joint=True)


def _least_pending_memory(kept: ModelledSteps, plain: Problem, ticks: TickArray, device: int) -> MemorySteps:
    """Return the least memory that a pending weight task occupies on a device; 0 if some of them occupy none.

    `ticks` has for each step the ticks of weight tasks that occupy memory from this gradient on; `device` is an index
    in `kept.steps.room`.
    """
    own = [plain.stages[kept.passes[n].stage] for n in np.flatnonzero((ticks > 0) & (kept.steps.device == device))]
    return max(0, min((one.activation - one.freed for one in own), default=0))
