"""Loads of the devices under a partition: a lower bound on its objective for any order, and a penalty if uneven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.placement import Placement
from pipesched.problem.quantities import Ticks
from solver.parameters import tunable, tuned
from solver.planning.joint.draft import Costs


@dataclass(frozen=True)
@tunable
class LoadsParams:
    """Weight of uneven device loads in the annealing energy: it directs the search between plans of equal value."""

    unevenness: float = tuned(0.1, "of the root mean square of the devices' loads", 0, 1)


_PARAMS = LoadsParams()


class Loads:
    """Bound and evenness penalty of drafts on one placement, from the work of its devices.

    `lags` are the transfer times in ticks from each stage of a chain to the next.
    """

    def __init__(self, plan: PlanProblem, placement: Placement, lags: Sequence[Ticks]) -> None:
        self._length, self._each = len(placement.chains[0]), plan.microbatches / len(placement.chains)
        self._places_of = [[stage % self._length for stage in own] for own in placement.stages_of]
        self._lags = np.array([0, *lags]).cumsum()
        self._splits = plan.model.splittable
        # For the span, where devices begin and end at different times, or with chains in both directions, only work
        # counts.
        self._counts_paths = plan.objective.from_zero and len(placement.chains) == 1

    def bound(self, costs: Costs) -> float:
        """Return a lower bound on the objective in ticks for any order of passes: the largest work of a device.

        For the makespan on one chain, the path to the device's first stage is added; the bound is then also at least
        the work of F and B alone with the path to the device and back.
        """
        forward, backward, weight, full = costs.ticks
        work = forward + np.minimum(backward + weight, full)
        gradient = np.minimum(backward, full) if self._splits else full
        head = np.concatenate(([0], forward.cumsum()[:-1])) + self._lags
        tail = np.concatenate(([0], gradient.cumsum()[:-1])) + self._lags
        worst = 0.0
        for places in self._places_of:
            load = self._each * float(work[places].sum())
            if self._counts_paths and places:
                first = min(places)
                busy = self._each * float((forward + gradient)[places].sum()) + float(tail[first])
                load = max(load, busy) + float(head[first])
            worst = max(worst, load)
        return worst

    def uneven(self, costs: Costs) -> float:
        """Return the penalty for uneven loads in ticks: a small multiple of the root mean square of the device loads.

        The loads are of all micro-batches. Between drafts of equal objective it leads the annealing towards even loads.
        """
        forward, backward, weight, full = costs.ticks
        work = forward + np.minimum(backward + weight, full)
        loads = np.array([float(work[places].sum()) for places in self._places_of]) * self._each
        return _PARAMS.unevenness * float(np.sqrt((loads * loads).mean()))
