"""The registry of the methods that prove certificates, each with the drawn problems on which it is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from random import Random
from threading import Event

from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.relaxations import relaxed, with_partners
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.catalogue import of_original
from solver.bounds.saving.certificates import certificates
from solver.diagram.activation_mode_bounds import bounds_of_activation_modes
from solver.solve import solve
from solver.tasks.as_stages import stream_decomposition
from tests.support.counted import counted
from tests.support.rows_of_tasks import carried, proved_of, random_rows

# Units of work of a diagram, and how far from bound and optimum it is asked to start and to end, in ticks.
_AMPLE, _AROUND = 10**8, 4


@dataclass(frozen=True)
class Claims:
    """A method that proves certificates: `of(problem, its optimum)` yields them.

    It is compared on problems of the named `drawers` (None: all), at most `problems` of each. With `searched` some
    certificates depend on a search of all orders, which the check does not repeat.
    """

    of: Callable[[Problem, Fraction], Iterable[Certificate]]
    drawers: tuple[str, ...] | None = None
    problems: float = inf
    searched: bool = False


def _analytic(one: Problem, _: Fraction) -> list[Certificate]:
    return certificates(one, one.objective)


def _as_stages(one: Problem, _: Fraction) -> Iterator[Certificate]:
    if any(stage.entry(F) for stage in one.stages):
        return  # a search leaves lookups out before
    found = stream_decomposition(one)
    if found is not None:
        yield from map(found.claim, proved_of(found.plain))


def _any_rows(one: Problem, _: Fraction) -> Iterator[Certificate]:
    return carried(one, random_rows(Random(one.microbatches), one))


def _plain_passes(one: Problem, _: Fraction) -> Iterator[Certificate]:
    """Yield the certificate of a short solve of the problem relaxed to plain passes, carried back to the problem."""
    poorer = relaxed(one)
    if poorer.problem.view is not None:
        found = solve(poorer.problem, counted(0.3))
        if found.certificate is not None:
            yield of_original(poorer, found.certificate)


def _activation_modes(one: Problem, best: Fraction) -> Iterator[Certificate]:
    if not one.walks.scale:
        proved = max(claim.value_ticks for claim in certificates(one, one.objective))
        around = max(0.0, float(proved) - _AROUND), float(best) + _AROUND
        yield from bounds_of_activation_modes(one, Event(), lambda: around, _AMPLE)


def _of_partners(one: Problem, _: Fraction) -> Iterator[Certificate]:
    """Yield certificates of the problem with the memory of partner devices pooled, carried back to the problem.

    They are of a short solve where that has plain passes, else of decision diagrams of tasks as stages.
    """
    poorer = with_partners(one)
    if poorer is None:
        return
    found = None if poorer.problem.view is not None else stream_decomposition(poorer.problem)
    if found is not None:
        yield from (of_original(poorer, found.claim(own)) for own in proved_of(found.plain))
    elif poorer.problem.view is not None:
        proved = solve(poorer.problem, counted(0.3)).certificate
        if proved is not None:
            yield of_original(poorer, proved)
            yield from (of_original(poorer, own) for own in proved_of(poorer.problem))


CLAIMS: dict[str, Claims] = {
    "bounds without a search": Claims(_analytic),
    "bounds of tasks as stages": Claims(_as_stages),
    "bounds of tasks as any rows of stages": Claims(_any_rows, ("mirrored tasks",)),
    "a solve of plain passes": Claims(
        _plain_passes, ("gatherings", "pieces", "pieces that save memory", "modules", "collectives"), 12, True
    ),
    "searches with partners' memory": Claims(_of_partners, ("partners", "partners and more"), searched=True),
    "diagrams of activation modes": Claims(
        _activation_modes, ("saved activations", "copies as long as passes", "copies back", "recomputation put off")
    ),
}
