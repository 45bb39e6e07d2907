"""Threshold bounds over activation modes (kept, offloaded, recomputed), on single devices, then on pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from threading import Event

from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.activation_modes.relaxation import mode_relaxation
from solver.diagram.certificate import KIND
from solver.diagram.layers import Least
from solver.diagram.modelled_stages import devices_of, stages_on, walked_chains
from solver.diagram.models.activation_modes import least_end
from solver.diagram.params import DIAGRAMS
from solver.diagram.thresholds import refuted_thresholds
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class ActivationModeParams:
    """Limits on the labels that decision diagrams over activation modes look at."""

    most_labels: int = tuned(1_000_000, "labels of a diagram, beyond which its check takes minutes", 1_000, 10**8)
    label_cost: int = tuned(10, "labels of compiled diagrams looked at in the time of one label here", 1, 1000)


_PARAMS = ActivationModeParams()


def is_covered(problem: Problem) -> bool:
    """True if activations have several modes and every pass is one task on the compute stream of its device.

    Not covered are blocks, transfers on a stream, and the objective period.
    """
    if (
        problem.network.blocks
        or problem.resources.transfer_stream is not None
        or not problem.network.has_activation_modes
    ):
        return False
    several = len({stage.stream for stage in problem.stages}) > 1 or any(stage.tasks for stage in problem.stages)
    return not several and problem.objective.of_one_iteration


def bounds_of_activation_modes(
    problem: Problem, stop: Event, open_ticks: Callable[[], tuple[float, float]], work: int
) -> Iterator[Certificate]:
    """Yield certificates of increasing value between the proved bound and a schedule's value, in ticks.

    `open_ticks` returns both; a schedule must be known, so that the second is finite. `work` limits the labels (times
    of partial orders) that are expanded, each of which counts as `label_cost` labels of a compiled diagram. Nothing is
    yielded where `is_covered` is False.
    """
    if not is_covered(problem):
        return
    paths, best = Paths(problem.keeping_activations()), 0

    def between() -> tuple[Ticks, Ticks]:
        proved, known = open_ticks()
        return max(best, ceil(proved)), ceil(known)

    for devices, owner in _kept(problem):
        stages = tuple(stage for chain in walked_chains(problem) for stage in stages_on(problem, chain, devices))
        relaxation = mode_relaxation(problem, paths, stages, owner)

        def least_end_before(value: Ticks, work: int) -> Least:
            least = least_end(relaxation, value, min(_PARAMS.most_labels, work // _PARAMS.label_cost), stop)  # noqa: B023 - called in this round
            return least._replace(work=least.work * _PARAMS.label_cost)

        proved, known = between()
        for found in refuted_thresholds(
            least_end_before, between, (max(1, (known - proved) // DIAGRAMS.value_step), 1), work, stop
        ):
            work -= found.work
            if found.ticks > between()[0]:
                best = found.ticks
                evidence = Diagram(stages, below=found.threshold, device=owner, tick=problem.tick, ways=True)
                yield Certificate(KIND, best, _text(problem, devices, best), devices[0], evidence)


def _kept(problem: Problem) -> Iterator[tuple[tuple[StageId, ...], DeviceId | None]]:
    """Yield the sets of devices to model, with the device whose span counts (None: makespan): each device, then pairs.

    For the span of pairs the device on which the only chain begins must be one of the two, and its span counts.
    """
    chains, ends = [*walked_chains(problem)], problem.objective.from_zero
    every = devices_of(problem, [stage for chain in chains for stage in chain])
    for device in every:
        yield (device,), None if ends else device
    for two in combinations(every, 2):
        if ends:
            yield two, None
        elif len(chains) == 1 and two[0] == every[0]:
            yield two, every[0]


def _text(problem: Problem, devices: tuple[DeviceId, ...], least: Ticks) -> str:
    on = " and ".join(f"device {device}" for device in devices)
    return (
        f"Forwards, backwards, copies and recomputations take turns on {on}: each starts only while memory "
        "has room for what it holds besides all other activations, each of which is held in one of its modes; a "
        "micro-batch is away for as long as other stages take. In whichever order they run, and whichever mode each "
        f"activation is held, all take at least {amount(problem, least)}."
    )
