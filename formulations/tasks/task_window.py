"""A window of a schedule at task level as a CP-SAT model: its jobs are ordered anew, all others keep their order.

What starts before the window is fixed. What starts after it keeps its order and is summarised by one number a job: the
longest way from its end to the end of a device. So the model does not grow with the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ortools.sat.python import cp_model

from formulations.tasks.known_order import KnownOrder
from formulations.tasks.memory_rows import post_memory
from formulations.tasks.placed_jobs import PlacedJobs
from formulations.tasks.task_variables import TaskVariables
from formulations.tasks.window_jobs import WindowJobs
from formulations.variables.order_literals import Literal


class TaskWindow:
    """The model of a window; it minimises the longest time from a device's opening to its end."""

    def __init__(self, placed: PlacedJobs, since: int, until: int, free: Collection[int]) -> None:
        self.window = WindowJobs(placed, since, until, free)
        horizon = placed.value + max(placed.opening)
        self.model = TaskVariables(self.window.jobs, KnownOrder(self.window.jobs), horizon)
        self._post_edges(horizon)
        self._post_order()
        post_memory(self.model, self.window.held)

    @property
    def cp(self) -> cp_model.CpModel:
        return self.model.cp

    def _post_edges(self, horizon: int) -> None:
        """What comes before the window and what comes after it; the value to be made small."""
        placed, model = self.window.placed, self.model
        value = model.cp.new_int_var(-horizon, horizon, "value")
        earliest, rest = self.window.earliest(), self.window.rest()
        for number, n in enumerate(self.window.inside):
            model.cp.add(model.start[number] >= earliest[n])
            model.cp.add(value >= model.end(number) + rest[n]).only_enforce_if(model.where(number))
            if n in placed.start:
                model.cp.add_hint(model.start[number], placed.start[n])
        so_far = [number for number, n in enumerate(self.window.inside) if n in placed.start]
        for choice, option in self.window.jobs.chosen(so_far).items():
            for each, chosen in enumerate(model.chosen[choice]):
                if isinstance(chosen, cp_model.IntVar):
                    model.cp.add_hint(chosen, each == option)
        model.cp.minimize(value)

    def _post_order(self) -> None:
        """Precedences, and of two jobs of a resource one before the other."""
        model, jobs, placed = self.model, self.window.jobs, self.window.placed
        for after, (before,), lag, _ in jobs.precedences:
            row = model.cp.add(model.start[after] >= model.end(before) + lag)
            row.only_enforce_if(model.where(before, after))
        for before, after in jobs.consecutive:
            model.cp.add(model.start[after] >= model.end(before))
        for (x, y), ahead in model.order.undecided.items():
            where = model.where(x, y)
            model.cp.add(model.start[y] >= model.end(x)).only_enforce_if([ahead, *where])
            model.cp.add(model.start[x] >= model.end(y)).only_enforce_if([ahead.negated(), *where])
            numbers = self.window.inside[x], self.window.inside[y]
            if all(n in placed.start for n in numbers):
                model.cp.add_hint(ahead, placed.start[numbers[0]] < placed.start[numbers[1]])
        for one, then in model.order.consequences(jobs):
            model.cp.add_implication(one, then)
        for here in jobs.on.values():
            model.cp.add_no_overlap([self._interval(n) for n in here])

    def _interval(self, n: int) -> cp_model.IntervalVar:
        model, steps = self.model, self.window.jobs.jobs[n].steps
        return model.cp.new_optional_fixed_size_interval_var(model.start[n], steps, model.runs(n), f"I{n}")

    def starts(self, value_of: Callable[[Literal], int]) -> dict[int, int]:
        """The start of each job inside that runs, in steps."""
        model, inside = self.model, enumerate(self.window.inside)
        return {n: value_of(model.start[m]) for m, n in inside if all(value_of(literal) for literal in model.where(m))}
