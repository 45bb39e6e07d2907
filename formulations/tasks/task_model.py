"""The exact model of a problem at task level: every order of every stream, and every mode, in whole steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil

from ortools.sat.python import cp_model

from formulations.tasks.jobs import Jobs
from formulations.tasks.known_order import KnownOrder
from formulations.tasks.memory_rows import post_memory
from formulations.tasks.task_variables import TaskVariables
from formulations.variables.order_literals import Literal
from pipesched.problem.attainable_spans import Value, least_above
from pipesched.problem.problem import Objective


class TaskModel:
    """The jobs between two values of the objective, in ticks; `starts` (steps) of a schedule known are a hint."""

    def __init__(
        self,
        jobs: Jobs,
        at_most: Value,
        at_least: Value = 0,
        starts: Mapping[int, int] | None = None,
    ) -> None:
        self.jobs, self.known = jobs, KnownOrder(jobs, numbered=True)
        highest = ceil(at_most) * jobs.scale + jobs.zeros
        self.span = jobs.problem.objective is Objective.SPAN
        # Under the span devices begin late: no start need be later than all jobs and lags one after another.
        whole = sum(job.steps for job in jobs.jobs) + sum(one.lag for one in jobs.precedences)
        self.variables = TaskVariables(jobs, self.known, whole if self.span else min(whole, highest))
        self._post_ties()
        self._post_order()
        post_memory(self.variables)
        self.value = self._post_objective(ceil(at_least * jobs.scale), highest)
        if starts is not None:
            self._hint(starts)

    @property
    def cp(self) -> cp_model.CpModel:
        return self.variables.cp

    def _post_ties(self) -> None:
        """Each job waits for that one of the alternatives that runs."""
        model = self.variables
        for after, alternatives, lag, _ in self.jobs.precedences:
            for before in alternatives:
                row = model.cp.add(model.start[after] >= model.end(before) + lag)
                row.only_enforce_if(model.where(before, after))
        for before, after in (*self.jobs.consecutive, *self.jobs.alike):
            model.cp.add(model.start[after] >= model.end(before))

    def _post_order(self) -> None:
        """Of two jobs of a resource one ends before the other starts; no-overlap says it once more."""
        model = self.variables
        for (x, y), ahead in model.order.undecided.items():
            where = model.where(x, y)
            model.cp.add(model.start[y] >= model.end(x)).only_enforce_if([ahead, *where])
            model.cp.add(model.start[x] >= model.end(y)).only_enforce_if([ahead.negated(), *where])
        for one, then in model.order.consequences(self.jobs):
            model.cp.add_implication(one, then)
        for here in self.jobs.on.values():
            intervals = [self._interval(n) for n in here]
            model.cp.add_no_overlap(intervals)

    def _interval(self, n: int) -> cp_model.IntervalVar:
        model, steps = self.variables, self.jobs.jobs[n].steps
        runs = model.runs(n)
        if isinstance(runs, bool):
            return model.cp.new_fixed_size_interval_var(model.start[n], steps, f"I{n}")
        return model.cp.new_optional_fixed_size_interval_var(model.start[n], steps, runs, f"I{n}")

    def _post_objective(self, lowest: int, highest: int) -> cp_model.IntVar:
        """Makespan, or the longest time of a device from its first start to its last end."""
        model = self.variables
        value = model.cp.new_int_var(min(lowest, highest), highest, "value")
        jobs = range(len(self.jobs.jobs))
        devices = {self.jobs.device(n) for n in jobs} if self.span else ()
        begin = {device: self._begin(device) for device in devices}
        for n in jobs:
            since = begin.get(self.jobs.device(n), 0)
            model.cp.add(value >= model.end(n) - since).only_enforce_if(model.where(n))
        model.cp.minimize(value)
        return value

    def _begin(self, device: int) -> cp_model.IntVar:
        """When a device starts its first job: one that is known to precede all others, or whichever is first."""
        model = self.variables
        here = [n for n in range(len(self.jobs.jobs)) if self.jobs.device(n) == device]
        for first in here:
            if model.runs(first) is True and all(n == first or self.known.precedes(first, n) for n in here):
                return model.start[first]
        begin = model.cp.new_int_var(0, model.horizon, "")
        for n in here:
            model.cp.add(begin <= model.start[n]).only_enforce_if(model.where(n))
        return begin

    def _hint(self, starts: Mapping[int, int]) -> None:
        """The starts of a schedule that keeps the order of micro-batches; jobs without one do not run."""
        model = self.variables
        chosen = self.jobs.chosen(starts)
        for n, start in starts.items():
            model.cp.add_hint(model.start[n], start)
        for choice, options in enumerate(model.chosen):
            for option, literal in enumerate(options):
                if isinstance(literal, cp_model.IntVar):
                    model.cp.add_hint(literal, chosen[choice] == option)
        for (x, y), ahead in model.order.undecided.items():
            if x in starts and y in starts:
                model.cp.add_hint(ahead, starts[x] < starts[y])

    def bound(self, steps: float) -> Value:
        """The least value in ticks of an order that takes no fewer steps, given in whole ticks or not."""
        return least_above(Fraction(round(steps) - 1 - self.jobs.zeros, self.jobs.scale), self.jobs.parts)

    def starts(self, value_of: Callable[[Literal], int]) -> dict[int, int]:
        """The start of every job that runs, in steps."""
        model = self.variables
        running = (n for n in range(len(self.jobs.jobs)) if all(value_of(literal) for literal in model.where(n)))
        return {n: value_of(model.start[n]) for n in running}
