"""The variables of the model at task level: starts of jobs, modes of backwards, orders of resources."""

from __future__ import annotations

from ortools.sat.python import cp_model

from formulations.tasks.jobs import Choice, Jobs
from formulations.tasks.known_order import KnownOrder
from formulations.tasks.order_of_jobs import JobOrder
from formulations.variables.model_variables import refuse_too_long
from formulations.variables.order_literals import Literal, Truth, negation


class TaskVariables:
    """`start[n]` in steps for each job, and `chosen[c][k]`, whether choice c is option k.

    A job that does not run starts anywhere.
    """

    def __init__(self, jobs: Jobs, known: KnownOrder, horizon: int) -> None:
        """All ends are up to the horizon, in steps. Raises `TooLong`."""
        refuse_too_long(horizon)
        self.jobs, self.known, self.horizon = jobs, known, horizon
        self.cp = cp_model.CpModel()
        self.start = [self.cp.new_int_var(0, max(0, horizon - job.steps), f"S{job.task}") for job in jobs.jobs]
        self.chosen = [self._options(choice) for choice in jobs.choices]
        self.order = JobOrder(self.cp, jobs, known)

    def _options(self, choice: Choice) -> list[Truth]:
        """A literal for each option, of which just one holds."""
        name = f"C{choice.stage}.{choice.microbatch}"
        if choice.options == 2:
            second = self.cp.new_bool_var(name)
            return [negation(second), second]
        found = [self.cp.new_bool_var(f"{name}={option}") for option in range(choice.options)]
        self.cp.add_exactly_one(found)
        return [*found]

    def runs(self, n: int) -> Truth:
        """Whether a job runs: known, or decided by what is chosen."""
        job = self.jobs.jobs[n]
        return True if job.choice is None else self.chosen[job.choice][job.option]

    def end(self, n: int) -> cp_model.LinearExpr | int:
        return self.start[n] + self.jobs.jobs[n].steps

    def one_resource(self, x: int, y: int) -> bool:
        """Whether two jobs share a resource."""
        return self.jobs.jobs[x].resource == self.jobs.jobs[y].resource

    def where(self, *jobs: int) -> list[Literal]:
        """The literals that say that these jobs run."""
        return [runs for runs in map(self.runs, jobs) if not isinstance(runs, bool)]

    def never(self, runs: Truth) -> None:
        """What this says cannot be."""
        self.cp.add_bool_or([negation(runs)])
