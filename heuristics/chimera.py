"""Chimera: two 1F1B pipelines in opposite directions, merged so that each fills the other's bubbles.

The rule of the merge is here: every pass has a slot of time, and a device runs its passes in the order of slots.
Hanayo's waves follow the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from heuristics.building.requirements import chunk_peaks, equal_costs, two_directions
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from pipesched.deadline import asking
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of


def chimera(problem: Problem) -> Schedule:
    """Return Chimera's order: units of p micro-batches, half in each direction, one unit directly after the other.

    Backwards are full, and the last unit may be smaller. The next unit's forwards take the slots that stay free at a
    unit's end, which is the paper's direct concatenation. Raises `DoesNotApply` unless each stage is on two devices,
    one chain in each direction.
    """
    return by_slots(problem, two_directions(problem) // 2, "chimera")


def by_slots(problem: Problem, unit: int, name: str) -> Schedule:
    """Return every chain of S stages as 1F1B in units of `unit` micro-batches, merged by the slot of each pass.

    Micro-batch j of a unit runs forwards through the i-th stage in slot i + 2j and backwards in slot 2S-1-i + 2j: with
    F and BW a slot each, 1F1B with a slot between micro-batches, in which the other chain, or the other leg of a wave,
    finds its place. A unit begins one unit of work after the previous one. No two passes of a device share a slot (an
    even number of devices, or a wave), and predecessors of a pass are in earlier slots, so no order can deadlock.
    """
    p, placement = problem.devices, problem.placement
    work = 2 * unit * (placement.stages // p)
    slots: list[list[tuple[int, Pass]]] = [[] for _ in range(p)]
    for chain in placement.chains:
        for i, stage in asking(enumerate(chain)):
            for turn, j in enumerate(problem.microbatches_of[stage]):
                begin = turn // unit * work + turn % unit * 2
                slots[placement.stage_device[stage]] += [
                    (begin + i, Pass(F, stage, j)),
                    (begin + 2 * len(chain) - 1 - i, Pass(BW, stage, j)),
                ]
    return schedule_of(([one for _, one in sorted(row)] for row in slots), name)


def by_slots_form(problem: Problem, depth: int, units: int, chunks: Sequence[int]) -> ClosedForm | None:
    """Return makespan, span and peaks of whole units merged by slots.

    None unless stages are equal and transfers take no time. `depth` is the number of stages in a chain or wave of the
    merged pipelines, `units` the number of units, `chunks[d]` the peak of device d as a number of activations of one
    stage. The idle time of a device is `depth` - 2 times the longer of F and BW, and `depth` - 2 times |F - BW| at each
    seam between units.
    """
    cost = equal_costs(problem)
    if cost is None:
        return None
    work = sum(map(len, problem.microbatches_of)) // problem.devices * (cost.F + cost.BW)
    seams = (units - 1) * abs(cost.F - cost.BW)
    makespan = work + (depth - 2) * (max(cost.F, cost.BW) + seams)
    return ClosedForm(makespan=makespan, span=makespan, peak=chunk_peaks(problem, chunks))


def _closed_form(problem: Problem) -> ClosedForm | None:
    p, m = two_directions(problem), problem.microbatches
    return None if m % p else by_slots_form(problem, p, m // p, [p // 2 + 1 + min(d, p - 1 - d) for d in range(p)])


HEURISTICS.register(
    Heuristic(
        name="chimera",
        reference="Li and Hoefler, Chimera, arXiv 2107.06925, with direct concatenation",
        needs="bidirectional placement, an even number of devices",
        bubble="(p-2)(max(F, BW) + (m/p-1)|F-BW|), if p divides m; (p-2)/(2m+p-2) of the time for F = BW",
        peak="p/2 + 1 + min(d, p-1-d) on device d, p/2+1 to p, if p divides m",
        order=chimera,
        closed_form=_closed_form,
        same_for_all_costs=True,
    )
)
