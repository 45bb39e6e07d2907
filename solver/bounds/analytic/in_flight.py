"""In-flight limit: memory admits K micro-batches to a stage at once, so m micro-batches take ceil(m/K) round trips."""

from __future__ import annotations

from pipesched.problem.formatting import amount, counted
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import MemorySteps, StageId, Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OnStage
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.critical_paths import Paths


def in_flight_limit(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return a certificate of ceil(m/K) round trips for each stage of which memory fits K at once, 0 < K < m.

    K is the number of micro-batches that the memory of its device admits if it has the activations of that stage alone.
    For the makespan the time before the first forward of the stage is added. The problem must be plain.
    """
    paths = Paths(problem)
    view, found = paths.view, []
    for stage, microbatches in enumerate(view.microbatches_of):
        device, activation = view.placement.stage_device[stage], view.memory_in_flight[stage]
        capacity = view.room[device]
        if capacity is None or activation == 0 or not len(microbatches):
            continue
        admitted = capacity // activation
        if not 0 < admitted < len(microbatches):
            continue
        rounds = -(-len(microbatches) // admitted)
        there_and_back = paths.forward[stage] + paths.round_trip[stage]
        cycle = there_and_back + until_room(paths, stage, capacity, admitted)
        head = 0 if objective.by_device else paths.head[stage]
        value = head + (rounds - 1) * cycle + there_and_back + paths.backward[stage]
        many = counted(admitted, "micro-batch")
        text = (
            f"The memory of device {device} admits {many} to stage {stage} at once. From the start "
            f"of a forward there until its memory serves another at least {amount(problem, cycle)} pass, and "
            f"{len(microbatches)} micro-batches need {rounds} such rounds, the last one to the end of its backward: "
            f"{amount(problem, value)}" + (f", {amount(problem, head)} of it before the first." if head else ".")
        )
        found.append(Certificate("in-flight limit", value, text, device, OnStage(stage)))
    return found


def until_room(paths: Paths, stage: StageId, capacity: MemorySteps, admitted: int) -> Ticks:
    """Return the least ticks from the start of a backward until memory has room for one more forward of the stage.

    `capacity` has room for `admitted` whole activations. What B frees may not suffice for another one, next to the part
    of its activation that stays; then its W must end too, or a second backward.
    """
    activation, freed = paths.view.memory_in_flight[stage], paths.view.freed_by_backward(stage)
    if freed <= 0:
        return paths.backward[stage]
    if capacity < admitted * activation + (activation - freed):
        return min(paths.backward[stage], 2 * paths.gradient[stage])
    return paths.gradient[stage]


BOUNDS.register(Bound("in-flight limit", in_flight_limit, rank=4, reads_memory=True))
