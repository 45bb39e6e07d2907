"""The exact model: all constraints and valid inequalities, on some or all devices, and decoding of its solutions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from math import ceil

from ortools.sat.python import cp_model

from formulations.constraints.catalogue import CONSTRAINTS
from formulations.exact.objectives import post_objective
from formulations.exact.valid_inequalities import hint_idle, post_origin, post_redundant
from formulations.exact.work_by_mode import post_work
from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.quantities import JobId, TimeSteps
from formulations.jobs.schedule_of_starts import schedule_of_starts, starts_of
from formulations.variables.literals import Literal
from formulations.variables.model_variables import MOST_LITERALS, Model
from formulations.variables.operations import Operation
from pipesched.deadline import asking
from pipesched.problem.attainable_spans import Value, least_above
from pipesched.problem.passes import BW, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline


def improving(
    problem: Problem, incumbent: Timeline, value: Value, lower_bound: Value, most_literals: int = MOST_LITERALS
) -> ExactModel:
    """Return the model of all schedules of a problem with a value from `lower_bound` to `value` (ticks).

    `incumbent` is its hint, unless it runs a full backward for which the model has neither a job nor B and W. The model
    has order literals if they are at most `most_literals`, or some operations run in some modes only. Raises ValueError
    for unequal micro-batches, `TooLong` for times beyond CP-SAT's integers.
    """
    jobs = jobs_of(problem)
    return ExactModel(jobs, value, lower_bound, most_literals, starts=starts_of(jobs, incumbent))


class ExactModel:
    """CP-SAT model of all schedules of jobs with a value from `at_least` to `at_most` ticks, which it minimises.

    `model` has the variables of the jobs, `objective` is the value's variable, in steps, and `idle` are the idle times
    of `post_redundant`; `at_most` is rounded up to a tick. `starts` has the steps at which the jobs of a known schedule
    start, as a hint (None: no hint). Order literals exist if they are at most `most_literals`, or some operations run
    in some modes only. Where the least span of an order is a fraction of a tick, its value in this model is the next
    integer. Devices not in `devices` (None: all are in it) are relaxed to delays: their tasks of one type run one at a
    time and any others at once, without memory limits; each takes the time that it takes alone or in its shortest
    block. If no such schedule has a value so low, no schedule of the problem has. Raises `TooLong` for times that
    CP-SAT's integers cannot represent.
    """

    def __init__(
        self,
        jobs: Jobs,
        at_most: Value,
        at_least: Value,
        most_literals: int = MOST_LITERALS,
        devices: Collection[DeviceId] | None = None,
        starts: Mapping[JobId, TimeSteps] | None = None,
    ) -> None:
        self.jobs, highest = jobs, ceil(at_most)
        # Under the span devices begin late.
        span = jobs.problem.objective.by_device
        self.model = Model(jobs, most_literals, devices, None if span else highest * jobs.scale + jobs.zeros)
        # Precedences first: the plainest rows, for those who read the model; CP-SAT takes rows in any order.
        for constraint in asking(sorted(CONSTRAINTS, key=lambda one: one.name != "precedence")):
            if constraint.posted_if is None or constraint.posted_if(jobs):
                constraint.post(self.model)
        post_origin(self.model)
        self.idle = post_redundant(self.model)
        self.objective = post_objective(self.model, highest, at_least, self.idle, post_work(self.model))
        if starts is not None:
            self._hint(starts)
            if self.model.scale == 1:
                self.cp.add_hint(self.objective, highest)

    @property
    def cp(self) -> cp_model.CpModel:
        return self.model.cp

    @property
    def bounds_everything(self) -> bool:
        """True if the model's bound is valid for every schedule of the problem.

        False if overlapped blocks were excluded.
        """
        return self.model.has_all_blocks

    def _hint(self, starts: Mapping[JobId, TimeSteps]) -> None:
        """Give CP-SAT the schedule with these job starts, in steps, as a hint.

        Nothing is hinted if the schedule does not run each pass type in micro-batch order.
        """
        model, known = self.model, self._known_starts(starts)
        if any(known[one] > known[other] for one, other in model.operations.in_microbatch_order.items()):
            return
        for x, start in known.items():
            model.cp.add_hint(model.start[x], start)
        chosen = self.jobs.chosen(starts)
        for choice, options in enumerate(model.chosen):
            for option, literal in enumerate(options):
                if isinstance(literal, cp_model.IntVar):
                    model.cp.add_hint(literal, chosen[choice] == option)
        for order in model.orders:
            for x, y, ahead in order.undecided():
                if isinstance(ahead, cp_model.IntVar) and x in known and y in known:
                    model.cp.add_hint(ahead, (known[x], x.role is W) < (known[y], y.role is W))
        hint_idle(model, self.idle, known)
        for (forward, backward), block in model.together.items():
            model.cp.add_hint(block, known[forward] == known[backward])

    def _known_starts(self, starts: Mapping[JobId, TimeSteps]) -> dict[Operation, TimeSteps]:
        """Return the start of each operation in steps, from that of each job.

        The empty W of a fused backward starts where that backward ends.
        """
        operations, found = self.model.operations, dict[Operation, int]()
        for n, start in starts.items():
            x = operations.of[n]
            found[x] = start
            if self.jobs.jobs[n].task.of.kind is BW and (weight := x._replace(role=W)) in operations.jobs_of:
                found[weight] = start + self.jobs.jobs[n].steps
        return found

    def most(self, steps: float) -> Fraction:
        """Convert a value of this model, in steps, to ticks.

        The value of that order in the problem is at most the result.
        """
        return Fraction(round(steps), self.jobs.scale)

    def bound(self, steps: float) -> Value:
        """Convert a lower bound of this model, in steps, to a lower bound of the problem in ticks.

        The span of an order may be a fraction of a tick, which the model rounds up: if no order takes less than n ticks
        in the model, one may take less than n in the problem, but more than n - 1.
        """
        return least_above(Fraction(round(steps) - 1 - self.jobs.zeros, self.jobs.scale), self.jobs.parts)

    def starts(self, value_of: Callable[[Literal], int]) -> dict[JobId, TimeSteps]:
        """Return the start in steps of every job that runs in a solution.

        `value_of` returns a variable's value in it.
        """
        model = self.model
        running = (n for n in range(len(self.jobs.jobs)) if all(value_of(one) for one in model.where_jobs(n)))
        return {n: value_of(model.start[model.operations.of[n]]) for n in running}

    def decode(self, value_of: Callable[[Literal], int], name: str = "pipesched") -> Schedule | None:
        """Return the schedule of a solution, with passes that start together as a block.

        None if its starts exceed the capacity of a memory. `value_of` returns a variable's value in the solution.
        """
        return schedule_of_starts(self.jobs, self.starts(value_of), name)
