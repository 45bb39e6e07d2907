"""The registry of published schedules, with what each entry states about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipesched.problem.problem import Problem
from pipesched.registry import Registry
from pipesched.schedule.schedule import Schedule


@dataclass(frozen=True)
class ClosedForm:
    """What a paper's formula says of one problem: ticks, and the peak of each device in the memory's integers.

    None where the formula says nothing. The tests hold the simulator's result equal to it.
    """

    makespan: int | None = None
    span: int | None = None
    peak: tuple[int, ...] | None = None


def no_closed_form(_: Problem) -> ClosedForm | None:
    """Of an order that no formula describes."""
    return None


@dataclass(frozen=True)
class Heuristic:
    """A published schedule.

    `order` gives the order of every device, or raises `DoesNotApply` with a one-line reason. `closed_form` evaluates
    the formulas `bubble` and `peak` on a problem that meets their assumptions, and gives None on any other.
    `same_for_all_costs`: problems that differ only in times and memory get the same order.
    """

    name: str
    reference: str
    needs: str
    bubble: str
    peak: str
    order: Callable[[Problem], Schedule]
    closed_form: Callable[[Problem], ClosedForm | None] = no_closed_form
    same_for_all_costs: bool = False


HEURISTICS: Registry[Heuristic] = Registry("heuristics", "schedule")
