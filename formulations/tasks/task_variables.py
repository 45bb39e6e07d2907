"""The variables of the model at task level: starts of jobs, modes of backwards, orders of resources."""

from __future__ import annotations

from ortools.sat.python import cp_model

from formulations.tasks.jobs import Jobs
from formulations.tasks.known_order import KnownOrder
from formulations.tasks.order_of_jobs import JobOrder
from formulations.variables.model_variables import refuse_too_long
from formulations.variables.order_literals import Literal, Truth, negation


class TaskVariables:
    """`start[n]` in steps for each job, `fused[c]` for each choice; a job that does not run starts anywhere."""

    def __init__(self, jobs: Jobs, known: KnownOrder, horizon: int) -> None:
        """All ends are up to the horizon, in steps. Raises `TooLong`."""
        refuse_too_long(horizon)
        self.jobs, self.known, self.horizon = jobs, known, horizon
        self.cp = cp_model.CpModel()
        self.start = [self.cp.new_int_var(0, max(0, horizon - job.steps), f"S{job.task}") for job in jobs.jobs]
        self.fused = [self.cp.new_bool_var(f"fused{stage}.{j}") for stage, j in jobs.choices]
        self.order = JobOrder(self.cp, jobs, known)

    def runs(self, n: int) -> Truth:
        """Whether a job runs: known, or decided by its backward's mode."""
        job = self.jobs.jobs[n]
        if job.choice is None:
            return True
        return self.fused[job.choice] if job.fused else negation(self.fused[job.choice])

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
