"""Plan with the least memory excess among a few plans made without regard to memory, for the message that none fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from heuristics.building.patience import patience
from heuristics.catalogue import schedule_named
from pipesched.deadline import asking
from pipesched.errors import DoesNotApply
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.formatting import plain
from pipesched.problem.objectives.makespan import MAKESPAN
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.results.plan import PlanCandidate
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.planning.partitions.balance import balanced
from solver.planning.partitions.starting import recomputing


@lru_cache(maxsize=1)
def least_lacking(problem: PlanProblem) -> PlanCandidate | None:
    """Return the trial plan that exceeds the memory least; of several such plans the one with the least value.

    None if no order applies. Trial plans have balanced partitions, without recomputation or with all of it, and are
    made without a memory limit.
    """
    return min(_roomy_plans(problem), key=lambda one: (lacking(problem, one)[0], one.value), default=None)


def lacking(problem: PlanProblem, candidate: PlanCandidate) -> tuple[float, DeviceId]:
    """Return the largest memory excess over capacity among the devices, in the file's memory unit, and that device.

    The excess is negative where every device has memory to spare. Without capacities it is the largest peak.
    """
    peaks = measure(candidate.timeline).peak_memory
    rooms = problem.all_devices.capacity or (Fraction(0),) * len(peaks)
    return max((peak - float(room), device) for device, (peak, room) in enumerate(zip(peaks, rooms, strict=True)))


def what_is_lacking(problem: PlanProblem) -> str:
    """Return text on the plan that exceeds the memory least, of some made without a limit.

    It names the worst device, and by how much memory is exceeded. Empty if that plan fits, no order applies, or memory
    is not limited.
    """
    capacity = problem.all_devices.capacity
    best = None if capacity is None else least_lacking(problem)
    if best is None or capacity is None:
        return ""
    more, device = lacking(problem, best)
    unit = problem.cluster.memory_unit
    order = f"the order of {best.schedule}" if problem.schedules else "one micro-batch after the other"
    return (
        f"of some plans tried without regard to memory {best.choice} with {order} lacks least: device {device} needs "
        f"{plain(round(more, 3))} {unit} more than {plain(float(capacity[device]))}"
        if more > 0
        else ""
    )


def _roomy_plans(problem: PlanProblem) -> Iterator[PlanCandidate]:
    # One micro-batch after the other is compared by its own length, which has no period.
    objective = MAKESPAN if problem.objective.repeats else problem.objective
    roomy = replace(problem, cluster=replace(problem.cluster, capacity=None), even=False, objective=objective)
    orders = {name: schedule_named(name).order for name in problem.schedules} or {"pipesched": sequential}
    for choice in asking(problem.choices):
        stages = len(choice.on(problem.cluster.devices).chains[0])
        if stages > problem.model.most_stages or (problem.counts is not None and len(problem.counts) != stages):
            continue
        counts = balanced(roomy, choice).counts
        for name, order in orders.items():
            found = [*_of_shares(roomy, choice, Partition(counts), name, order)]
            yield from found
            if found:
                break


def _of_shares(
    roomy: PlanProblem, choice: Choice, partition: Partition, name: str, order: Callable[[Problem], Schedule]
) -> Iterator[PlanCandidate]:
    """Yield a plan of this partition without recomputation, and one with all layers recomputed.

    Where recomputation is not free, both are what the problem asks for. Nothing if `order` does not apply. Plans are
    for `roomy`, a problem without a memory limit.
    """
    for share in (Fraction(0), Fraction(1)):
        own = recomputing(roomy, partition.counts, share)
        one = roomy.problem(choice, own)
        try:
            with patience():
                timeline = best_times(one, order(one))
        except DoesNotApply:
            return
        yield PlanCandidate(choice, own, timeline, name)
