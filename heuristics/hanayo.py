"""Hanayo: waves of stages down and up the devices; Chimera's small bubble with every layer stored once."""

from __future__ import annotations

from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic, Priorities
from heuristics.chimera import by_slots, by_slots_form
from pipesched.errors import DoesNotApply
from pipesched.problem.placement import wave
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule


def hanayo(problem: Problem) -> Schedule:
    """Return Hanayo's order: units of p micro-batches, one after the other, in which the legs merge by Chimera's slots.

    Backwards are full, and the last unit may be smaller. A wave is two legs, one down and one up the devices, and two
    chunks per device. One wave is half of a Chimera on 2p devices, folded; half a wave more (an odd number of chunks)
    runs by the same rule. The paper draws one unit and leaves open how the next one follows. Raises `DoesNotApply` for
    a placement that is neither a wave nor a V.
    """
    _legs(problem)
    return by_slots(problem, problem.devices, "hanayo")


def _legs(problem: Problem) -> int:
    """Return the chunks per device of a wave or v-shape placement; raises `DoesNotApply` for any other placement."""
    p, placement = problem.devices, problem.placement
    legs = placement.stages // p
    if len(placement.chains) != 1 or legs < 2 or placement.stage_device != wave(p, legs).stage_device:
        raise DoesNotApply(
            "needs stages in waves, down the devices and up, two chunks a device or more (placement: wave or v-shape); "
            f"it is {placement.name}, {legs} a device"
        )
    return legs


def _closed_form(problem: Problem) -> ClosedForm | None:
    legs, p, m = _legs(problem), problem.devices, problem.microbatches
    if m % p:
        return None
    last = [p - d if legs % 2 else d + 1 for d in range(p)]  # the last leg turns round on one end or the other
    return by_slots_form(problem, 2 * p, m // p, [(legs - 1) * p + number for number in last])


HEURISTICS.register(
    Heuristic(
        name="hanayo",
        reference="Liu et al., Hanayo, arXiv 2308.15762",
        needs="wave placement of two or more chunks, or v-shape",
        bubble="2(p-1)(max(F, BW) + (m/p-1)|F-BW|) with F, BW of one chunk, if p divides m",
        peak="(v-1)p + d+1 chunk activations on device d for v chunks, v even; vp - d for v odd (p divides m)",
        order=hanayo,
        closed_form=_closed_form,
        same_for_all_costs=True,
        priorities=Priorities(plan=2),
    )
)
