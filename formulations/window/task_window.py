"""A window of a schedule as a CP-SAT model: the jobs that start in an interval of time are reordered.

Jobs that start before the window are fixed. Jobs that start after it keep their order and are summarised by one number
for each job inside: the longest path from its end to the end of a device. So the model does not grow with the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf

from ortools.sat.python import cp_model

from formulations.constraints import microbatch_order, no_overlap, precedence
from formulations.constraints.memory_capacity import post_rows
from formulations.jobs.placed_jobs import PlacedJobs
from formulations.jobs.quantities import JobId, TimeSteps
from formulations.variables.literals import Literal
from formulations.variables.model_variables import Model
from formulations.window.window_jobs import WindowJobs
from pipesched.problem.quantities import DeviceId


class TaskWindow:
    """CP-SAT model that reorders the jobs of `placed` starting in [since, until), in steps, on the devices `free`.

    `window` has these jobs, `model` their variables. It minimises the longest time from a device's opening to its end,
    in steps. Raises `TooLong` for times that CP-SAT's integers cannot represent.
    """

    def __init__(self, placed: PlacedJobs, since: TimeSteps, until: TimeSteps, free: Collection[DeviceId]) -> None:
        self.window = WindowJobs(placed, since, until, free)
        horizon = placed.value + max(placed.opening)
        self.model = Model(self.window.jobs, inf, free, horizon, numbered=False)
        for rule in (precedence, microbatch_order, no_overlap):
            rule.post(self.model)
        # Said once more: windows whose memory is tight take a quarter of the time with it.
        no_overlap.by_intervals(self.model)
        jobs_of = self.model.operations.jobs_of
        post_rows(self.model, lambda one: self.window.memory_before(one.pool, jobs_of[one.first[0]][0]))
        self._post_edges(horizon)

    @property
    def cp(self) -> cp_model.CpModel:
        return self.model.cp

    def _post_edges(self, horizon: TimeSteps) -> None:
        """Post earliest starts, tails from outside the window and the objective, at most `horizon` steps.

        Hint the current schedule.
        """
        placed, model, cp = self.window.placed, self.model, self.cp
        value = cp.new_int_var(-horizon, horizon, "value")
        earliest, tails = self.window.earliest(), self.window.tails()
        so_far = {}
        for number, n in enumerate(self.window.inside):
            x = model.operations.of[number]
            cp.add(model.start[x] >= earliest[n])
            cp.add(value >= model.end(x) + tails[n]).only_enforce_if(model.where(x))
            if n in placed.start:
                so_far[x] = placed.start[n]
                cp.add_hint(model.start[x], placed.start[n])
        running = [number for number, n in enumerate(self.window.inside) if n in placed.start]
        for choice, option in self.window.jobs.chosen(running).items():
            for each, chosen in enumerate(model.chosen[choice]):
                if isinstance(chosen, cp_model.IntVar):
                    cp.add_hint(chosen, each == option)
        for order in model.orders:
            for x, y, ahead in order.undecided():
                if isinstance(ahead, cp_model.IntVar) and x in so_far and y in so_far:
                    cp.add_hint(ahead, so_far[x] < so_far[y])
        cp.minimize(value)

    def starts(self, value_of: Callable[[Literal], int]) -> dict[JobId, TimeSteps]:
        """Return the start in steps of each job of the window that runs in a solution, by its number in the schedule.

        `value_of` returns a variable's value in the solution.
        """
        model, inside = self.model, enumerate(self.window.inside)
        of = model.operations.of
        return {n: value_of(model.start[of[m]]) for m, n in inside if all(map(value_of, model.where_jobs(m)))}
