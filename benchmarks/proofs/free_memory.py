"""Tiny problems with the objective free memory: amount, bound, least time and check against a search of all orders.

Whether an order leaves an amount is asked of brute force with that amount taken from every capacity: no order exists
with more than the bound, and the largest amount for which one exists is the free memory, with the least value of those
orders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from random import Random

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.checking.free_memory import check_most_left
from pipesched.problem.free_memory import reserving
from pipesched.problem.objectives.free_memory import FREE_MEMORY
from pipesched.problem.objectives.makespan import MAKESPAN
from pipesched.problem.problem import Problem
from pipesched.results.free_memory import left_by
from pipesched.results.solution import Status
from pipesched.validation.validator import validate
from solver.limits import Limits
from solver.solve import solve
from tests.support.exhaustive.optimum import least
from tests.support.piece_problems import tiny_pieces
from tests.support.task_brute_force import TooManyOrdersError
from tests.support.tiny_memory import tiny_memory
from tests.support.tiny_problem import tiny_problem

_LIMITS, _MOST_ORDERS = Limits(seconds=3.0, workers=1), 1_000
_KINDS = ("passes", "saved activations", "pieces")


def drawn(number: int) -> tuple[str, Problem]:
    """Return the kind of the problem of this number, and the problem: every device has a capacity."""
    kind, random = _KINDS[number % len(_KINDS)], Random(number)
    makers: dict[str, Callable[[Random], Problem]] = {
        "passes": tiny_problem,
        "saved activations": tiny_memory,
        "pieces": tiny_pieces,
    }
    one = makers[kind](random)
    ample = sum(abs(stage.activation) for stage in one.stages) * one.microbatches
    room = (random.randint(0, ample) if own is None else own for own in one.room)
    # Brute force tries whole ticks, of which the best span may be a fraction.
    return kind, replace(one.with_room(tuple(room)), objective=MAKESPAN)


def _least(one: Problem) -> Fraction | None:
    """Return the least value over all orders; None if none fits the memory."""
    return least(one, one.objective, 5, _MOST_ORDERS)


def compare(number: int, limits: Limits = _LIMITS) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Kind and outcome of the problem of this number; an assertion fails where what is claimed of it is wrong."""
    kind, one = drawn(number)
    has = ("all", kind)
    asked = replace(one, objective=FREE_MEMORY.then(one.objective))
    found = solve(asked, limits)
    bound = -1 if found.free is None else int(found.free.bound / one.resolution)
    try:
        assert _least(reserving(one, bound + 1)) is None, f"an order leaves more than {bound}"
        amount, best = bound, None
        while amount >= 0 and (best := _least(reserving(one, amount))) is None:
            amount -= 1
    except TooManyOrdersError:
        return has, ("too many orders",)
    if amount < 0:
        assert found.timeline is None, "a schedule, where none fits"
        return has, ("problems", "nothing fits")
    step = one.resolution
    for less in range(amount):
        assert check_most_left(one, less * step).verdict is not Verdict.VERIFIED, f"{less} verified of {amount}"
    assert best is not None
    assert found.timeline is not None, f"no schedule, where one leaves {amount}"
    assert found.free is not None
    assert found.free.value <= amount * step <= found.free.bound, f"{found.free} of {amount * step}"
    assert not validate(found.timeline)
    assert left_by(found.timeline) * step >= 0
    assert found.value_ticks is not None
    if found.free.value < amount * step:
        return has, ("problems", "less than the most")
    ticks = found.problem.tick / one.tick
    value, proved = found.value_ticks * ticks, found.lower_bound_ticks * ticks
    assert proved <= best, f"a bound of {proved} above {best}"
    assert value >= best, f"{value} below {best}"
    assert found.status is not Status.OPTIMAL or value <= best, f"{value} is not the least, {best}"
    verified = check_most_left(one, found.free.bound).verdict is Verdict.VERIFIED
    assert found.certificate is not None
    timed = check_bound(found.problem, found.certificate).verdict
    assert timed is not Verdict.REFUSED, "the check refuses the bound"
    outcome = ("optimal",) * (found.status is Status.OPTIMAL) + ("amount verified",) * verified
    return has, ("problems", *outcome, *(("time verified",) * (timed is Verdict.VERIFIED)))
