"""Registry of published schedules, with the properties that each entry states about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from heuristics.building.shared_streams import shared_streams_by_start
from pipesched.errors import BadInput, Deadlock, DoesNotApply
from pipesched.problem.passes_alone import passes_alone
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps, Ticks
from pipesched.registry import Registry
from pipesched.schedule.once_an_iteration import completed
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.stream_orders import stream_orders


@dataclass(frozen=True)
class ClosedForm:
    """Values of a paper's formulas for one problem: makespan and span in ticks, peak of each device in steps of memory.

    None for a quantity without a formula. The tests compare the simulator's result with it.
    """

    makespan: Ticks | None = None
    span: Ticks | None = None
    peak: tuple[MemorySteps, ...] | None = None


def no_closed_form(_: Problem) -> ClosedForm | None:
    """Closed form of a schedule without formulas: always None."""
    return None


class Parameter(NamedTuple):
    """A whole-number parameter of a schedule, written after a colon in the schedule's name.

    `what` is its meaning, as text. `order` returns the order for a value, and raises `DoesNotApply` for values that are
    not possible.
    """

    what: str
    order: Callable[[Problem, int], Schedule]


class Priorities(NamedTuple):
    """Places of a schedule in the orders in which solves and plans try published schedules, found by experiment.

    Places count from 0; None for a schedule that is tried after those with a place. `promising` schedules are tried
    first in a solve. `long_problems` is the place in a solve of a very long problem, which begins with schedules that
    are quickly made and have little idle time; `high_memory`: such a schedule keeps up to 2p activations on a device (p
    devices), so it is tried after the others where memory is scarce. `plan` is the place in the search of a plan, for
    schedules whose best partition is soon proved.
    """

    promising: bool = False
    long_problems: int | None = None
    high_memory: bool = False
    plan: int | None = None


_ORDINARY = Priorities()

# Passes that a deadlock's line names.
_NAMED = 8


def _never_ends(deadlock: Deadlock) -> str:
    """Return the reason, as text, why a schedule does not apply whose passes wait for each other in a cycle."""
    cycle = [*deadlock.cycle, deadlock.cycle[0]]
    named = cycle if len(cycle) <= _NAMED else [*cycle[: _NAMED - 2], "...", cycle[-1]]
    return f"would hang, as devices take part in tasks of each other: {' waits for '.join(named)}"


@dataclass(frozen=True)
class Heuristic:
    """A published schedule.

    `order` gives the order of every device, or raises `DoesNotApply` with a one-line reason; gathers, reductions and
    optimizer steps are added to it. `needs`, `bubble` and `peak` describe its requirements, idle time and activations
    per device. `closed_form` evaluates the formulas `bubble` and `peak` on a problem to which the schedule applies, and
    returns None where their assumptions do not hold; on any other problem it may raise `DoesNotApply`.
    `same_for_all_costs`: problems that differ only in times and memory get the same order. `parameter`: the meaning of
    NUMBER in NAME:NUMBER, if it has one. `searched`: the order is found by a search, which takes seconds where a
    problem is large. `improves`: the name of the published schedule whose passes it reorders, if any. `ceiling`: the
    most activations of the largest chunk on a device, as a function of devices and chunks per device; None where the
    order does not depend on times, or nothing limits them. `reference` is where it was published.
    """

    name: str
    reference: str
    needs: str
    bubble: str
    peak: str
    order: Callable[[Problem], Schedule]
    closed_form: Callable[[Problem], ClosedForm | None] = no_closed_form
    same_for_all_costs: bool = False
    parameter: Parameter | None = None
    searched: bool = False
    improves: str | None = None
    ceiling: Callable[[int, int], int] | None = None
    priorities: Priorities = _ORDINARY

    def __post_init__(self) -> None:
        # Papers order the passes of micro-batches alone, on streams that devices do not share.
        own = self.order

        def order(problem: Problem) -> Schedule:
            several = problem.network.occupies_several
            try:
                schedule = completed(problem, own(passes_alone(problem)))
                if several:
                    stream_orders(problem, schedule)
                return schedule if schedule.task_orders else shared_streams_by_start(problem, schedule)
            except Deadlock as deadlock:
                if several:
                    raise DoesNotApply(_never_ends(deadlock)) from None
                raise

        object.__setattr__(self, "order", order)


# What others call them; capitals, `-` and `_` make no difference.
_OTHER_NAMES = {
    "vpp": "interleaved-1f1b",
    "1f1b-interleaved": "interleaved-1f1b",
    "zero-bubble": "zb",
    "interleaved-zero-bubble": "interleaved-zb",
    "zero-bubble-v": "zbv",
    "zbv-zero-bubble": "torch-zbv",
    "zbv-formatted": "torch-zbv",
}
HEURISTICS: Registry[Heuristic] = Registry("heuristics", "schedule", _OTHER_NAMES)


def schedule_named(name: str) -> Heuristic:
    """Return the published schedule of this name, with its parameter if one is given (`interleaved-1f1b:8`).

    With a parameter its name is all of `name`, and it has no closed form. Raises `BadInput` for an unknown name, and
    for a parameter that the schedule does not have or that is no whole number from 1 on.
    """
    base, colon, number = name.partition(":")
    found = HEURISTICS[base]
    if not colon:
        return found
    parameter = found.parameter
    if parameter is None:
        raise BadInput(f"schedule: found {name!r}; allowed: {found.name}, which has no parameter")
    if not (number.isascii() and number.isdigit() and int(number)):
        raise BadInput(
            f"schedule: found {name!r}; allowed: {found.name}:NUMBER, a whole number from 1 on: {parameter.what}"
        )
    value = int(number)

    def order(problem: Problem) -> Schedule:
        return Schedule(parameter.order(problem, value).orders, name)

    return replace(found, name=name, order=order, closed_form=no_closed_form, parameter=None)
