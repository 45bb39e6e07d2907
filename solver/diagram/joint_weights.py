"""Threshold bounds where stages are tasks: the weight tasks of one stage of the problem hold its memory together.

Of layers of experts, say, attention, dispatch, experts and combine are stages of their own (`solver.tasks.as_stages`),
and the one with the activation gives it back with its own weight task. In the problem W gives back what B has left only
when all of its tasks have ended. So a micro-batch with any of them pending holds memory from the end of its B on.
Before that its activation is in use anyway, and the weight tasks of earlier parts of its B need no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event

import numpy as np

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.diagram.by_device import bounds_by_device
from solver.diagram.params import DIAGRAMS
from solver.diagram.steps import ModelledSteps, Numbers
from solver.diagram.threshold_bounds import bounds_of_devices
from solver.diagram.threshold_search import Open, ThresholdSearch


def bounds_of_joint_weights(
    plain: Problem, stage_of: Sequence[int], stop: Event, open_ticks: Open, work: int = DIAGRAMS.most_labels
) -> Iterator[Certificate]:
    """Each above those before, in ticks; `stage_of` is by stage of the plain problem the one whose task it is."""
    search = _JointSearch(plain, stop, open_ticks, work=work)
    search.stage_of = stage_of
    for found in (bounds_by_device(search), bounds_of_devices(search)):
        yield from (one for one in found if one.value_ticks > open_ticks()[0])


def has_joint_weights(plain: Problem, stage_of: Sequence[int]) -> bool:
    """True if several tasks for the weights of one stage run on one device, and their memory is limited."""
    seen = set[tuple[int, int]]()
    for number, stage in enumerate(plain.stages):
        device = plain.placement.stage_device[number]
        if stage.weight and plain.room[device] is not None:
            if (stage_of[number], device) in seen:
                return True
            seen.add((stage_of[number], device))
    return False


class _JointSearch(ThresholdSearch):
    """A threshold search over steps with joint weight tasks."""

    stage_of: Sequence[int] = ()

    def kept(self, stages: Sequence[int], owner: int | None) -> ModelledSteps | None:
        """The steps of stages; None where numbers are too large."""
        kept = super().kept(stages, owner)
        return None if kept is None else with_joint_weights(kept, self.problem, self.stage_of)


def with_joint_weights(kept: ModelledSteps, plain: Problem, stage_of: Sequence[int]) -> ModelledSteps:
    """The steps, in which weight tasks hold memory from the gradient of the stage with the activation on."""
    steps, passes = kept.steps, kept.passes
    of = [stage_of[one.stage] for one in passes]
    with_activation = {
        (of[n], steps.device[n]): n
        for n, one in enumerate(passes)
        if not one.forward and plain.stages[one.stage].activation > 0
    }
    holder, ticks = steps.holder.copy(), np.zeros_like(steps.later)
    for n in np.flatnonzero(steps.later > 0).tolist():
        holder[n] = with_activation.get((of[n], steps.device[n]), n)
        ticks[holder[n]] += steps.later[n]
    waiting = np.array([_least_held(kept, plain, ticks, device) for device in range(len(steps.room))])
    longest = np.array([ticks[steps.device == device].max() for device in range(len(steps.room))])
    early = bool((holder != steps.holder).any())
    joint = steps._replace(holder=holder, waiting=waiting, longest=longest, early=early)
    return kept._replace(steps=joint, joint=True)


def _least_held(kept: ModelledSteps, plain: Problem, ticks: Numbers, device: int) -> int:
    """The least memory that pending weight work holds on a device; 0 where some holds none."""
    own = [plain.stages[kept.passes[n].stage] for n in np.flatnonzero((ticks > 0) & (kept.steps.device == device))]
    return max(0, min((one.activation - one.freed for one in own), default=0))
