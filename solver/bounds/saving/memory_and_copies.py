"""Memory and copies: each activation mode needs memory over time, compute time or copy time of a device.

A linear program over how often each mode is chosen on a device's stages. Its rows say that the total need of a resource
(memory times time, the compute stream, a copy stream) fits into what the resource has. So

    value >= fixed time of the resource + sum of what each activation needs of it

for each row, and the least value over all choices is a bound. GLOP finds multipliers of the rows; the bound that they
prove is computed exactly: each micro-batch takes the mode that is cheapest under them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pipesched.problem.attainable_spans import largest_denominator, least_from
from pipesched.problem.formatting import amount
from pipesched.problem.passes import OFFLOAD
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import DeviceId
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import ResourceWeights
from solver.bounds.analytic.critical_paths import Paths, visited
from solver.bounds.saving.rows_of_device import Needs, Row, rows_of_device
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class MemoryAndCopiesParams:
    """Limit of the linear program for multipliers; the bound is exact for any multipliers."""

    seconds: float = tuned(6.0, "s for the linear program", 0.1, 100)


_PARAMS = MemoryAndCopiesParams()


KIND = "memory and copies"
# Multipliers are taken as whole numbers of this many parts.
_PARTS = 10_000


def memory_and_copies(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return for each device the bound by a linear program over the modes of its activations.

    Activations are kept, offloaded or recomputed. Each mode needs memory over time, compute time or copy time of the
    device, which must suffice for all. Empty if passes consist of several tasks or overlap in blocks; a device without
    any row to weight gets none.
    """
    kept = problem.keeping_activations()
    if kept.view is None or kept.view.blocks or any(stage.tasks for stage in problem.stages):
        return []
    paths, found = Paths(kept), []
    for device, chains in visited(paths.view):
        stages = [stage for chain in chains for stage in chain]
        rows = rows_of_device(problem, objective, paths, device, stages)
        needs_of_stages = [(rows.needs[s], len(problem.microbatches_of[s])) for s in stages]
        weights = _weights(rows.rows, needs_of_stages)
        if weights is not None:
            found.append(_certificate(problem, device, rows.rows, needs_of_stages, weights))
    return found


def proved(rows: Sequence[Row], needs_of_stages: Sequence[tuple[Needs, int]], weights: Sequence[int]) -> Fraction:
    """Return the ticks that the rows prove with these weights, which must be non-negative and not all zero.

    The weighted mean of the rows says: value >= mean of the fixed times + sum over activations of the weighted need of
    their mode, which is no less than the need of the cheapest mode. `weights` has an entry for each of `rows`.
    `needs_of_stages` has, for each stage of the device, the needs of one activation for these rows and the number of
    micro-batches.
    """
    fixed = sum(weight * row.fixed for weight, row in zip(weights, rows, strict=True))
    chosen = sum(
        count * min(sum(weight * part for weight, part in zip(weights, parts, strict=True)) for parts in needs.values())
        for needs, count in needs_of_stages
    )
    return Fraction(fixed + chosen) / sum(weights)


def _weights(rows: Sequence[Row], needs_of_stages: Sequence[tuple[Needs, int]]) -> list[int] | None:
    """Return the best weights of the rows that are found, a whole number of at least 0 for each row.

    They are the linear program's rounded dual values, or one row alone. `needs_of_stages` has, for each stage of the
    device, the needs of one activation and the number of micro-batches. None if no weights are found.
    """
    alone = [[int(other is row) for other in rows] for row in rows]
    found = _dual_values(rows, needs_of_stages)
    rounded = [] if found is None else [[max(0, round(y * _PARTS)) for y in found]]
    tried = [weights for weights in (*rounded, *alone) if any(weights)]
    return max(tried, key=lambda weights: proved(rows, needs_of_stages, weights), default=None)


def _dual_values(rows: Sequence[Row], needs_of_stages: Sequence[tuple[Needs, int]]) -> list[float] | None:
    """Return GLOP's dual values, one for each row of the linear program.

    None if it is not solved to optimality in time. `needs_of_stages` has, for each stage of the device, the needs of
    one activation and the number of micro-batches.
    """
    # It brings pandas, which takes longer to load than most problems to solve.
    from ortools.linear_solver.python import model_builder

    model = model_builder.Model()  # type: ignore[no-untyped-call]
    value = model.new_num_var(0, float("inf"), "value")
    shares = [[model.new_num_var(0, float("inf"), "") for _ in needs] for needs, _ in needs_of_stages]
    for at, row in enumerate(rows):
        used = sum(
            count * float(parts[at]) * share
            for (needs, count), own in zip(needs_of_stages, shares, strict=True)
            for parts, share in zip(needs.values(), own, strict=True)
        )
        model.add(value - used >= float(row.fixed))
    for own in shares:
        model.add(sum(own) == 1)
    model.minimize(value)
    solver = model_builder.Solver("glop")
    solver.set_time_limit_in_seconds(_PARAMS.seconds)
    if solver.solve(model) != model_builder.SolveStatus.OPTIMAL:
        return None
    return [float(y) for y in solver.dual_values(model.get_linear_constraints())][: len(rows)]


def _certificate(
    problem: Problem,
    device: DeviceId,
    rows: Sequence[Row],
    needs_of_stages: Sequence[tuple[Needs, int]],
    weights: list[int],
) -> Certificate:
    value = least_from(proved(rows, needs_of_stages, weights), largest_denominator(problem))
    used = [row.says for row, weight in zip(rows, weights, strict=True) if weight]
    options = _mode_names(needs_of_stages)
    text = (
        f"Device {device} holds each activation by one of these ways: {options}. Each needs at least so much of "
        f"{' and of '.join(used)}, and however many activations are held by each way, all of that together goes into "
        f"no less than {amount(problem, value)}."
    )
    return Certificate(KIND, value, text, device, ResourceWeights(device, tuple(weights)))


def _mode_names(needs_of_stages: Sequence[tuple[Needs, int]]) -> str:
    kinds = dict.fromkeys(mode for needs, _ in needs_of_stages for mode in needs)
    names = ["kept" if mode is None else "offloaded" if mode is OFFLOAD else "recomputed" for mode in kinds]
    return ", ".join(dict.fromkeys(names))
